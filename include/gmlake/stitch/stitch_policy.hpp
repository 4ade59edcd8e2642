#pragma once
/// StitchPolicy: whether a request may be stitched, and from which extents.
///
/// | call | does |
/// | --- | --- |
/// | `stitches(n, grown_first)` | whether n bytes may be a stitch: before growing, or once growth has failed |
/// | `reuses(capacity, n)` | whether an idle stitch of that capacity may serve a block of n bytes |
/// | `choose(from, n, out)` | writes a stitch's extents to `out`, in its order; their sizes add up to n |
///
/// `choose` may reorder what it is given. Where the candidates fall short it says by how much, and `out` means nothing.

#include <concepts>
#include <cstddef>
#include <span>

#include "gmlake/lake/extent.hpp"

namespace gmlake {

/// Free memory that a stitch could take. Of `tails` only one can be used, first, and of `heads` one, last: what lies
/// before a tail or behind a head in its chunk is in use. The larger the free block, the earlier its extents stand.
struct stitch_candidates {
  std::span<extent> whole;  ///< whole chunks
  std::span<extent> tails;  ///< free ends of chunks
  std::span<extent> heads;  ///< free beginnings of chunks
};

struct stitch_choice {
  std::size_t count = 0;  ///< extents written
  bytes shortfall = 0;    ///< what was missing; 0: the choice is complete
};

template <class S>
concept StitchPolicy = std::movable<S> && requires(S const& s, stitch_candidates from, bytes n, std::span<extent> out) {
  { s.stitches(n, true) } noexcept -> std::same_as<bool>;
  { s.reuses(n, n) } noexcept -> std::same_as<bool>;
  { s.choose(from, n, out) } noexcept -> std::same_as<stitch_choice>;
};

}  // namespace gmlake
