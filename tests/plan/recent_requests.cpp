#include "gmlake/plan/recent_requests.hpp"

#include <string_view>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::recent_requests;
using plan::track;

namespace {

[[nodiscard]] bytes size_of(char letter) { return 512 * static_cast<bytes>(letter); }

/// A letter a request, told by their sizes.
[[nodiscard]] track spelt(std::string_view letters, bool repeats = true) {
  plan::plan p{.requests = {}, .period = 2 * letters.size(), .repeats = repeats};
  for (std::size_t i = 0; i < letters.size(); ++i) {
    p.requests.push_back({.size = size_of(letters[i]), .birth = 2 * i, .death = 2 * i + 1, .offset = 0});
  }
  return {std::move(p), {}};
}
void say(recent_requests& r, std::string_view letters) {
  for (char c : letters) r.push(size_of(c), 0);
}
[[nodiscard]] recent_requests said(std::string_view letters) {
  recent_requests r;
  say(r, letters);
  return r;
}

/// No letter comes twice.
constexpr std::string_view long_step = "abcdefghijklmnopqrstuvwxyz";

}  // namespace

TEST_CASE("the last four requests tell the place in a plan") {
  track const t = spelt("abcdeabcdf");
  CHECK(said("xabcd").find_in(t, 0) == 3);
  CHECK(said("xabcd").find_in(t, 5) == 8);
  CHECK(said("abcdf").find_in(t, 0) == 9);
  CHECK(said("abcx").find_in(t, 0) == track::none);
  CHECK(said("bcd").find_in(t, 0) == track::none);
}

TEST_CASE("a request on another stream is another request") {
  recent_requests r = said("abc");
  r.push(size_of('d'), 1);
  CHECK(r.find_in(spelt("abcdef"), 0) == track::none);
}

TEST_CASE("a step has begun when all requests since its first are as planned") {
  track const t = spelt("abcdefgh", false);
  CHECK(said("abc").beginning_of(t) == track::none);
  CHECK(said("abcd").beginning_of(t) == 3);
  CHECK(said("zzzabcdef").beginning_of(t) == 5);
  CHECK(said("zbcde").beginning_of(t) == track::none);
  CHECK(said("bcde").beginning_of(t) == track::none);
}

TEST_CASE("the end of the step before tells its beginning too") {
  CHECK(said("efgha").beginning_of(spelt("abcdefgh")) == 0);
  CHECK(said("hab").beginning_of(spelt("abcdefgh")) == track::none);
  CHECK(said("efgha").beginning_of(spelt("abcdefgh", false)) == track::none);
}

TEST_CASE("a step begins within the requests that are remembered") {
  track const t = spelt(long_step);
  CHECK(said(long_step.substr(0, recent_requests::most)).beginning_of(t) == recent_requests::most - 1);
  CHECK(said(long_step.substr(0, recent_requests::most + 1)).beginning_of(t) == track::none);
  CHECK(said(long_step).find_in(t, 0) == long_step.size() - 1);
}

TEST_CASE("forgotten requests tell nothing") {
  recent_requests r = said("abcd");
  r.clear();
  CHECK(r.find_in(spelt("abcd"), 0) == track::none);
  say(r, "bcd");
  CHECK(r.find_in(spelt("abcd"), 0) == track::none);
}

TEST_CASE("following a plan is as having made its requests") {
  track const t = spelt(long_step);
  for (std::uint32_t next = 1; next < long_step.size(); ++next) {
    recent_requests r = said("zyx");
    r.follow(t, next);
    CHECK(r.find_in(t, 0) == next - 1);
    CHECK(r.beginning_of(t) == (next <= recent_requests::most ? next - 1 : track::none));
    r.push(size_of(long_step[next]), 0);
    CHECK(r.find_in(t, next) == next);
  }
}

TEST_CASE("before a plan's first request come those of the step before, however short it is") {
  recent_requests r;
  track const t = spelt("abcde");
  r.follow(t, 0);
  CHECK(r.find_in(t, 0) == 4);
  r.follow(t, 2);
  CHECK(r.find_in(spelt("deab", false), 0) == 3);
}
