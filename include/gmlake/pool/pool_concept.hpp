#pragma once
/// Pool: what every preset offers, gmlake's own pools and the models of its peers alike, and all that replay needs.

#include <concepts>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/observe/stats.hpp"

namespace gmlake {

/// `allocate(n, s)` hands out n bytes for work queued on s; `deallocate(p)` takes them back, to be used again after
/// what is queued on s now. Errors: `out_of_memory`, `invalid_argument`; `unknown_pointer`, `double_free`.
template <class P>
concept Pool = requires(P& p, P const& c, bytes n, stream s, address a) {
  { p.allocate(n, s) } noexcept -> std::same_as<result<address>>;
  { p.deallocate(a) } noexcept -> std::same_as<result<void>>;
  { c.stats() } noexcept -> std::same_as<pool_stats>;
};

}  // namespace gmlake
