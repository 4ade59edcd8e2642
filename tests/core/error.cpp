#include "gmlake/core/error.hpp"

#include <set>
#include <string>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

TEST_CASE("every code has a name of its own") {
  std::set<std::string> names;
  constexpr int count = static_cast<int>(errc::driver_failure) + 1;
  for (int c = 0; c < count; ++c) names.insert(to_string(static_cast<errc>(c)));
  CHECK(names.size() == count);
  CHECK(names.count("unknown error") == 0);
  CHECK(std::string(to_string(static_cast<errc>(count))) == "unknown error");
}

TEST_CASE("memory is fragmented where enough is free but not in one piece, and else exhausted") {
  CHECK(memory_account{.requested = 10, .free = 10, .largest_contiguous = 4}.fragmented());
  CHECK_FALSE(memory_account{.requested = 10, .free = 9, .largest_contiguous = 9}.fragmented());
}

}  // namespace
