#include "report.hpp"

#include <algorithm>
#include <map>

#include "format.hpp"
#include "report_page.hpp"

namespace gmlake::tools {
namespace {

std::string bold(std::string const& text) { return "<b>" + escaped(text) + "</b>"; }

/// What the whole page shows: what each preset loses on average.
std::string headline(report const& r) {
  struct sum {
    double lost = 0;
    double count = 0;
  };
  std::map<std::string, sum> losses;
  std::vector<std::string> order;
  for (report_section const& s : r.sections) {
    for (report_run const& run : s.runs) {
      if (!run.failure.empty()) continue;
      if (!losses.contains(run.name)) order.push_back(run.name);
      losses[run.name].lost += run.lost();
      losses[run.name].count += 1;
    }
  }
  if (order.empty()) return r.sections.empty() ? "" : "No replay completed.";
  auto const mean = [&](std::string const& name) { return losses[name].lost / losses[name].count; };
  std::string out = std::string("At the peak ") + bold(order.front()) + " loses " + percent(mean(order.front())) +
                    " of the memory it reserves";
  for (std::size_t i = 1; i < order.size(); ++i) {
    out += (i == 1                  ? "; "
            : i + 1 == order.size() ? " and "
                                    : ", ") +
           bold(order[i]) + (i == 1 ? " loses " : " ") + percent(mean(order[i]));
  }
  return out + (r.sections.size() > 1 ? ", on average." : ".");
}

/// How the first preset compares with the one that reserves the most.
std::string comparison(report_section const& s) {
  if (s.runs.empty() || !s.runs.front().failure.empty()) return {};
  report_run const& first = s.runs.front();
  auto const most = std::max_element(s.runs.begin(), s.runs.end(), [](report_run const& a, report_run const& b) {
    return (a.failure.empty() ? a.reserved_peak : 0) < (b.failure.empty() ? b.reserved_peak : 0);
  });
  std::string out = bold(first.name) + " serves it from " + readable(first.reserved_peak);
  if (most->reserved_peak <= first.reserved_peak) return out + ".";
  double const times =
      static_cast<double>(most->reserved_peak) / static_cast<double>(std::max<bytes>(1, first.reserved_peak));
  return out + ", " + readable(most->reserved_peak - first.reserved_peak) + " less than " + bold(most->name) +
         ", which reserves " + readable(most->reserved_peak) + " (" + fixed(times, 2) + " times as much).";
}

std::string bar(report_run const& r, bytes widest) {
  auto const width = [&](bytes n) {
    return fixed(100 * static_cast<double>(n) / static_cast<double>(std::max<bytes>(1, widest)), 1);
  };
  bytes const used = std::min(r.requested_peak, r.reserved_peak);
  return "<span class=\"bar-cell\" aria-hidden=\"true\"><i class=\"a\" style=\"width:" + width(used) +
         "%\"></i><i class=\"b\" style=\"width:" + width(r.reserved_peak - used) + "%\"></i></span>";
}

std::string table(report const& r) {
  bool const limits = std::any_of(r.sections.begin(), r.sections.end(), [](report_section const& s) {
    return std::any_of(s.runs.begin(), s.runs.end(), [](report_run const& run) { return run.min_limit != 0; });
  });
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>preset</th><th>peak reserved, MiB</th><th>lost</th>"
      "<th class=\"wide\">driver calls</th><th>driver, ms</th><th class=\"wide\">stitches</th><th "
      "class=\"wide\">reused</th>";
  if (!r.live) out += "<th class=\"wide\">ns a call</th>";
  if (limits) out += "<th>smallest limit, MiB</th>";
  out += "</tr></thead><tbody>";
  for (report_section const& s : r.sections) {
    bytes widest = 0;
    for (report_run const& run : s.runs) widest = std::max(widest, run.reserved_peak);
    out += "<tr class=\"trace\"><th colspan=\"9\">" + escaped(s.name) +
           " <span class=\"soft\" style=\"font-weight:400\">peak requested " + mebibytes(s.requested_peak) +
           " MiB</span></th></tr>";
    for (report_run const& run : s.runs) {
      out += std::string("<tr") + (&run == &s.runs.front() ? " class=\"first\"" : "") + "><td>" + escaped(run.name) +
             (run.failure.empty() ? "" : " <span class=\"bad\">failed</span>") + "</td><td>" +
             mebibytes(run.reserved_peak) + bar(run, widest) + "</td><td>" + percent(run.lost()) +
             "</td><td class=\"wide\">" + grouped(run.driver_calls) + "</td><td>" + fixed(run.driver_ms, 1) +
             "</td><td class=\"wide\">" + grouped(run.stitches) + "</td><td class=\"wide\">" +
             grouped(run.stitch_hits) + "</td>";
      if (!r.live) out += "<td class=\"wide\">" + fixed(run.ns_per_op, 0) + "</td>";
      if (limits) out += "<td>" + (run.min_limit != 0 ? mebibytes(run.min_limit) : std::string("-")) + "</td>";
      out += "</tr>";
    }
  }
  return out + "</tbody></table></div>";
}

std::string maps(report_section const& s) {
  bytes width = 0;
  bool stitched = false, pending = false;
  for (report_run const& r : s.runs) {
    if (!r.peak) continue;
    width = std::max(width, mapped_length(*r.peak));
    stitched |= std::any_of(r.peak->stitches.begin(), r.peak->stitches.end(), [](auto const& v) { return v.live; });
    pending |= std::any_of(r.peak->blocks.begin(), r.peak->blocks.end(), [](auto const& b) { return b.pending; });
  }
  if (width == 0) return {};
  std::string const when = s.events > 0 ? "at the peak, event " + grouped(s.peak_event + 1) : "now";
  std::string out =
      "<h3>Every byte held " + when + ", in order of address</h3><ul class=\"legend\"><li><i class=\"l\"></i>live</li>";
  if (stitched) out += "<li><i class=\"s\"></i>taken for a stitch, and the stitch's contiguous view below</li>";
  if (pending) out += "<li><i class=\"p\"></i>freed, its stream not yet past it</li>";
  out += "<li><i class=\"f\"></i>free</li></ul>";
  for (report_run const& r : s.runs) {
    if (r.peak) out += render_map(r, width);
  }
  return out;
}

std::string section(report_section const& s) {
  bytes top = s.requested_peak;
  for (report_run const& r : s.runs) top = std::max(top, r.reserved_peak);
  top += top / 24;
  std::string out = "<section><h2>" + escaped(s.name) + "</h2><p>" + comparison(s) + " <span class=\"soft\">" +
                    grouped(s.allocations) + " allocations" +
                    (s.steps != 0 ? " in " + grouped(s.steps) + " steps" : "") + ", at most " +
                    readable(s.requested_peak) +
                    " requested at once.</span></p><h3>Memory over the trace</h3><ul class=\"legend\">"
                    "<li><i class=\"l\"></i>live</li><li><i class=\"f\"></i>reserved, not live</li>"
                    "<li><i class=\"dash\"></i>peak requested</li></ul><div class=\"panels" +
                    (s.runs.size() == 1 ? " one" : "") + "\">";
  for (report_run const& r : s.runs) out += render_chart(s, r, top);
  return out + "</div>" + maps(s) + "</section>";
}

std::string scaled(double by) {
  if (by == 1) return {};
  return ", sizes divided by " + fixed(by, by == static_cast<double>(static_cast<long>(by)) ? 0 : 2);
}

}  // namespace

std::string escaped(std::string const& text) {
  std::string out;
  for (char const c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string render(report const& r) {
  bool const swaps_only = r.sections.empty() && !r.swaps.empty();
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>";
  out += r.live ? "gmlake</title><style>" : "gmlake-replay</title><style>";
  out += page_style;
  out += std::string("</style></head><body><main><h1>") +
         (swaps_only ? "What training steps swap to the host, and when"
          : r.live   ? "GPU memory that a program needs, and what gmlake takes"
                     : "GPU memory that traces need, and what allocators take") +
         "</h1>";
  if (r.live && r.sections.empty()) {
    out += "<p>No memory has been allocated on any device.</p>";
  } else if (!swaps_only) {
    out += "<p>" + headline(r) + "</p><p class=\"soft\">" +
           (r.live ? "Live, on the " : "Replayed by gmlake-replay on the ") + escaped(r.backend) + " backend" +
           scaled(r.scale) +
           ". Lost is what is reserved beyond the peak requested, as a part of what is reserved.</p>" + table(r);
  }
  if (!r.swaps.empty()) {
    out +=
        "<p class=\"soft\">Planned and simulated by gmlake-replay" + scaled(r.scale) +
        ". Each trace's typical step, whose blocks leave between two accesses and are back before the second. At most "
        "is what no schedule can beat.</p>" +
        render_swap_table(r.swaps);
  }
  for (report_section const& s : r.sections) out += section(s);
  for (report_swap_section const& s : r.swaps) out += render_swaps(s);
  out += "</main><script>";
  out += page_script;
  return out + "</script></body></html>\n";
}

}  // namespace gmlake::tools
