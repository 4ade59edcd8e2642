#include "swap_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "format.hpp"
#include "gmlake/swap/load.hpp"
#include "run.hpp"

namespace gmlake::tools {
namespace {

constexpr std::size_t samples = 1000;  // as many as a chart has room for

/// The step's time in equal parts, each with the highest values in it.
class sampled_step {
 public:
  explicit sampled_step(swap::time step) : step_(static_cast<double>(step.count())), made_(samples) {}

  /// `n` bytes from `begin` to `end`. A part that it only touches at its end is left alone.
  void raise(bytes report_swap::sample::* quantity, swap::time begin, swap::time end, bytes n) {
    auto const part = [&](double t) {
      return static_cast<std::size_t>(std::clamp(t / step_ * samples, 0.0, static_cast<double>(samples - 1)));
    };
    std::size_t const first = part(static_cast<double>(begin.count()));
    std::size_t const last = part(std::max(static_cast<double>(begin.count()), static_cast<double>(end.count()) - 1));
    for (std::size_t i = first; i <= last; ++i) made_[i].*quantity = std::max(made_[i].*quantity, n);
  }

  [[nodiscard]] std::vector<report_swap::sample> take() { return std::move(made_); }

 private:
  double step_;
  std::vector<report_swap::sample> made_;
};

std::vector<report_swap::sample> samples_of(swap_subject const& of, swap_schedule const& s) {
  swap::program const& p = of.step.program;
  swap::outcome const& o = s.planned.outcome;
  sampled_step step(o.total);
  auto const loads = swap::loads_of(p);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    step.raise(&report_swap::sample::load, o.starts[i], o.starts[i + 1], loads[i]);
  }
  auto const changes = changes_of(p, s.planned.schedule, of.on.channel, o);
  auto const resident = resident_at_begin(p, changes);
  bytes now = 0;
  for (std::size_t v = 0; v < resident.size(); ++v) now += resident[v] ? p.variables[v].size : 0;
  swap::time since{};
  for (swap::change const& c : changes) {
    if (c.at > since) step.raise(&report_swap::sample::resident, since, c.at, now);
    since = c.at;
    if (c.takes()) now += p.variables[c.variable].size;
    else now -= p.variables[c.variable].size;
  }
  step.raise(&report_swap::sample::resident, since, o.total, now);
  return step.take();
}

report_swap drawn(swap_subject const& of, std::string_view name, swap_schedule const& s, bytes limit) {
  swap::outcome const& o = s.planned.outcome;
  report_swap out{.name = std::string(name),
                  .limit = limit,
                  .peak = o.peak,
                  .step = milliseconds(o.total),
                  .moved = o.moved.out + o.moved.in,
                  .reserved_peak = s.pool.failed ? 0 : s.pool.reserved_peak,
                  .samples = samples_of(of, s),
                  .moves = {},
                  .stalls = {}};
  auto const transfer = [&](swap::time begin, swap::time takes) {
    return report_swap::transfer{milliseconds(begin), milliseconds((begin + takes) % o.total)};
  };
  for (std::size_t m = 0; m < s.planned.schedule.moves.size(); ++m) {
    swap::absence const& a = s.planned.schedule.moves[m].away;
    swap::variable const& v = of.step.program.variables[a.variable];
    swap::time const out_takes = v.has_copy ? swap::time::zero() : of.on.channel.out.time_of(v.size);
    // What dies is away until then.
    bool const back = swap::comes_back(of.step.program, a);
    swap::time const back_at = back ? o.ways_back[m] : o.starts[a.before];
    swap::time const back_takes = back ? of.on.channel.in.time_of(v.size) : swap::time::zero();
    out.moves.push_back({.block = of.allocations[a.variable],
                         .size = v.size,
                         .copied = !v.has_copy,
                         .out = transfer(o.ways_out[m], out_takes),
                         .back = transfer(back_at, back_takes)});
  }
  for (swap::stall const& each : o.stalls) {
    // The first operation's stands at the end of the step before.
    swap::time const until = each.operation == 0 ? o.total : o.starts[each.operation];
    out.stalls.push_back({milliseconds(until - each.length), milliseconds(each.length)});
  }
  return out;
}

}  // namespace

report_swap_section swap_section_of(swap_subject const& of) {
  double const slow = of.on.operation_time;
  std::string machine =
      "the link carries " + fixed(static_cast<double>(of.on.channel.out.bytes_per_second) / 1e9, 1) + " GB/s each way";
  if (slow != 1) machine += ", and operations take " + fixed(slow, slow < 10 ? 2 : 0) + " times as long as recorded";
  return {.name = of.trace,
          .machine = std::move(machine),
          .peak = of.peak,
          .step = milliseconds(of.time),
          .least_peak = of.least_peak,
          .limit = of.limit,
          .least_limit = of.least_limit,
          .least_step = milliseconds(of.least_time),
          .schedules = {}};
}

void add_schedules(swap_record const& r, report_swap_section& to) {
  std::string const name(r.by.name);
  if (r.without_stall) to.schedules.push_back(drawn(*r.of, name, *r.without_stall, 0));
  if (r.under_limit) to.schedules.push_back(drawn(*r.of, name + ", limited", *r.under_limit, r.of->limit));
}

}  // namespace gmlake::tools
