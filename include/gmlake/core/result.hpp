#pragma once
/// `result<T>`: a value or an `error`, with the spelling of C++23's `std::expected`.
///
/// Only for what the library returns: `T` is trivially destructible or nothrow-movable, so that no result ever throws.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "gmlake/core/error.hpp"

namespace gmlake {

/// Wraps an error on its way out: `return failure(errc::no_driver, "cuInit", code);`
struct unexpected {
  error value;
};
[[nodiscard]] constexpr unexpected failure(errc code, char const* call = "", int native = 0) noexcept {
  return {error{.code = code, .call = call, .native = native, .account = {}}};
}
[[nodiscard]] constexpr unexpected failure(error const& e) noexcept { return {e}; }

template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  constexpr result(T value) noexcept : has_value_(true) { std::construct_at(&value_, std::move(value)); }
  constexpr result(unexpected const& u) noexcept : has_value_(false) { std::construct_at(&error_, u.value); }
  constexpr result(result&& o) noexcept : has_value_(o.has_value_) {
    if (has_value_) std::construct_at(&value_, std::move(o.value_));
    else std::construct_at(&error_, o.error_);
  }
  result(result const&) = delete;
  result& operator=(result const&) = delete;
  // Returns nothing: nvcc takes a reference to a [[nodiscard]] class for a result that is being discarded.
  constexpr void operator=(result&& o) noexcept {  // NOLINT(misc-unconventional-assign-operator)
    if (this != &o) {
      std::destroy_at(this);
      std::construct_at(this, std::move(o));
    }
  }
  constexpr ~result() {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    if (has_value_) std::destroy_at(&value_);
  }

  [[nodiscard]] constexpr bool has_value() const noexcept { return has_value_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return has_value_; }
  [[nodiscard]] constexpr T& operator*() & noexcept { return value_; }
  [[nodiscard]] constexpr T const& operator*() const& noexcept { return value_; }
  [[nodiscard]] constexpr T&& operator*() && noexcept { return std::move(value_); }
  [[nodiscard]] constexpr T* operator->() noexcept { return &value_; }
  [[nodiscard]] constexpr T const* operator->() const noexcept { return &value_; }
  /// Precondition: no value.
  [[nodiscard]] constexpr gmlake::error const& error() const noexcept { return error_; }

 private:
  union {
    T value_;
    gmlake::error error_;
  };
  bool has_value_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;

  constexpr result() noexcept : none_(), has_value_(true) {}
  constexpr result(unexpected const& u) noexcept : error_(u.value), has_value_(false) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return has_value_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return has_value_; }
  /// Precondition: no value.
  [[nodiscard]] constexpr gmlake::error const& error() const noexcept { return error_; }

 private:
  union {
    char none_;  ///< success: an error would have to be zeroed each time
    gmlake::error error_;
  };
  bool has_value_;
};

}  // namespace gmlake
