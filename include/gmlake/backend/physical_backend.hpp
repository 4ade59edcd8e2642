#pragma once
/// PhysicalBackend: where physical memory and address ranges come from.
///
/// | call | does | errors |
/// | --- | --- | --- |
/// | `granularity()` | the granule: every size and alignment below is a multiple of it, a power of two | none |
/// | `create(n)` | n bytes of physical memory, not mapped anywhere | `out_of_memory` |
/// | `release(h)` | gives it back; it must not be mapped any more | |
/// | `reserve(n, a)` | an address range of n bytes, aligned to a (0: to the granule) | `out_of_addresses` |
/// | `unreserve(va, n)` | gives back a whole range, as reserved, nothing mapped in it | |
/// | `map(va, n, h)` | the whole of h, n bytes, at va inside a reserved range; a handle may be mapped many times | |
/// | `unmap(va, n)` | every mapping in [va, va + n); it spans whole mappings only and may span several | |
/// | `set_access(va, n, a)` | makes the mappings in [va, va + n) readable, or readable and writable | |
///
/// A handle is atomic: it can't be mapped in part. `unmap` does not wait for device work that uses the range: that is
/// the caller's to ensure. A call that fails changes nothing. No call throws. A backend need not be thread-safe: the
/// pool calls it under its lock.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

template <class B>
concept PhysicalBackend = std::movable<B> && requires(B& b, B const& c, bytes n, address va, handle h, access a) {
  { c.granularity() } noexcept -> std::same_as<bytes>;
  { b.create(n) } noexcept -> std::same_as<result<handle>>;
  { b.release(h) } noexcept -> std::same_as<result<void>>;
  { b.reserve(n, n) } noexcept -> std::same_as<result<address>>;
  { b.unreserve(va, n) } noexcept -> std::same_as<result<void>>;
  { b.map(va, n, h) } noexcept -> std::same_as<result<void>>;
  { b.unmap(va, n) } noexcept -> std::same_as<result<void>>;
  { b.set_access(va, n, a) } noexcept -> std::same_as<result<void>>;
};

/// Refinement: contents can be written and read from the host, synchronously, through any mapping.
template <class B>
concept CopyingBackend =
    PhysicalBackend<B> && requires(B& b, address va, std::span<std::byte> to, std::span<std::byte const> from) {
      { b.write(va, from) } noexcept -> std::same_as<result<void>>;
      { b.read(to, va) } noexcept -> std::same_as<result<void>>;
    };

/// Bytes of a device, as all its processes together left them.
struct device_memory {
  bytes free = 0;
  bytes total = 0;
};

/// Refinement: the device can be asked what it has left, so that a request beyond it fails before memory was taken.
template <class B>
concept MeasuredBackend = PhysicalBackend<B> && requires(B const& c) {
  { c.memory_info() } noexcept -> std::same_as<result<device_memory>>;
};

/// Refinement: a reservation is memory already, which can't be mapped elsewhere. Ranges are made no larger than the one
/// chunk that they are to hold, and nothing is stitched, whatever the policies say.
template <class B>
concept PlacedBackend = PhysicalBackend<B> && B::reservations_are_memory;

/// Refinement: the backend has a clock of its own, which its calls advance by what they would cost. Without it, calls
/// are timed with `std::chrono::steady_clock`.
template <class B>
concept ClockedBackend = PhysicalBackend<B> && requires(B const& c) {
  { c.now() } noexcept -> std::same_as<std::chrono::nanoseconds>;
};

}  // namespace gmlake
