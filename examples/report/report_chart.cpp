#include <algorithm>

#include "charts.hpp"
#include "format.hpp"
#include "report.hpp"

namespace gmlake::tools {

using namespace charts;

namespace {

std::string event_labels(std::uint64_t events) {
  std::vector<tick> ticks = {{0, "0"}};
  double const last = static_cast<double>(events);
  for (double const v : round_values(last, 4.5)) {
    if (v < 0.82 * last) ticks.push_back({v / last, short_number(v)});
  }
  std::string out = labels(ticks, "x", "left");
  return out.insert(out.rfind("</div>"), "<span class=\"name\">events</span>");
}

}  // namespace

std::string render_chart(report_section const& s, report_run const& r, bytes top) {
  auto const& samples = r.series.samples;
  std::string out = "<figure class=\"panel\"><figcaption><b>" + escaped(r.name) + "</b><span class=\"key\">" +
                    readable(r.reserved_peak) + " reserved, " + percent(r.lost()) +
                    " lost</span><span class=\"now\"></span></figcaption>";
  if (samples.empty() || top == 0) return out + "<p class=\"none\">" + escaped(r.failure) + "</p></figure>";

  // A replay that failed has samples up to the failure only.
  std::size_t const per_sample = r.series.events_per_sample;
  std::size_t const all = std::max<std::size_t>(2, (r.series.events + per_sample - 1) / per_sample);
  double const right = static_cast<double>(all - 1);
  auto const ticks = size_ticks(top);
  std::string const reserved = line(samples, &trace::time_series::sample::reserved, top);
  std::string const live = line(samples, &trace::time_series::sample::live, top);

  out += "<div class=\"plot\" data-top=\"" + std::to_string(top) + "\" data-step=\"" + std::to_string(per_sample) +
         "\" data-last=\"" + std::to_string(all - 1) + "\">" + labels(ticks, "y", "bottom") + "<svg viewBox=\"0 0 " +
         std::to_string(all - 1) + " 10000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" +
         escaped(r.name) + ": memory live and reserved over the trace\">";
  for (tick const& t : ticks) out += horizontal("grid", static_cast<int>(height * (1 - t.at)), right);
  out += "<path class=\"lost\" d=\"" + area(reserved, samples.size()) + "\"/><path class=\"live\" d=\"" +
         area(live, samples.size()) + "\"/><path class=\"edge reserved\" d=\"" + reserved +
         "\"/><path class=\"edge livetop\" d=\"" + live + "\"/>" +
         horizontal("peak", y_of(s.requested_peak, top), right);
  if (!r.failure.empty()) {
    std::string const x = std::to_string(samples.size() - 1);
    out += "<path class=\"failed\" d=\"M" + x + " 0V10000\"/>";
  }
  out += "</svg><i class=\"cross\"></i></div>" + event_labels(s.events);
  if (!r.failure.empty()) out += "<p class=\"none\">" + escaped(r.failure) + "</p>";
  return out + "</figure>";
}

}  // namespace gmlake::tools
