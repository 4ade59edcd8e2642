#pragma once
/// GrowthPolicy: in which chunks to create memory that is missing. Small chunks fragment less, large ones cost less to
/// create and to stitch.
///
/// | call | does |
/// | --- | --- |
/// | `chunk_size(g)` | the size of the chunks that make up g.deficit; asked once a growth |
/// | `separate()` | whether each growth gets a range of its own, which never coalesces with another's |
///
/// The pool rounds the answer up to granules, creates as many as the deficit needs, and makes the last one smaller
/// where the limit asks for it.

#include <concepts>

#include "gmlake/core/types.hpp"

namespace gmlake {

/// What is known when memory must be created; sizes in bytes.
struct growth {
  bytes deficit = 0;   ///< what is missing
  bytes reserved = 0;  ///< what the pool holds
  bytes headroom = 0;  ///< what it may still create under its limit
  bytes freed = 0;     ///< what has been freed since the growth before
  bytes granule = 0;
  bool movable = false;  ///< for a block whose memory is taken away and replaced
};

template <class G>
concept GrowthPolicy = std::movable<G> && requires(G& g, growth const& now) {
  { g.chunk_size(now) } noexcept -> std::same_as<bytes>;
  { g.separate() } noexcept -> std::same_as<bool>;
};

}  // namespace gmlake
