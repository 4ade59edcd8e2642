#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "format.hpp"
#include "page.hpp"
#include "report.hpp"

namespace gmlake::tools {
namespace {

constexpr std::size_t live_samples = 1500;  // a large screen is not much wider

plan::instant end_of(plan::problem const& p) {
  plan::instant end = p.period;
  if (end == 0) {
    for (plan::buffer const& b : p.buffers) end = std::max(end, b.upper);
  }
  return end;
}

/// A plan from elsewhere may have buffers that stay: they live to the end.
plan::problem clipped(plan_record const& r) {
  plan::problem p = r.problem;
  if (p.period != 0) return p;
  plan::instant end = r.plan.period;
  for (plan::buffer const& b : p.buffers) {
    if (b.upper != plan::step_request::stays) end = std::max(end, b.upper);
  }
  for (plan::buffer& b : p.buffers) b.upper = std::max(b.lower + 1, std::min(b.upper, end));
  return p;
}

/// The most bytes live in each of equal parts of the time, in units.
std::vector<bytes> live_bytes(plan::problem const& p, plan::instant end, bytes unit) {
  std::vector<std::pair<plan::instant, bytes>> changes;  // what goes is added as its negative, which wraps
  auto const add = [&](plan::instant from, plan::instant to, bytes n) {
    changes.emplace_back(from, n);
    changes.emplace_back(to, 0 - n);
  };
  for (plan::buffer const& b : p.buffers) {
    add(b.lower, std::min(b.upper, end), b.size);
    if (b.upper > end) add(0, b.upper - end, b.size);
  }
  std::ranges::sort(changes, {}, &std::pair<plan::instant, bytes>::first);
  std::size_t const parts = static_cast<std::size_t>(std::min<plan::instant>(end, live_samples));
  // Times may be as large as numbers are, and a product of them larger.
  auto const part_of = [&](plan::instant t) {
    double const share = static_cast<double>(t) / static_cast<double>(end);
    return std::min(parts - 1, static_cast<std::size_t>(share * static_cast<double>(parts)));
  };
  std::vector<bytes> most(parts);
  bytes live = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    plan::instant const from = changes[i].first;
    plan::instant const to = i + 1 < changes.size() ? changes[i + 1].first : end;
    if (from == to) continue;
    for (std::size_t k = part_of(from); k <= part_of(to - 1); ++k) most[k] = std::max(most[k], live / unit);
  }
  return most;
}

/// The buffers that take the most room and time, by birth.
std::vector<std::size_t> drawn_of(plan::problem const& p, std::size_t most) {
  std::vector<std::size_t> all(p.buffers.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  auto const area = [&](std::size_t i) {
    plan::buffer const& b = p.buffers[i];
    return static_cast<double>(b.size) * static_cast<double>(b.upper - b.lower);
  };
  if (all.size() > most) {
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(most), std::greater<>(), area);
    all.resize(most);
  }
  std::ranges::sort(all, {}, [&](std::size_t i) { return std::pair(p.buffers[i].lower, i); });
  return all;
}

nlohmann::json numbers(plan_record const& r, plan::problem const& p, std::vector<std::size_t> const& drawn) {
  bytes unit = r.bound;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    unit = std::gcd(std::gcd(unit, p.buffers[i].size), r.solution.offsets[i]);
  }
  unit = std::max<bytes>(unit, 1);
  plan::instant const end = std::max<plan::instant>(end_of(p), 1);
  nlohmann::json d = {{"end", end},
                      {"wraps", p.period != 0},
                      {"unit", unit},
                      {"height", r.solution.height / unit},
                      {"bound", r.bound / unit},
                      {"live", live_bytes(p, end, unit)},
                      {"phases", nlohmann::json::array()},
                      {"streams", nlohmann::json::array()}};
  for (char const* key : {"b", "l", "o", "s"}) d[key] = nlohmann::json::array();
  plan::instant before = 0;
  std::set<std::uint32_t> streams;
  for (std::size_t const i : drawn) {
    plan::buffer const& b = p.buffers[i];
    d["b"].push_back(b.lower - before);
    d["l"].push_back(b.upper - b.lower);
    d["o"].push_back(r.solution.offsets[i] / unit);
    d["s"].push_back(b.size / unit);
    streams.insert(b.stream);
    before = b.lower;
  }
  if (streams.size() > 1) {
    for (std::size_t const i : drawn) d["t"].push_back(p.buffers[i].stream);
    for (std::uint32_t k = 0; k <= std::min<std::uint32_t>(5, *streams.rbegin()); ++k) {
      d["streams"].push_back(k == 5 ? "streams from 5 on" : "stream " + std::to_string(k));
    }
  }
  for (named_phase const& ph : r.phases) d["phases"].push_back({ph.label, ph.begin});
  return d;
}

std::string button(char const* by) {
  return std::string("<button type=\"button\" data-by=\"") + by + "\" aria-pressed=\"false\">" + by + "</button>";
}

}  // namespace

std::string render_picture(plan_record const& r, std::size_t most) {
  if (r.solution.offsets.size() != r.problem.buffers.size() || r.problem.buffers.empty()) {
    return "<p class=\"none\">" + (r.ok() ? std::string("There is nothing to place.") : escaped(r.failure)) + "</p>";
  }
  plan::problem const p = clipped(r);
  auto const drawn = drawn_of(p, most);
  nlohmann::json const d = numbers(r, p, drawn);
  std::string text = d.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  // Nothing in it may end the script.
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos;) text.replace(at, 1, "\\u003c");
  std::set<std::string> labels;
  for (named_phase const& ph : r.phases) labels.insert(ph.label);

  std::string out =
      "<figure class=\"picture\"><figcaption><span>" + grouped(p.buffers.size()) + " buffers by time and offset" +
      (drawn.size() < p.buffers.size() ? ", the " + grouped(drawn.size()) + " largest drawn" : "") +
      "</span><span class=\"now\"></span></figcaption><div class=\"options\"><span>colour by " + button("size");
  if (labels.size() > 1) out += button("phase");
  if (!d["streams"].empty()) out += button("stream");
  return out +
         "</span><ul class=\"legend swatches\"></ul><ul class=\"legend\"><li><i class=\"e\"></i>planned height</li><li>"
         "<i class=\"d\"></i>most bytes live at once</li></ul><span>drag to zoom <button type=\"button\" class=\"out\" "
         "hidden>show all</button></span></div><div class=\"stage\" role=\"img\" aria-label=\"" +
         escaped(r.input + ", " + r.title()) +
         ": buffers by time and offset\"><canvas></canvas><canvas></canvas></div><script type=\"application/json\">" +
         text + "</script></figure>";
}

}  // namespace gmlake::tools
