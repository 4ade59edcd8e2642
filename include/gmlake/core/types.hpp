#pragma once
/// The vocabulary that every layer shares: sizes, addresses, handles, streams.
///
/// Addresses, handles and streams are distinct enumerations, so that none can be passed for another and no `void*`
/// appears beneath the adapters. This header must stay free of everything but the standard library.

#include <cstddef>
#include <cstdint>

namespace gmlake {

/// A size or an offset in bytes.
using bytes = std::size_t;

/// A virtual address on the device (or, with a host backend, in this process). `address{}` is no address.
enum class address : std::uintptr_t {};

/// A piece of physical memory as its backend names it: CUDA's `CUmemGenericAllocationHandle`. `handle{}` is none.
enum class handle : std::uint64_t {};

/// A queue of device work as its stream policy names it: CUDA's `CUstream`. `stream{}` is the default stream.
enum class stream : std::uintptr_t {};

/// What a mapping allows its readers.
enum class access : std::uint8_t { none, read, read_write };

[[nodiscard]] constexpr std::uintptr_t to_integer(address a) noexcept { return static_cast<std::uintptr_t>(a); }
[[nodiscard]] constexpr std::uint64_t to_integer(handle h) noexcept { return static_cast<std::uint64_t>(h); }
[[nodiscard]] constexpr std::uintptr_t to_integer(stream s) noexcept { return static_cast<std::uintptr_t>(s); }

[[nodiscard]] inline void* to_pointer(address a) noexcept { return reinterpret_cast<void*>(to_integer(a)); }
[[nodiscard]] inline address to_address(void const* p) noexcept {
  return static_cast<address>(reinterpret_cast<std::uintptr_t>(p));
}

[[nodiscard]] constexpr address operator+(address a, bytes n) noexcept {
  return static_cast<address>(to_integer(a) + n);
}
[[nodiscard]] constexpr address operator-(address a, bytes n) noexcept {
  return static_cast<address>(to_integer(a) - n);
}
/// The distance from `b` up to `a`; `b` must not lie above `a`.
[[nodiscard]] constexpr bytes operator-(address a, address b) noexcept { return to_integer(a) - to_integer(b); }

inline namespace literals {
[[nodiscard]] constexpr bytes operator""_KiB(unsigned long long n) { return n << 10; }
[[nodiscard]] constexpr bytes operator""_MiB(unsigned long long n) { return n << 20; }
[[nodiscard]] constexpr bytes operator""_GiB(unsigned long long n) { return n << 30; }
[[nodiscard]] constexpr bytes operator""_TiB(unsigned long long n) { return n << 40; }
}  // namespace literals

}  // namespace gmlake
