#pragma once
/// From an address to its node: open addressing with linear probing and backward-shift deletion (Knuth, TAOCP 6.4,
/// algorithm R), so that a look-up costs one cache line however many blocks are live. Growth is explicit, for callers
/// that must not fail later.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "gmlake/core/types.hpp"

namespace gmlake {

template <class T>
class address_map {
 public:
  address_map() noexcept = default;
  address_map(address_map&& o) noexcept
      : slots_(std::move(o.slots_)), mask_(std::exchange(o.mask_, 0)), size_(std::exchange(o.size_, 0)) {}
  address_map& operator=(address_map&&) = delete;

  /// Makes the next insertion succeed. Amortised constant time; false for want of host memory.
  [[nodiscard]] bool reserve_one() noexcept {
    if (slots_ != nullptr && (size_ + 1) * 2 <= mask_ + 1) [[likely]]
      return true;
    return grow();
  }

  /// Precondition: reserved; `key` is absent and not `address{}`.
  void insert(address key, T& value) noexcept {
    std::size_t i = home(key);
    while (slots_[i].key != address{}) i = (i + 1) & mask_;
    slots_[i] = {key, &value};
    ++size_;
  }

  [[nodiscard]] T* find(address key) const noexcept {
    if (slots_ == nullptr) return nullptr;
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].value;
      if (slots_[i].key == address{}) return nullptr;
    }
  }

  /// Takes `key` out and returns what it stood for; null where it is absent.
  [[nodiscard]] T* extract(address key) noexcept {
    if (slots_ == nullptr || key == address{}) return nullptr;
    std::size_t i = home(key);
    while (slots_[i].key != key) {
      if (slots_[i].key == address{}) return nullptr;
      i = (i + 1) & mask_;
    }
    T* const found = slots_[i].value;
    for (std::size_t j = (i + 1) & mask_; slots_[j].key != address{}; j = (j + 1) & mask_) {
      // The entry at j may move into the hole at i unless its home lies cyclically in (i, j].
      if (((j - home(slots_[j].key)) & mask_) >= ((j - i) & mask_)) {
        slots_[i] = slots_[j];
        i = j;
      }
    }
    slots_[i] = {};
    --size_;
    return found;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  template <class F>
  void for_each(F&& f) const {
    if (slots_ == nullptr) return;
    for (std::size_t i = 0; i <= mask_; ++i) {
      if (slots_[i].key != address{}) f(*slots_[i].value);
    }
  }

 private:
  struct slot {
    address key{};
    T* value = nullptr;
  };
  static constexpr std::size_t first_slots = 1024;

  /// Fibonacci hashing (Knuth, TAOCP 6.4): addresses differ in their middle bits, the product's high bits mix them.
  [[nodiscard]] std::size_t home(address key) const noexcept {
    return static_cast<std::size_t>((to_integer(key) * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }

  [[nodiscard, gnu::cold]] bool grow() noexcept {
    std::size_t const count = slots_ == nullptr ? first_slots : (mask_ + 1) * 2;
    std::unique_ptr<slot[]> old(new (std::nothrow) slot[count]);
    if (old == nullptr) return false;
    std::swap(old, slots_);
    std::size_t const old_count = old == nullptr ? 0 : mask_ + 1;
    mask_ = count - 1;
    size_ = 0;
    for (std::size_t i = 0; i < old_count; ++i) {
      if (old[i].key != address{}) insert(old[i].key, *old[i].value);
    }
    return true;
  }

  std::unique_ptr<slot[]> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace gmlake
