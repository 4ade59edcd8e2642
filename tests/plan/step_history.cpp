#include "gmlake/plan/step_history.hpp"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace gmlake::plan;

namespace {

/// Steps of ten requests one behind the other, of the shapes that the letters stand for; a blank leaves a gap.
[[nodiscard]] step_history history(std::string_view shapes) {
  step_history h;
  std::uint64_t at = 0;
  for (char const shape : shapes) {
    if (shape != ' ') h.push({at, at + 10, static_cast<std::uint64_t>(shape), false});
    at += 10;
  }
  return h;
}

}  // namespace

TEST_SUITE("step_history") {
  TEST_CASE("the last step's shape is counted among those remembered") {
    CHECK(history("abcab").occurrences() == 2);
    CHECK(history("a").occurrences() == 1);
    std::string many(step_history::most, 'a');
    CHECK(history("a" + many).occurrences() == step_history::most);
  }

  TEST_CASE("steps recur whose shape came before") {
    CHECK(history("abcabd").recurrences(4) == 2);
    CHECK(history("abcd").recurrences(16) == 0);
    CHECK(history("").recurrences(16) == 0);
  }

  TEST_CASE("the earlier step of the same shape is the youngest that is still known") {
    step_history const h = history("abaca");
    CHECK(h.earlier(0)->first == 20);
    CHECK(h.earlier(20)->first == 20);
    CHECK_FALSE(h.earlier(21));
    CHECK_FALSE(history("abc").earlier(0));
  }

  TEST_CASE("parts that have come twice on end, one behind the other, are a step together") {
    CHECK(history("abab").parts() == 2);
    CHECK(history("mmmomm"
                  "mo")
              .parts() == 4);
    CHECK(history("abcab").parts() == 0);
    CHECK(history("ab ab").parts() == 0);
    CHECK(history("abcabd").parts() == 0);
  }

  TEST_CASE("steps that are all alike are no parts") { CHECK(history("aaaaaaaa").parts() == 0); }
}
