#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "charts.hpp"
#include "format.hpp"
#include "report.hpp"

namespace gmlake::tools {

using namespace charts;

namespace {

/// A lane's width in the drawing's units: nothing finer is drawn.
constexpr double width = 6000;
constexpr std::size_t largest_moves = 400;  ///< drawn each, with its way between the lanes; the others as times only
// Heights: the lane out, what lies between, the lane back.
constexpr char const out_top[] = "0", out_bottom[] = "26", back_top[] = "70", back_bottom[] = "96";

std::string saved(report_swap_section const& of, bytes peak) {
  return percent(1 - static_cast<double>(std::min(peak, of.peak)) / static_cast<double>(std::max<bytes>(1, of.peak)));
}

std::string ms(double t) { return fixed(t, t < 10 ? 2 : 1) + " ms"; }

std::string times(double a, double b) { return b > 0 ? fixed(a / b, 3) : "-"; }

/// What a schedule comes to, in a line.
std::string sentence(report_swap_section const& of, report_swap const& r) {
  std::string out = readable(r.peak);
  if (r.limit == 0) return out + ", " + saved(of, r.peak) + " less, no stall";
  return out + " in " + ms(r.step) + ", " + times(r.step, of.step) + " times the step without a limit";
}

class lanes {
 public:
  explicit lanes(report_swap const& r) : run_(r), scale_(r.step > 0 ? width / r.step : 0) {}

  [[nodiscard]] std::string draw() const {
    std::vector<report_swap::move const*> order;
    for (report_swap::move const& m : run_.moves) order.push_back(&m);
    std::ranges::stable_sort(order, std::ranges::greater{}, [](auto const* m) { return m->size; });
    std::size_t const drawn = std::min(order.size(), largest_moves);
    std::string few;
    for (std::size_t i = drawn; i < order.size(); ++i) {
      if (order[i]->copied) few += bar(order[i]->out, out_top, out_bottom);
      few += bar(order[i]->back, back_top, back_bottom);
    }
    std::string out =
        "<div class=\"lanes\"><div class=\"y\" aria-hidden=\"true\"><span style=\"bottom:86%\">to host"
        "</span><span style=\"bottom:14%\">back</span></div><svg viewBox=\"0 0 " +
        fixed(width, 0) + " 96\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" + escaped(run_.name) +
        ": transfers to the host, and back, over the step\">";
    if (!few.empty()) out += "<path class=\"few\" d=\"" + few + "\"/>";
    for (std::size_t i = 0; i < drawn; ++i) out += move(*order[i]);
    return out + "</svg></div>";
  }

 private:
  [[nodiscard]] std::string x(double t) const { return fixed(t * scale_, 1); }

  /// Over the step's end, in two pieces.
  [[nodiscard]] std::string bar(report_swap::transfer const& t, char const* top, char const* bottom) const {
    auto const piece = [&](double begin, double end) {
      // Nothing is too short to be seen.
      std::string const right = fixed(std::max(end * scale_, begin * scale_ + 2), 1);
      return "M" + x(begin) + " " + top + "H" + right + "V" + bottom + "H" + x(begin) + "Z";
    };
    if (t.begin <= t.end) return piece(t.begin, t.end);
    return piece(t.begin, run_.step) + piece(0, t.end);
  }

  /// From the way out to the way back.
  [[nodiscard]] std::string ribbon(double a, double b, double c, double d) const {
    return "M" + x(a) + " " + out_bottom + "C" + x(a) + " 52 " + x(c) + " 44 " + x(c) + " " + back_top + "H" + x(d) +
           "C" + x(d) + " 44 " + x(b) + " 52 " + x(b) + " " + out_bottom + "Z";
  }

  [[nodiscard]] std::string move(report_swap::move const& m) const {
    auto const end = [&](report_swap::transfer const& t) { return t.end + (t.end < t.begin ? run_.step : 0); };
    double const a = m.out.begin, b = end(m.out), c = m.back.begin, d = end(m.back);
    // One that is back before it leaves is away over the step's end, and seen at both ends of it.
    bool const over_end = c < b;
    std::string ways = ribbon(a, b, c + (over_end ? run_.step : 0), d + (over_end ? run_.step : 0));
    if (over_end) ways += ribbon(a - run_.step, b - run_.step, c, d);
    return "<g class=\"move\"><title>block " + std::to_string(m.block) + ", " + readable(m.size) + ": " +
           (m.copied ? "leaves from " + ms(a) + " to " + ms(m.out.end) : "leaves at " + ms(a) + ", without a copy") +
           ", comes back from " + ms(c) + " to " + ms(m.back.end) + "</title><path class=\"ribbon\" d=\"" + ways +
           "\"/><path class=\"bar\" d=\"" + (m.copied ? bar(m.out, out_top, out_bottom) : "") +
           bar(m.back, back_top, back_bottom) + "\"/></g>";
  }

  report_swap const& run_;
  double scale_;
};

std::string time_labels(double step) {
  std::vector<tick> ticks = {{0, "0"}};
  for (double const v : round_values(step, 4.5)) {
    if (v < 0.88 * step) ticks.push_back({v / step, fixed(v, v < 1 ? 2 : v == std::floor(v) ? 0 : 1)});
  }
  std::string out = labels(ticks, "x", "left");
  return out.insert(out.rfind("</div>"), "<span class=\"name\">ms</span>");
}

std::string stalls(report_swap const& r, double right) {
  std::string d;
  for (report_swap::stall const& s : r.stalls) {
    auto const x = [&](double t) { return fixed(t / r.step * right, 2); };
    d += "M" + x(s.at) + " 0H" + x(s.at + s.length) + "V10000H" + x(s.at) + "Z";
  }
  return d.empty() ? d : "<path class=\"stall\" d=\"" + d + "\"/>";
}

std::string panel(report_swap_section const& of, report_swap const& r, bytes top) {
  std::string out = "<figure class=\"panel\"><figcaption><b>" + escaped(r.name) + "</b><span class=\"key\">" +
                    sentence(of, r) + "</span><span class=\"now\"></span></figcaption>";
  if (r.samples.empty() || r.step <= 0) return out + "</figure>";
  std::string const load = line(r.samples, &report_swap::sample::load, top);
  std::string const resident = line(r.samples, &report_swap::sample::resident, top);
  std::size_t const last = std::max<std::size_t>(2, r.samples.size()) - 1;
  double const right = static_cast<double>(last);
  auto const sizes = size_ticks(top);
  out += "<div class=\"plot\" data-unit=\"ms\" data-top=\"" + std::to_string(top) + "\" data-step=\"" +
         fixed(r.step / right, 6) + "\" data-last=\"" + std::to_string(last) + "\">" + labels(sizes, "y", "bottom") +
         "<svg viewBox=\"0 0 " + std::to_string(last) +
         " 10000\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" + escaped(r.name) +
         ": memory over the step, with the schedule and without\">";
  for (tick const& t : sizes) out += horizontal("grid", static_cast<int>(height * (1 - t.at)), right);
  out += "<path class=\"lost\" d=\"" + area(load, r.samples.size()) + "\"/><path class=\"live\" d=\"" +
         area(resident, r.samples.size()) + "\"/><path class=\"edge reserved\" d=\"" + load +
         "\"/><path class=\"edge livetop\" d=\"" + resident + "\"/>" + stalls(r, right) +
         horizontal("peak", y_of(r.limit != 0 ? r.limit : r.peak, top), right) + "</svg><i class=\"cross\"></i></div>";
  return out + lanes(r).draw() + time_labels(r.step) + "</figure>";
}

}  // namespace

std::string render_swaps(report_swap_section const& s) {
  bytes const top = std::max<bytes>(1, s.peak + s.peak / 24);
  std::string out = "<section><h2>" + escaped(s.name) + "</h2><p>A step takes " + readable(s.peak) + " and " +
                    ms(s.step) + "; " + escaped(s.machine) + ". Without stalls no schedule brings its peak below " +
                    readable(s.least_peak) + " (" + saved(s, s.least_peak) + " less)";
  if (s.limit < s.least_limit) {
    out += "; none meets the limit of " + readable(s.limit) + ", as " + readable(s.least_limit) + " can't be away";
  } else if (s.least_step > 0) {
    out += "; under " + readable(s.limit) + " it takes " + ms(s.least_step) + " at least";
  }
  out +=
      ".</p><h3>Memory over the step, and what crosses the link</h3><ul class=\"legend\"><li><i "
      "class=\"l\"></i>resident"
      "</li><li><i class=\"f\"></i>away</li><li><i class=\"dash\"></i>limit, or the peak reached</li><li><i "
      "class=\"s\">"
      "</i>a block's way to the host and back</li><li><i class=\"w\"></i>a stall</li></ul><div class=\"panels" +
      std::string(s.schedules.size() == 1 ? " one" : "") + "\">";
  for (report_swap const& r : s.schedules) out += panel(s, r, top);
  return out + "</div></section>";
}

std::string render_swap_table(std::vector<report_swap_section> const& all) {
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>schedule</th><th>peak, MiB</th><th>saved</th><th>at "
      "most</th><th>step, "
      "ms</th><th>over no limit</th><th>over the least</th><th class=\"wide\">moved, MiB</th><th "
      "class=\"wide\">stalls</th>"
      "<th class=\"wide\">pool, MiB</th></tr></thead><tbody>";
  for (report_swap_section const& s : all) {
    out += "<tr class=\"trace\"><th colspan=\"10\">" + escaped(s.name) +
           " <span class=\"soft\" style=\"font-weight:400\">peak " + mebibytes(s.peak) + " MiB, step " + ms(s.step) +
           "</span></th></tr>";
    for (report_swap const& r : s.schedules) {
      bool const limited = r.limit != 0;
      out += "<tr><td>" + escaped(r.name) + "</td><td>" + mebibytes(r.peak) + "</td><td>" + saved(s, r.peak) +
             "</td><td>" + (limited ? "-" : saved(s, s.least_peak)) + "</td><td>" + fixed(r.step, 1) + "</td><td>" +
             times(r.step, s.step) + "</td><td>" + (limited ? times(r.step, s.least_step) : "-") +
             "</td><td class=\"wide\">" + mebibytes(r.moved) + "</td><td class=\"wide\">" + grouped(r.stalls.size()) +
             "</td><td class=\"wide\">" +
             (r.reserved_peak != 0 ? mebibytes(r.reserved_peak) : "<span class=\"bad\">failed</span>") + "</td></tr>";
    }
  }
  return out + "</tbody></table></div>";
}

}  // namespace gmlake::tools
