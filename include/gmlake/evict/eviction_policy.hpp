#pragma once
/// EvictionPolicy: which idle stitches to unmap, and when. It keeps them in an order of its own, by the hook `by_use`.
///
/// | call | does |
/// | --- | --- |
/// | `insert(s)` | s has become idle |
/// | `erase(s)` | s serves a block again, or is being unmapped |
/// | `victim(held)` | which one to unmap, given what all idle stitches hold; null: none is too many |
/// | `next()` | which one would be the first to go, if one had to; null: there is none |

#include <concepts>
#include <cstddef>

#include "gmlake/lake/stitch.hpp"

namespace gmlake {

/// What the idle stitches hold.
struct idle_stitches {
  std::size_t count = 0;
  std::size_t mappings = 0;  ///< handles mapped
  bytes addresses = 0;
};

template <class E>
concept EvictionPolicy = std::movable<E> && requires(E& e, E const& c, stitch& s, idle_stitches const& held) {
  { e.insert(s) } noexcept -> std::same_as<void>;
  { e.erase(s) } noexcept -> std::same_as<void>;
  { c.victim(held) } noexcept -> std::same_as<stitch*>;
  { c.next() } noexcept -> std::same_as<stitch*>;
};

}  // namespace gmlake
