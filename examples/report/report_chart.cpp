#include <algorithm>
#include <array>
#include <cmath>

#include "format.hpp"
#include "report.hpp"

namespace gmlake::tools {
namespace {

/// Heights run from 0 at the top to this at the bottom: finer than any screen, coarse enough to stay short.
constexpr double height = 10000;

int y_of(bytes n, bytes top) {
  return static_cast<int>(std::lround(height * (1 - static_cast<double>(n) / static_cast<double>(top))));
}

/// The line through one quantity's samples, as relative moves, which are short.
template <bytes trace::time_series::sample::* Quantity>
std::string line(trace::time_series const& s, bytes top) {
  int last = y_of(s.samples.front().*Quantity, top);
  std::string d = "M0 " + std::to_string(last) + "l";
  for (std::size_t i = 1; i < s.samples.size(); ++i) {
    int const y = y_of(s.samples[i].*Quantity, top);
    d += "1 " + std::to_string(y - last) + " ";
    last = y;
  }
  return s.samples.size() > 1 ? d : d + "1 0";  // one sample is a line too
}

/// The area under such a line.
std::string area(std::string line, std::size_t samples) {
  return line += "L" + std::to_string(std::max<std::size_t>(samples, 2) - 1) + " 10000L0 10000Z";
}

std::string horizontal(char const* kind, int y, double right) {
  std::string const at = std::to_string(y);
  return std::string("<path class=\"") + kind + "\" d=\"M0 " + at + "H" + fixed(right, 0) + "\"/>";
}

struct tick {
  double at;  ///< from 0 to 1
  std::string label;
};

/// Round values up to `top`, about `wanted` of them, without 0.
std::vector<double> round_values(double top, double wanted) {
  double const power = std::pow(10, std::floor(std::log10(top / wanted)));
  double step = 10 * power;
  for (double const digit : {1.0, 2.0, 5.0}) {
    if (top / (digit * power) <= wanted) {
      step = digit * power;
      break;
    }
  }
  std::vector<double> values;
  for (int k = 1; k * step <= top * 1.0001; ++k) values.push_back(k * step);
  return values;
}

std::string short_number(double n) {
  if (n >= 1e6) return fixed(n / 1e6, std::fmod(n, 1e6) == 0 ? 0 : 1) + "M";
  if (n >= 1e3) return fixed(n / 1e3, std::fmod(n, 1e3) == 0 ? 0 : 1) + "k";
  return fixed(n, 0);
}

std::vector<tick> size_ticks(bytes top) {
  double const unit = static_cast<double>(top >= 2_GiB ? 1_GiB : top >= 2_MiB ? 1_MiB : 1_KiB);
  char const* const name = top >= 2_GiB ? " GiB" : top >= 2_MiB ? " MiB" : " KiB";
  double const highest = static_cast<double>(top) / unit;
  std::vector<tick> ticks = {{0, "0"}};
  for (double const v : round_values(highest, 5.5)) ticks.push_back({v / highest, fixed(v, v < 1 ? 1 : 0) + name});
  return ticks;
}

std::string labels(std::vector<tick> const& ticks, char const* axis, char const* side) {
  std::string out = std::string("<div class=\"") + axis + "\" aria-hidden=\"true\">";
  for (tick const& t : ticks)
    out += std::string("<span style=\"") + side + ":" + fixed(100 * t.at, 2) + "%\">" + t.label + "</span>";
  return out + "</div>";
}

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
  std::string const reserved = line<&trace::time_series::sample::reserved>(r.series, top);
  std::string const live = line<&trace::time_series::sample::live>(r.series, top);

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
