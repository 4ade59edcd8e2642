#include "swap_options.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "byte_count.hpp"

namespace gmlake::tools {
namespace {

/// A number that has one of these units, times the unit's worth. Nothing for any other text.
std::optional<double> with_unit(std::string_view text,
                                std::initializer_list<std::pair<std::string_view, double>> units) noexcept {
  double number = 0;
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (code != std::errc{}) return std::nullopt;
  std::string_view const unit = text.substr(static_cast<std::size_t>(end - text.data()));
  auto const known = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  if (known == units.end()) return std::nullopt;
  return number * known->second;
}

}  // namespace

std::vector<scheduler> schedulers_named(std::string_view name) {
  std::vector<scheduler> named;
  std::ranges::copy_if(schedulers, std::back_inserter(named),
                       [&](scheduler const& s) { return name == "all" || s.name == name; });
  return named;
}

std::optional<std::uint64_t> parse_rate(std::string_view text) noexcept {
  auto const rate = with_unit(
      text, {{"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40}});
  if (!rate || !(*rate >= 1e6 && *rate <= 1e15)) return std::nullopt;
  return static_cast<std::uint64_t>(*rate);
}

std::optional<swap::time> parse_latency(std::string_view text) noexcept {
  auto const ns = with_unit(text, {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}});
  if (!ns || !(*ns >= 0 && *ns <= 1e9)) return std::nullopt;
  return swap::time(static_cast<swap::time::rep>(*ns));
}

std::optional<swap_limit> parse_swap_limit(std::string_view text) noexcept {
  auto const share = with_unit(text, {{"", 1}, {"%", 0.01}});
  if (share && *share > 0 && *share <= 1) return swap_limit{.share = *share, .size = {}};
  if (text.ends_with('%') || (share && (*share < 1 || text.find('.') != std::string_view::npos))) return std::nullopt;
  if (auto const size = parse_bytes(text)) return swap_limit{.share = 0, .size = size};
  return std::nullopt;
}

}  // namespace gmlake::tools
