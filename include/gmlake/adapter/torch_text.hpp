#pragma once
/// A device's figures and memory as text, for callers that have no C++: lines of `name value`, and of comma-separated
/// values. Sizes and addresses are decimal, in bytes.

#include <string>
#include <string_view>
#include <utility>

#include "gmlake/adapter/torch_device.hpp"

namespace gmlake {

/// All of the device's pools together.
[[nodiscard]] inline std::string stats_text(torch_device& d) {
  pool_stats const sum = d.stats();
  driver_usage::line const driver = sum.driver.total();
  std::uint64_t pools = 0;
  d.each_pool([&](torch_pool_id, torch_pool&) { ++pools; });
  plan_stats const planned = d.main().planned();
  std::string out;
  auto const line = [&out](std::string_view name, std::uint64_t value) {
    ((out += name) += ' ') += std::to_string(value);
    out += '\n';
  };
  line("requested", sum.requested.now);
  line("requested_peak", sum.requested.peak);
  line("live", sum.live.now);
  line("live_peak", sum.live.peak);
  line("reserved", sum.reserved.now);
  line("reserved_peak", sum.reserved.peak);
  line("mapped", sum.mapped.now);
  line("mapped_peak", sum.mapped.peak);
  line("limit", d.limit().limit());
  line("pools", pools);
  line("allocations", sum.allocations);
  line("deallocations", sum.deallocations);
  line("stitches_live", sum.stitches_live);
  line("stitches_cached", sum.stitches_cached);
  line("stitches_made", sum.stitches_made);
  line("stitch_hits", sum.stitch_hits);
  line("device_waits", sum.device_waits);
  line("host_waits", sum.host_waits);
  line("retries", sum.retries);
  line("out_of_memory", sum.failures);
  line("plans_made", planned.made);
  line("plans_followed", planned.followed);
  line("plans_left", planned.left);
  line("plan_placed", planned.placed);
  line("plan_squeezed", planned.squeezed);
  line("plan_displaced", planned.displaced);
  line("plan_astray", planned.astray);
  line("driver_calls", driver.calls);
  line("driver_ns", static_cast<std::uint64_t>(driver.time.count()));
  if (torch_swapper const* const swapper = d.swapper()) {
    torch_swap_figures const f = swapper->figures();
    line("swap_link_out_bytes_per_second", f.link.out.bytes_per_second);
    line("swap_link_in_bytes_per_second", f.link.in.bytes_per_second);
    line("page_link_out_bytes_per_second", f.link_now.out.bytes_per_second);
    line("page_link_in_bytes_per_second", f.link_now.in.bytes_per_second);
    line("swap_swappable", f.swaps.swappable);
    line("swap_absent", f.swaps.absent);
    line("swap_on_host", f.swaps.on_host);
    line("swap_departures", f.swaps.departures);
    line("swap_arrivals", f.swaps.arrivals);
    line("swap_called_back", f.swaps.called_back);
    line("swap_copied_out", f.swaps.copied_out);
    line("swap_copied_in", f.swaps.copied_in);
    line("swap_refusals", f.swaps.refusals);
    line("swap_failures", f.swaps.failures);
    line("page_steps", f.pages.steps);
    line("page_steps_by_schedule", f.pages.steps_by_schedule);
    line("page_schedules", f.pages.plans_made);
    line("page_schedules_failed", f.pages.plans_failed);
    line("page_schedules_reverted", f.pages.plans_reverted);
    line("page_steps_waiting", f.pages.steps_waiting);
    line("page_steps_host_bound", f.pages.steps_host_bound);
    line("page_schedules_kept", f.pages.plans_kept);
    line("page_planned_out", f.pages.planned_out);
    line("page_planned_in", f.pages.planned_in);
    line("page_evictions", f.pages.evictions);
    line("page_misses", f.pages.misses);
    line("page_late", f.pages.late);
    line("page_departures", f.pages.departures);
    line("page_turns_awaited", f.pages.turns_awaited);
    line("page_turns_passed", f.pages.turns_passed);
    line("page_host_waits", f.pages.host_waits);
    line("page_host_wait_ns", f.pages.host_wait_ns);
    if (f.expected) {
      line("page_expected_step_ns", static_cast<std::uint64_t>(f.expected->step.count()));
      line("page_least_step_ns", static_cast<std::uint64_t>(f.expected->least.count()));
      line("page_expected_stall_ns", static_cast<std::uint64_t>(f.expected->stalled.count()));
      line("page_expected_peak", f.expected->peak);
      line("page_expected_out", f.expected->out);
      line("page_expected_in", f.expected->in);
    }
  }
  return out;
}

/// `chunk`, `block`, `stitch` and `planned` lines, as the Python package reads them.
[[nodiscard]] inline std::string snapshot_text(torch_device& d) {
  std::string out;
  auto const put = [&out](auto... values) { (((out += ',') += std::to_string(values)), ...); };
  d.each_pool([&](torch_pool_id id, torch_pool& p) {
    std::string const name = ',' + std::to_string(id.first) + '.' + std::to_string(id.second);
    pool_snapshot const shot = p.snapshot();
    for (chunk_snapshot const& c : shot.chunks) {
      (out += "chunk") += name;
      put(to_integer(c.home), c.size);
      out += '\n';
    }
    static constexpr std::string_view states[] = {"free", "live", "taken", "hole"};
    for (block_snapshot const& b : shot.blocks) {
      (out += "block") += name;
      put(to_integer(b.begin), b.size, b.requested, to_integer(b.owner));
      ((out += ',') += states[static_cast<std::size_t>(b.state)]) += b.pending ? ",1\n" : ",0\n";
    }
    for (stitch_snapshot const& s : shot.stitches) {
      (out += "stitch") += name;
      put(to_integer(s.begin), s.size, s.requested, to_integer(s.owner));
      out += s.live ? ",1," : ",0,";
      for (extent_snapshot const& e : s.extents) {
        ((out += std::to_string(to_integer(e.home))) += ':') += std::to_string(e.size);
        out += &e == &s.extents.back() ? "" : ";";
      }
      out += '\n';
    }
    for (planned_block const& b : shot.planned_live) {
      (out += "planned") += name;
      put(to_integer(b.begin), b.size, b.requested, to_integer(b.owner));
      out += '\n';
    }
  });
  return out;
}

}  // namespace gmlake
