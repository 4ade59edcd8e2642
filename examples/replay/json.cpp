#include "json.hpp"

#include <nlohmann/json.hpp>

namespace gmlake::replay_tool {

std::string to_json(run_record const& r) {
  pool_stats const& s = r.replay.stats;
  nlohmann::ordered_json calls;
  for (std::size_t i = 0; i < driver_call_names.size(); ++i)
    calls[std::string(driver_call_names[i])] = s.driver.lines[i].calls;
  nlohmann::ordered_json line = {
      {"trace", r.trace},
      {"preset", r.preset},
      {"backend", std::string(to_string(r.backend))},
      {"ok", r.ok},
      {"requested_peak", s.requested.peak},
      {"reserved_peak", s.reserved.peak},
      {"fragmentation", r.fragmentation()},
      {"driver_ms", milliseconds(s.driver.total().time)},
      {"driver_calls", std::move(calls)},
      {"stitches", s.stitches_made},
      {"stitch_hits", s.stitch_hits},
      {"waits", r.waits()},
      {"ops", r.replay.operations},
      {"ns_per_op", r.replay.ns_per_op()},
  };
  if (r.min_limit && r.min_limit->found) {
    line["min_limit"] = r.min_limit->limit;
    line["min_limit_driver_ms"] = milliseconds(r.min_limit->at_limit.stats.driver.total().time);
  } else if (r.min_limit) {
    line["min_limit"] = nullptr;
    line["min_limit_driver_ms"] = nullptr;
  }
  // A file's name need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gmlake::replay_tool
