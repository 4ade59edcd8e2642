#include "packers.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "format.hpp"
#include "gmlake/plan/exact.hpp"
#include "gmlake/plan/portfolio.hpp"
#include "gmlake/plan/validate.hpp"

namespace gmlake::tools {
namespace {

constexpr double exact_seconds = 30;
constexpr std::uint64_t search_work = 1'000'000'000;  // priority_search has no end of its own; some seconds

std::chrono::nanoseconds to_time(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

bool enough(packing_outcome const& o, packing_request const& r) {
  return o.solution.height <= o.bound || (r.capacity && o.solution.height <= *r.capacity);
}

void pack_exactly(plan::problem const& p, packing_request const& r, double spent, packing_outcome& o) {
  plan::exact_options options{.time_limit = to_time(std::max(0.0, r.seconds.value_or(exact_seconds) - spent))};
  if (r.work) options.node_limit = *r.work;
  plan::exact_search search(p, options);
  plan::exact_result found = r.capacity ? search.fit(*r.capacity) : search.minimise();
  o.bound = std::max(o.bound, found.bound);
  switch (found.outcome) {
    case plan::exact_outcome::found:
      if (o.solution.offsets.empty() || found.best.height < o.solution.height) {
        o.solution = std::move(found.best);
        o.packer = "exact_search";
      }
      o.proven = found.proven;
      return;
    case plan::exact_outcome::infeasible:
      if (!r.capacity) o.failure = "there is no solution: fixed buffers collide";
      return;
    case plan::exact_outcome::gave_up:
      if (o.solution.offsets.empty()) o.failure = "the exact search found nothing within its budget";
      return;
    case plan::exact_outcome::invalid: o.failure = "the problem breaks a rule"; return;
    case plan::exact_outcome::too_large:
      if (o.solution.offsets.empty()) {
        o.failure = "too large for the exact search: " + grouped(p.buffers.size()) + " buffers, or their lengths are";
      }
      return;
  }
}

void pack_by_name(plan::problem const& p, packing_request const& r, packing_outcome& o) {
  std::uint64_t const work = r.work.value_or(plan::budget::unlimited);
  o.packer = r.packer;
  if (r.packer.empty() || r.packer == "portfolio") {
    plan::packed found =
        plan::portfolio({.work = r.work.value_or(0), .seconds = r.seconds.value_or(plan::portfolio_options{}.seconds)})
            .pack(p);
    o.solution = std::move(found.solution);
    o.bound = std::max(o.bound, found.bound);
    o.packer = found.packer;
  } else if (r.packer == "lifetime_sweep") {
    o.solution = plan::lifetime_sweep::pack(p);
  } else if (r.packer == "lowest_offset") {
    o.solution = plan::lowest_offset({.work = work, .enough = o.bound}).pack(p);
  } else if (r.packer == "best_fit_decreasing") {
    o.solution = plan::best_fit_decreasing({.work = work}).pack(p);
  } else if (r.packer == "grouped") {
    o.solution = plan::grouped({.boundaries = r.boundaries, .work = work}).pack(p);
  } else if (r.packer == "large_first") {
    o.solution = plan::large_first({.work = r.work.value_or(search_work)}).pack(p);
  } else if (r.packer == "priority_search") {
    o.solution = plan::priority_search({.work = r.work.value_or(search_work), .enough = o.bound}).pack(p);
  } else {
    pack_exactly(p, r, 0, o);
  }
}

std::string describe(plan::fault const& f) {
  std::string text = plan::to_string(f.broken);
  if (f.first != plan::fault::nobody) text += ": buffer " + std::to_string(f.first);
  if (f.second != plan::fault::nobody) text += " and buffer " + std::to_string(f.second);
  return text;
}

}  // namespace

packing_outcome pack(plan::problem const& p, packing_request const& r) {
  packing_outcome o;
  auto const begin = std::chrono::steady_clock::now();
  auto const passed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  o.bound = std::max(plan::lower_bound(p), plan::stream_bound(p));
  pack_by_name(p, r, o);
  if (r.packer.empty() && r.search && !enough(o, r) && p.buffers.size() <= plan::exact_model::most_buffers) {
    pack_exactly(p, r, passed(), o);
  }
  o.ms = 1000 * passed();
  bool const solved = o.solution.offsets.size() == p.buffers.size();
  o.proven |= solved && o.solution.height == o.bound;
  auto const wrong = solved ? plan::validate(p, o.solution) : std::nullopt;
  auto const is_fixed = [&](auto number) { return number < p.buffers.size() && p.buffers[number].fixed.has_value(); };
  if (wrong && is_fixed(wrong->first) && is_fixed(wrong->second)) {
    o.failure = "there is no solution: fixed buffers collide: " + describe(*wrong);
  } else if (wrong) {
    o.failure = "not a solution: " + describe(*wrong);
  } else if (r.capacity && o.bound > *r.capacity) {
    o.failure = "nothing fits into " + grouped(*r.capacity) + " bytes: it takes " + grouped(o.bound) + " at least";
  } else if (solved && r.capacity && o.solution.height > *r.capacity) {
    o.failure = "takes " + grouped(o.solution.height) + " bytes, " + grouped(o.solution.height - *r.capacity) +
                " more than the capacity";
  }
  return o;
}

}  // namespace gmlake::tools
