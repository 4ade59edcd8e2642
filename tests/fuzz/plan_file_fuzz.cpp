/// Feeds arbitrary bytes to the plan reader, as they are and, so that they get past the checksum, behind a plan file's
/// first words and before a right one. It either says what is wrong or gives plans that keep every rule and come back
/// the same when written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gmlake/plan/plan_file.hpp"

namespace {
using namespace gmlake::plan;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(std::string_view text) {
  plans_read const read = read_plans(text);
  require(read.has_value() || read.value.empty());
  for (auto const& p : read.value) require(find_fault(p) == nullptr);
  if (read) require(write_plans(read.value) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  check(text);
  std::string whole(plan_file_magic);
  detail::put<4>(whole, plan_file_version);
  whole += text;
  detail::put<8>(whole, detail::fnv1a(whole));
  check(whole);
  return 0;
}
