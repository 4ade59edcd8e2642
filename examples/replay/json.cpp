#include "json.hpp"

#include <nlohmann/json.hpp>

namespace gmlake::tools {
namespace {

nlohmann::ordered_json json_of(plan_figures const& p) {
  return {{"made", p.made},           {"placed", p.placed}, {"squeezed", p.squeezed},
          {"displaced", p.displaced}, {"astray", p.astray}, {"planning_ms", milliseconds(p.planning)}};
}

nlohmann::ordered_json json_of(steady_part const& s) {
  nlohmann::ordered_json out = {
      {"from_step", steady_step},
      {"operations", s.operations},
      {"ns_per_op", s.ns_per_op()},
      {"driver_calls", s.driver_calls},
      {"driver_ms", milliseconds(s.driver_time)},
      {"stitches", s.stitches},
      {"stitch_hits", s.stitch_hits},
      {"reserved_at_end", s.reserved},
      {"planned_share", nullptr},
  };
  if (s.planned_share) out["planned_share"] = *s.planned_share;
  return out;
}

}  // namespace

std::string to_json(run_record const& r, bool calls) {
  pool_stats const& s = r.replay.stats;
  nlohmann::ordered_json counts, times;
  for (std::size_t i = 0; i < driver_call_names.size(); ++i) {
    counts[std::string(driver_call_names[i])] = s.driver.lines[i].calls;
    times[std::string(driver_call_names[i])] = milliseconds(s.driver.lines[i].time);
  }
  nlohmann::ordered_json line = {
      {"trace", r.trace},
      {"preset", r.preset},
      {"backend", std::string(to_string(r.backend))},
      {"ok", r.ok},
      {"requested_peak", s.requested.peak},
      {"reserved_peak", s.reserved.peak},
      {"fragmentation", r.fragmentation()},
      {"driver_ms", milliseconds(s.driver.total().time)},
      {"driver_calls", std::move(counts)},
      {"stitches", s.stitches_made},
      {"stitch_hits", s.stitch_hits},
      {"waits", r.waits()},
      {"ops", r.replay.operations},
      {"ns_per_op", r.replay.ns_per_op()},
      {"plans", r.plans ? json_of(*r.plans) : nlohmann::ordered_json()},
      {"steady", r.steady ? json_of(*r.steady) : nlohmann::ordered_json()},
  };
  if (r.min_limit && r.min_limit->found) {
    line["min_limit"] = r.min_limit->limit;
    line["min_limit_driver_ms"] = milliseconds(r.min_limit->at_limit.stats.driver.total().time);
  } else if (r.min_limit) {
    line["min_limit"] = nullptr;
    line["min_limit_driver_ms"] = nullptr;
  }
  if (calls) line["driver_call_ms"] = std::move(times);
  // A file's name need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gmlake::tools
