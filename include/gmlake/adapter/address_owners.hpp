#pragma once
/// Whose an address is: for a process with several pools, where a pointer comes back without a word on which pool gave
/// it out. Every reservation is claimed for a number, in granules of 2 MiB; looking up takes two loads and no lock.
///
/// The table covers 128 TiB, all that a process can address; what lies beyond, or is claimed by nobody, is number 0's.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "gmlake/core/alignment.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

class address_owners {
 public:
  using number = std::uint16_t;

  address_owners() noexcept = default;
  address_owners(address_owners const&) = delete;
  address_owners& operator=(address_owners const&) = delete;
  ~address_owners() {
    for (std::atomic<page*>& p : pages_) delete p.load(std::memory_order_relaxed);
  }

  [[nodiscard]] number of(address at) const noexcept {
    std::uintptr_t const granule = to_integer(at) / granule_size;
    if (granule / granules_a_page >= pages_.size()) return 0;
    page const* const p = pages_[granule / granules_a_page].load(std::memory_order_acquire);
    return p == nullptr ? number{0} : (*p)[granule % granules_a_page].load(std::memory_order_relaxed);
  }

  /// [at, at + n) is `owner`'s from now on; 0 gives it back. False for want of host memory or beyond the table: then
  /// some of it may be. Preconditions: whole granules; nobody else's.
  [[nodiscard]] bool claim(address at, bytes n, number owner) noexcept {
    std::uintptr_t const end = (to_integer(at) + n) / granule_size;
    for (std::uintptr_t g = to_integer(at) / granule_size; g < end; ++g) {
      if (g / granules_a_page >= pages_.size()) return false;
      page* const p = page_for(g / granules_a_page);
      if (p == nullptr) return false;
      (*p)[g % granules_a_page].store(owner, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  static constexpr bytes granule_size = 2_MiB;  ///< CUDA's reservations are aligned to it
  static constexpr std::size_t granules_a_page = 8192;
  using page = std::array<std::atomic<number>, granules_a_page>;

  [[nodiscard]] page* page_for(std::size_t i) noexcept {
    if (page* const p = pages_[i].load(std::memory_order_acquire)) return p;
    page* expected = nullptr;
    auto* const fresh = new (std::nothrow) page{};
    if (fresh == nullptr) return nullptr;
    if (pages_[i].compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return fresh;
    delete fresh;
    return expected;
  }

  std::array<std::atomic<page*>, 8192> pages_{};
};

}  // namespace gmlake
