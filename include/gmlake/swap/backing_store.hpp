#pragma once
/// BackingStore: what lies below pinned host memory, for copies that it has no room for.
///
/// | call | does | errors |
/// | --- | --- | --- |
/// | `capacity()` | how many bytes it may hold; 0: it takes nothing | none |
/// | `write(from, n)` | keeps n bytes of host memory | `out_of_memory` (full); its own |
/// | `read(to, s, offset, n)` | brings n of a slot's bytes back to host memory | its own |
/// | `release(s, n)` | forgets a slot that `write` gave for n bytes | |
///
/// Calls return when they are done. One that fails has kept nothing, and lost nothing that was kept. No call throws;
/// calls come under the swapping pool's lock.

#include <concepts>
#include <cstdint>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::swap {

/// Where a store keeps something.
enum class slot : std::uint64_t {};

template <class S>
concept BackingStore = std::movable<S> && requires(S& s, S const& c, address a, bytes n, slot where) {
  { c.capacity() } noexcept -> std::same_as<bytes>;
  { s.write(a, n) } noexcept -> std::same_as<result<slot>>;
  { s.read(a, where, n, n) } noexcept -> std::same_as<result<void>>;
  { s.release(where, n) } noexcept -> std::same_as<void>;
};

}  // namespace gmlake::swap
