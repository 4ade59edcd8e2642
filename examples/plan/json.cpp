#include "json.hpp"

#include <nlohmann/json.hpp>

namespace gmlake::tools {

std::string to_json(plan_record const& r) {
  nlohmann::ordered_json line = {{"input", r.input}, {"plan", std::string(to_string(r.kind))}};
  if (r.kind == record_kind::step) {
    line["step"] = r.step;
    line["laps"] = r.plan.laps;
    line["times"] = r.times;
  }
  line["ok"] = r.ok();
  if (!r.ok()) line["failure"] = r.failure;
  bool const solved = !r.solution.offsets.empty() || r.problem.buffers.empty();
  line["requests"] = r.requests;
  line["placed"] = r.problem.buffers.size();
  line["kept_bytes"] = r.kept;
  line["bound"] = r.bound;
  line["height"] = solved ? nlohmann::ordered_json(r.solution.height) : nullptr;
  line["ratio"] = solved ? nlohmann::ordered_json(r.ratio()) : nullptr;
  line["proven"] = r.proven;
  line["packer"] = r.packer;
  if (r.kind != record_kind::problem) {
    bool const never = r.problem.stream_gap == plan::problem::never;
    line["stream_gap"] = never ? nlohmann::ordered_json("never") : nlohmann::ordered_json(r.problem.stream_gap);
  }
  line["ms"] = r.ms;
  // A file's name need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gmlake::tools
