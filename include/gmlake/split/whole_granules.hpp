#pragma once
/// Another split policy, with large blocks rounded up to whole granules, so that they never share a chunk of one
/// granule: GMLake's rule (§3.2 of its paper: "a uniform chunk size of 2 MB").

#include "gmlake/core/alignment.hpp"
#include "gmlake/split/best_fit.hpp"
#include "gmlake/split/split_policy.hpp"

namespace gmlake {

template <SplitPolicy Base>
class whole_granules : public Base {
 public:
  [[nodiscard]] static bytes round(bytes n, bytes granule) noexcept {
    return n < granule ? Base::round(n, granule) : align_up(n, granule);
  }
};
static_assert(SplitPolicy<whole_granules<best_fit>>);

}  // namespace gmlake
