#include "gmlake/plan/plan_rules.hpp"

#include <limits>
#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::step_request;

namespace {

/// Three requests, of which the last wraps into the room that the first leaves.
plan::plan good() {
  plan::plan p{.requests = {}, .period = 10, .height = 2048};
  p.requests = {{.size = 1024, .birth = 2, .death = 5, .offset = 0},
                {.size = 512, .birth = 3, .death = 9, .offset = 1024},
                {.size = 512, .birth = 5, .death = 12, .offset = 512},
                {.size = 4096, .birth = 6}};
  return p;
}

template <class Change>
std::string fault_after(Change&& change) {
  plan::plan p = good();
  change(p);
  char const* const fault = plan::find_fault(p);
  return fault == nullptr ? "" : fault;
}

}  // namespace

TEST_CASE("a plan that keeps the rules has no fault") {
  CHECK(plan::find_fault({}) == nullptr);
  CHECK(plan::find_fault(good()) == nullptr);
  CHECK(fault_after([](auto& p) { p.requests[0].offset = step_request::nowhere; }).empty());
  CHECK(fault_after([](auto& p) { p.repeats = false, p.period = 0, p.requests[3].offset = 0, p.height = 8192; }) ==
        "two requests that live at once share bytes");
  CHECK(fault_after([](auto& p) {
          p.repeats = false, p.period = 0, p.requests[3].offset = 2048, p.height = 6144;
        }).empty());
}

TEST_CASE("every broken rule is named") {
  constexpr bytes most = std::numeric_limits<bytes>::max();
  CHECK(fault_after([](auto& p) { p.requests[1].size = 0; }) == "a request has no bytes");
  CHECK(fault_after([](auto& p) { p.requests[1].size = 513; }) == "a size is no multiple of 512");
  CHECK(fault_after([](auto& p) { p.requests[3].birth = 10; }) == "a birth lies beyond the period");
  CHECK(fault_after([](auto& p) { p.requests[1].death = 3; }) == "a death comes before its birth");
  CHECK(fault_after([](auto& p) { p.requests[1].death = 14; }) == "a request lives longer than a period");
  CHECK(fault_after([](auto& p) { p.requests[1].offset = 1; }) == "an offset is no multiple of 512");
  CHECK(fault_after([](auto& p) { p.height = 1535; }) == "a request ends beyond the plan's height");
  CHECK(fault_after([](auto& p) { p.requests[1].offset = most - 1023; }) == "a request ends beyond the plan's height");
  CHECK(fault_after([](auto& p) { p.requests[3].offset = 0, p.height = 8192; }) ==
        "a request that stays has an offset, which the next step would use again");
  CHECK(fault_after([](auto& p) { p.requests[1].birth = 2; }) == "the requests are not in order of birth");
  CHECK(fault_after([](auto& p) {
          p.requests[2].size = p.requests[3].size = most - 511, p.height = most,
          p.requests[2].offset = step_request::nowhere;
        }) == "the sum of sizes overflows");
  CHECK(fault_after([](auto& p) { p.period = 3; }) == "there are more requests than the period has events");
  for (bytes offset : {0u, 512u}) {
    CHECK(fault_after([&](auto& p) { p.requests[1].offset = offset; }) == "two requests that live at once share bytes");
  }
  // The last one's end in the next step meets the first one's beginning there.
  CHECK(fault_after([](auto& p) { p.requests[2].death = 13; }) == "two requests that live at once share bytes");
}

TEST_CASE("sharing is found as by a look at every pair") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::size_t shared = 0;
  for (int round = 0; round < 2000; ++round) {
    plan::plan p{.requests = {}, .period = 24, .repeats = round % 2 == 0, .height = 16 * 512};
    for (plan::instant birth = random() % 4; birth < p.period; birth += 1 + random() % 8) {
      p.requests.push_back({.size = 512 * (1 + random() % 3), .birth = birth, .death = birth + 1 + random() % 12});
      p.requests.back().offset = 512 * (random() % 14);
    }
    bool expected = false;
    for (std::size_t i = 0; i < p.requests.size(); ++i) {
      for (std::size_t j = 0; j < p.requests.size(); ++j) {
        step_request const& a = p.requests[i];
        step_request const& b = p.requests[j];
        for (plan::instant shift : {plan::instant{0}, p.period}) {  // b of this step, or of the next
          if ((i == j && shift == 0) || (shift != 0 && !p.repeats)) continue;
          expected = expected || (a.birth < b.death + shift && b.birth + shift < a.death &&
                                  a.offset < b.offset + b.size && b.offset < a.offset + a.size);
        }
      }
    }
    shared += expected ? 1 : 0;
    REQUIRE((plan::find_fault(p) != nullptr) == expected);
  }
  CHECK(shared > 100);
  CHECK(shared < 1900);
}
