#include "gmlake/swap/schedule.hpp"

#include <string_view>

#include <doctest/doctest.h>

#include "tests/swap/programs.hpp"

namespace gmlake::swap::schedule_test {
namespace {

program two() {
  program p{std::vector<time>(6, time(1)), {}};
  p.variables.push_back({.size = 3, .death = 6, .carried = true, .accesses = {{1}, {4}}});
  p.variables.push_back({.size = 5, .birth = 0, .death = 6, .has_copy = true, .accesses = {{0}, {5}}});
  return p;
}

std::string_view fault(schedule const& s) {
  char const* const f = find_fault(two(), s);
  return f == nullptr ? "" : f;
}

TEST_CASE("a schedule's traffic is what crosses: what the host has a copy of crosses once") {
  schedule const s{{{{0, 1, 4}, 2}, {{1, 0, 5}, 5}}, {1, 0}};
  CHECK(fault(s) == "");
  CHECK(traffic_of(two(), s).out == 3);
  CHECK(traffic_of(two(), s).in == 8);
}

TEST_CASE("a schedule that isn't the program's is found out") {
  CHECK(fault({{{{0, 1, 5}, 2}}, {0}}) == "a move is an absence of the program");
  CHECK(fault({{{{0, 1, 4}, 1}}, {0}}) == "a way back begins while the variable is away");
  CHECK(fault({{{{0, 4, 7}, 8}}, {0}}) == "a way back begins while the variable is away");
  CHECK(fault({{{{0, 1, 4}, 2}, {{0, 1, 4}, 2}}, {0, 1}}) == "a variable leaves once between two accesses");
  CHECK(fault({{{{0, 1, 4}, 2}}, {}}) == "what leaves comes back, unless it dies");
  CHECK(fault({{{{0, 1, 4}, 2}, {{0, 4, 7}, 5}}, {1, 1}}) == "what leaves comes back once");
}

TEST_CASE("what leaves until its death crosses once, and does not come back") {
  program p = two();
  p.variables.push_back({.size = 7, .birth = 0, .death = 5, .accesses = {{1}}});
  schedule s{{{{2, 1, 5}, 5}}, {}};
  CHECK(find_fault(p, s) == nullptr);
  CHECK(traffic_of(p, s).out == 7);
  CHECK(traffic_of(p, s).in == 0);
  s.returns = {0};
  CHECK(find_fault(p, s) == std::string_view("what leaves comes back, unless it dies"));
  p.variables[2].handed_on = true;
  CHECK(find_fault(p) == std::string_view("what is handed on lives up to the step's end"));
}

TEST_CASE("a program's launches are known of all operations or of none, one after the other") {
  program p = two();
  CHECK(find_fault(p) == nullptr);
  p.launched.assign(5, time(0));
  CHECK(find_fault(p) == std::string_view("all operations' launches are known, or none's"));
  p.launched = {time(0), time(2), time(2), time(3), time(4), time(9)};
  CHECK(find_fault(p) == nullptr);
  p.launched[3] = time(1);
  CHECK(find_fault(p) == std::string_view("operations are launched in order"));
}

}  // namespace
}  // namespace gmlake::swap::schedule_test
