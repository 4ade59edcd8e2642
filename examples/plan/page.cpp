#include "page.hpp"

#include <algorithm>

#include "format.hpp"
#include "picture_script.hpp"
#include "report.hpp"
#include "report_page.hpp"

namespace gmlake::tools {
namespace {

/// Buffers drawn in a page, 20 to 25 bytes each, and at most in one picture.
constexpr std::size_t most_in_page = 150'000;
constexpr std::size_t most_in_picture = 40'000;

std::string bold(std::string const& text) { return "<b>" + escaped(text) + "</b>"; }

/// Four digits after the point tell a plan from a perfect one.
std::string times_of(plan_record const& r) { return r.solution.height == r.bound ? "1" : fixed(r.ratio(), 4); }

/// As much as what can't be gone below, or how much more.
std::string height_of(plan_record const& r) {
  if (r.solution.height == r.bound) return "just as high; no plan can be lower";
  return readable(r.solution.height) + " high, " + bold(times_of(r)) + " times as much" +
         (r.proven ? "; no plan is lower" : "");
}

bool solved(plan_record const& r) { return r.solution.offsets.size() == r.problem.buffers.size(); }

std::string headline(std::vector<plan_record> const& records) {
  double worst = 0;
  std::size_t count = 0;
  for (plan_record const& r : records) {
    if (r.ok()) worst = std::max(worst, r.ratio()), ++count;
  }
  if (count == 0) return "No plan was found.";
  std::string out = count == 1 ? "The plan takes " : "Each of " + std::to_string(count) + " plans takes ";
  if (worst > 1)
    out += (count == 1 ? "" : "at most ") + bold(fixed(worst, 5)) + " times what lives at once at its peak";
  else out += "no more than what lives at once at its peak";
  out += ", which no plan can go below";
  return out + (count < records.size() ? "; " + std::to_string(records.size() - count) + " failed." : ".");
}

std::string table(std::vector<plan_record> const& records) {
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>plan</th><th class=\"wide\">requests</th><th>placed</th><th>most "
      "bytes live</th><th>planned height</th><th>height / live</th><th>packer</th><th class=\"wide\">ms</th></tr>"
      "</thead><tbody>";
  std::string const* input = nullptr;
  for (plan_record const& r : records) {
    if (input == nullptr || *input != r.input) {
      out += "<tr class=\"trace\"><th colspan=\"8\">" + escaped(r.input) + "</th></tr>";
    }
    input = &r.input;
    bool const there = solved(r);
    out += "<tr><td>" + escaped(r.title()) +
           (r.times > 1 ? " <span class=\"soft\">comes " + grouped(r.times) + " times</span>" : "") +
           (r.ok() ? "" : " <span class=\"bad\">failed</span>") + "</td><td class=\"wide\">" + grouped(r.requests) +
           "</td><td>" + grouped(r.problem.buffers.size()) + "</td><td>" + readable(r.bound) + "</td><td>" +
           (there ? readable(r.solution.height) : "–") + "</td><td>" + (there ? times_of(r) : "–") + "</td><td>" +
           escaped(r.packer) + "</td><td class=\"wide\">" + fixed(r.ms, 0) + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

std::string what(plan_record const& r) {
  std::string out;
  switch (r.kind) {
    case record_kind::prologue: out = "What comes before the steps, once. "; break;
    case record_kind::run: out = "The whole run as one. "; break;
    case record_kind::step:
      if (r.times > 1) out = "Comes " + grouped(r.times) + " times in the trace. ";
      break;
    case record_kind::problem: break;
  }
  if (!r.ok()) return out + "<span class=\"bad\">" + escaped(r.failure) + ".</span>";
  out += "At most " + readable(r.bound) + " live at once. The plan is " + height_of(r) + ".";
  if (r.kept != 0) {
    std::uint64_t const kept = r.requests - r.problem.buffers.size();
    out +=
        " <span class=\"soft\">" +
        (kept == 1 ? "One request, " + readable(r.kept) + ", outlives it and is not placed."
                   : grouped(kept) + " requests, " + readable(r.kept) + " together, outlive it and are not placed.") +
        "</span>";
  }
  return out;
}

}  // namespace

std::string render(std::vector<plan_record> const& records) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>gmlake-plan</title><style>";
  out += page_style;
  out += picture_style;
  out += "</style></head><body><main><h1>Where the memory of a step goes, planned ahead</h1><p>" + headline(records) +
         "</p>" + table(records);
  std::size_t const most = std::min(most_in_picture, most_in_page / std::max<std::size_t>(1, records.size()));
  for (plan_record const& r : records) {
    out += "<section><h2>" + escaped(r.input) +
           (r.kind == record_kind::problem ? "" : " <span class=\"soft\">" + escaped(r.title()) + "</span>") +
           "</h2><p>" + what(r) + "</p>" + render_picture(r, most) + "</section>";
  }
  out += "</main><script>";
  out += picture_script;
  return out + "</script></body></html>\n";
}

}  // namespace gmlake::tools
