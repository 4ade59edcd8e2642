#include "byte_count.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace gmlake::tools {

std::optional<bytes> parse_bytes(std::string_view text) noexcept {
  std::size_t const end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string const number(text.substr(0, end));
  std::string_view const unit = text.substr(end);
  static std::map<std::string_view, int> const shifts = {{"", 0},     {"B", 0},  {"K", 10},   {"KiB", 10}, {"M", 20},
                                                         {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};
  auto const shift = shifts.find(unit);
  if (number.empty() || shift == shifts.end() || std::count(number.begin(), number.end(), '.') > 1) return {};
  constexpr double largest = 0x1p62;
  double const n = std::floor(std::ldexp(std::strtod(number.c_str(), nullptr), shift->second));
  if (!(n >= 1 && n <= largest)) return {};
  // Above 2^53 a double would round what was given to the byte.
  if (shift->second == 0 && number.find('.') == number.npos) return std::strtoull(number.c_str(), nullptr, 10);
  return static_cast<bytes>(n);
}

std::string check_bytes(std::string const& text) {
  return parse_bytes(text) ? "" : "'" + text + "' is not a size: bytes, or a number with KiB, MiB, GiB or TiB";
}

}  // namespace gmlake::tools
