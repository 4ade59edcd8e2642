#pragma once
/// Chunks sized by four proportions, except those for movable blocks, so that neither a small pool nor a nearly full
/// one is left with coarse memory:
///
/// - to the pool: what a partly used chunk can waste is a share of the whole;
/// - to the deficit: a huge block is stitched from few large chunks, which the next huge block will take again;
/// - to the run of growths with hardly a free in between, as when a program loads its weights: such memory stays, so it
///   is made in ever larger pieces, which cost next to nothing to create;
/// - to the headroom under the limit: the closer the limit, the finer the chunks, down to where the last request fits.

#include <algorithm>
#include <bit>

#include "gmlake/core/alignment.hpp"
#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {

struct adaptive_options {
  bytes smallest = 24_MiB;              ///< a chunk's size in a small pool
  bytes largest = 32_MiB;               ///< in a large one
  bytes chunks_a_pool = 300;            ///< in between: the pool's size divided by this
  bytes chunks_a_deficit = 64;          ///< or the deficit divided by this, if that is more, up to
  bytes largest_for_deficit = 128_MiB;  ///< this, and
  bytes deficits_a_pool = 128;          ///< the pool's size divided by this
  bytes largest_in_run = 512_MiB;       ///< while growths follow each other with hardly a free, up to this, and
  bytes runs_a_pool = 256;              ///< the pool's size divided by this
  bytes frees_break_run = 20;           ///< a run ends when more than the deficit divided by this was freed meanwhile
  bytes smallest_under_limit = 4_MiB;   ///< with little headroom left
  bytes chunks_in_headroom = 320;       ///< the headroom divided by this bounds every chunk

  /// For movable blocks, one size under one limit, so that a chunk which others have when its block comes back can be
  /// replaced by any: a power of two, of at most
  bytes largest_movable = 8_MiB;
  bytes movable_chunks_in_limit = 1400;  ///< and the limit divided by this, since a block wastes its last chunk's rest

  /// Chunks of one size throughout.
  [[nodiscard]] static constexpr adaptive_options fixed(bytes size) noexcept {
    return {.smallest = size,
            .largest = size,
            .largest_for_deficit = 0,
            .largest_in_run = 0,
            .smallest_under_limit = size,
            .largest_movable = size,
            .movable_chunks_in_limit = 1};
  }
};

class adaptive_chunks {
 public:
  explicit adaptive_chunks(adaptive_options o = {}) noexcept : options_(o) {}

  [[nodiscard]] bytes chunk_size(growth const& g) noexcept {
    adaptive_options const& o = options_;
    if (g.movable) {
      bytes const share = std::bit_floor((g.reserved + g.headroom) / o.movable_chunks_in_limit);
      return std::max(g.granule, align_down(std::min(share, o.largest_movable), g.granule));
    }
    bytes const base = std::clamp(g.reserved / o.chunks_a_pool, o.smallest, o.largest);
    bytes const in_run = std::max(base, std::min(o.largest_in_run, g.reserved / o.runs_a_pool));
    run_ = g.freed <= g.deficit / o.frees_break_run ? std::clamp(run_ * 2, base, in_run) : base;
    bytes const for_deficit =
        std::min({g.deficit / o.chunks_a_deficit, o.largest_for_deficit, g.reserved / o.deficits_a_pool});
    bytes const near_limit = std::max(g.headroom / o.chunks_in_headroom, o.smallest_under_limit);
    return std::max(g.granule, align_down(std::min(std::max(run_, for_deficit), near_limit), g.granule));
  }
  [[nodiscard]] bool separate() const noexcept { return false; }

 private:
  adaptive_options options_;
  bytes run_ = 0;
};
static_assert(GrowthPolicy<adaptive_chunks>);

}  // namespace gmlake
