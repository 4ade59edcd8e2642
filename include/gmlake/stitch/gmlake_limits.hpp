#pragma once
/// GMLake's rule (§4 of its paper, "best fit"; the limits are its implementation's): whole free blocks from the largest
/// down until the request is covered, the last one cut.

#include <limits>

#include "gmlake/stitch/stitch_policy.hpp"

namespace gmlake {

struct gmlake_options {
  bytes frag_limit = 2_MiB;   ///< `fragLimit`: smaller requests are never stitched
  double reuse_limit = 10.0;  ///< `reuseLimit`: an idle stitch serves requests down to its size divided by this
  int defrag_level = 0;  ///< `defragLevel`: 0 stitches whenever free memory suffices, 1 only once growth has failed
};

class gmlake_limits {
 public:
  explicit gmlake_limits(gmlake_options o = {}) noexcept : options_(o) {}

  [[nodiscard]] bool stitches(bytes n, bool grown_first) const noexcept {
    return n >= options_.frag_limit && (options_.defrag_level == 0 || grown_first);
  }
  [[nodiscard]] bool reuses(bytes capacity, bytes n) const noexcept {
    return static_cast<double>(capacity) <= static_cast<double>(n) * options_.reuse_limit;
  }
  [[nodiscard]] stitch_choice choose(stitch_candidates from, bytes n, std::span<extent> out) const noexcept {
    stitch_choice choice{0, n};
    for (extent const& e : from.whole) {
      if (choice.shortfall == 0) break;
      bytes const part = e.size < choice.shortfall ? e.size : choice.shortfall;
      out[choice.count++] = {e.of, 0, part};
      choice.shortfall -= part;
    }
    return choice;
  }

 private:
  gmlake_options options_;
};
static_assert(StitchPolicy<gmlake_limits>);

}  // namespace gmlake
