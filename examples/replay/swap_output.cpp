#include "swap_output.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "format.hpp"
#include "run.hpp"
#include "text_table.hpp"

namespace gmlake::tools {
namespace {

using json = nlohmann::ordered_json;
using row = text_row;
constexpr std::size_t names = 2;  // columns that stand left-aligned, before the numbers

double part(bytes n, bytes of) { return of == 0 ? 0 : static_cast<double>(n) / static_cast<double>(of); }
double ratio(swap::time t, swap::time to) {
  return to == swap::time::zero() ? 0 : static_cast<double>(t.count()) / static_cast<double>(to.count());
}

/// Of the peak.
double saved(swap_subject const& of, bytes peak) { return part(of.peak - std::min(peak, of.peak), of.peak); }
/// Of what the bound allows; all of nothing.
double of_bound(swap_subject const& of, bytes peak) {
  double const most = saved(of, of.least_peak);
  return most > 0 ? saved(of, peak) / most : 1;
}

/// What the planner packs it into, what the pool reserved, and by how much that exceeds the plan's peak.
row pool_cells(swap_schedule const& s) {
  if (s.pool.failed) return {mebibytes(s.packed), "failed", "-"};
  bytes const planned = s.planned.outcome.peak;
  return {mebibytes(s.packed), mebibytes(s.pool.reserved_peak),
          percent(part(s.pool.reserved_peak - std::min(planned, s.pool.reserved_peak), planned))};
}

row first_cells(swap_record const& r, swap_record const* before) {
  bool const another = before == nullptr || before->of != r.of;
  return {another ? r.of->trace : "", std::string(r.by.name)};
}

void append(row& to, row const& more) { to.insert(to.end(), more.begin(), more.end()); }

std::string peak_table(std::vector<swap_record const*> const& records) {
  std::vector<row> rows = {{"trace", "without stalls", "steps alike", "step ms", "peak MiB", "lowest MiB", "saved",
                            "at most", "of that", "moved MiB", "packed MiB", "pool MiB", "over plan"}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    swap_subject const& of = *records[i]->of;
    swap_schedule const& s = *records[i]->without_stall;
    swap::outcome const& o = s.planned.outcome;
    row one = first_cells(*records[i], i == 0 ? nullptr : records[i - 1]);
    append(one,
           {std::to_string(of.step.alike) + " of " + std::to_string(of.step.alike + of.step.others),
            fixed(milliseconds(of.time), 1), mebibytes(of.peak), mebibytes(o.peak), percent(saved(of, o.peak)),
            percent(saved(of, of.least_peak)), percent(of_bound(of, o.peak)), mebibytes(o.moved.out + o.moved.in)});
    append(one, pool_cells(s));
    rows.push_back(std::move(one));
  }
  return text_table(rows, names);
}

std::string limit_table(std::vector<swap_record const*> const& records) {
  std::vector<row> rows = {{"trace", "under a limit", "limit MiB", "step ms", "x unlimited", "at least ms", "x that",
                            "stalls", "moved MiB", "peak MiB", "packed MiB", "pool MiB", "over plan"}};
  for (std::size_t i = 0; i < records.size(); ++i) {
    swap_subject const& of = *records[i]->of;
    row one = first_cells(*records[i], i == 0 ? nullptr : records[i - 1]);
    one.push_back(mebibytes(of.limit));
    if (!records[i]->under_limit) {
      one.resize(rows.front().size(), "-");
    } else {
      swap_schedule const& s = *records[i]->under_limit;
      swap::outcome const& o = s.planned.outcome;
      append(one, {fixed(milliseconds(o.total), 1), fixed(ratio(o.total, of.time), 3),
                   fixed(milliseconds(of.least_time), 1), fixed(ratio(o.total, of.least_time), 3),
                   grouped(o.stalls.size()), mebibytes(o.moved.out + o.moved.in), mebibytes(o.peak)});
      append(one, pool_cells(s));
    }
    rows.push_back(std::move(one));
  }
  return text_table(rows, names);
}

json json_of(swap_subject const& of, swap_schedule const& s) {
  swap::outcome const& o = s.planned.outcome;
  json out = {{"peak", o.peak},
              {"saved", saved(of, o.peak)},
              {"of_bound", nullptr},
              {"step_ms", milliseconds(o.total)},
              {"over_unlimited", ratio(o.total, of.time)},
              {"over_bound", nullptr},
              {"stalls", o.stalls.size()},
              {"stalled_ms", milliseconds(o.stalled)},
              {"moves", s.planned.schedule.moves.size()},
              {"moved_out", o.moved.out},
              {"moved_in", o.moved.in},
              {"weights", nullptr},
              {"packed_peak", s.packed},
              {"reserved_peak", s.pool.reserved_peak},
              {"rehearsed_steps", s.pool.steps}};
  if (s.weights) {
    out["weights"] = {
        {"doa", s.weights->doa}, {"aoa", s.weights->aoa}, {"wdoa", s.weights->wdoa}, {"swdoa", s.weights->swdoa}};
  }
  return out;
}

}  // namespace

std::string to_swap_table(std::vector<swap_record> const& records) {
  std::vector<swap_record const*> peaks, limits;
  for (swap_record const& r : records) {
    if (r.without_stall) peaks.push_back(&r);
    if (r.by.keeps_limit()) limits.push_back(&r);
  }
  std::string out;
  if (!peaks.empty()) out += peak_table(peaks);
  if (!peaks.empty() && !limits.empty()) out += "\n";
  if (!limits.empty()) out += limit_table(limits);
  return out;
}

std::string to_json(swap_record const& r) {
  swap_subject const& of = *r.of;
  json line = {{"trace", of.trace},
               {"scheduler", std::string(r.by.name)},
               {"ok", r.ok()},
               {"step", of.step.first + 1},
               {"steps_alike", of.step.alike},
               {"steps", of.step.alike + of.step.others},
               {"operations", of.step.program.operations.size()},
               {"peak", of.peak},
               {"step_ms", milliseconds(of.time)},
               {"bytes_per_second", of.on.channel.out.bytes_per_second},
               {"slow", of.on.operation_time},
               {"latency_us", static_cast<double>(of.on.channel.out.latency.count()) / 1e3},
               {"least_peak", of.least_peak},
               {"limit", of.limit},
               {"least_limit", of.least_limit},
               {"least_ms", nullptr},
               {"without_stall", nullptr},
               {"under_limit", nullptr}};
  if (of.limit >= of.least_limit) line["least_ms"] = milliseconds(of.least_time);
  if (r.without_stall) {
    line["without_stall"] = json_of(of, *r.without_stall);
    line["without_stall"]["of_bound"] = of_bound(of, r.without_stall->planned.outcome.peak);
  }
  if (r.under_limit) {
    line["under_limit"] = json_of(of, *r.under_limit);
    line["under_limit"]["over_bound"] = ratio(r.under_limit->planned.outcome.total, of.least_time);
  }
  // A file's name need not be UTF-8.
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gmlake::tools
