#include "gmlake/plan/plan_file.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::read_plans;
using plan::step_request;
using plan::write_plans;

namespace {

/// A plan of requests side by side, some of which stay, wrap or are not placed.
plan::plan any_plan(std::mt19937_64& random, std::size_t requests, bool repeats = true) {
  plan::plan p{.requests = {}, .period = 3 * requests, .repeats = repeats};
  for (std::size_t i = 0; i < requests; ++i) {
    step_request r{
        .size = 512 * (1 + random() % 100), .stream = static_cast<std::uint32_t>(random() % 3), .birth = 3 * i};
    if (random() % 4 != 0) r.death = r.birth + 1 + random() % p.period;
    if (r.death != step_request::stays && random() % 4 != 0) r.offset = std::exchange(p.height, p.height + r.size);
    p.requests.push_back(r);
  }
  p.bound = p.height / 2;
  return p;
}

std::vector<plan::plan> any_plans(std::mt19937_64& random) {
  return {any_plan(random, 5, false), any_plan(random, 7), any_plan(random, 3)};
}

bool same(plan::plan const& a, plan::plan const& b) {
  auto const same_request = [](step_request const& x, step_request const& y) {
    return x.size == y.size && x.stream == y.stream && x.birth == y.birth && x.death == y.death && x.offset == y.offset;
  };
  return a.period == b.period && a.repeats == b.repeats && a.height == b.height && a.bound == b.bound &&
         std::ranges::equal(a.requests, b.requests, same_request);
}

/// With a checksum that is right again, so that what lies behind it is looked at.
std::string sealed(std::string text) {
  text.resize(text.size() - plan::detail::checksum_bytes);
  plan::detail::put<8>(text, plan::detail::fnv1a(text));
  return text;
}

std::string error_of(std::string const& text) { return read_plans(text).error; }

}  // namespace

TEST_CASE("what is written is read back the same") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  CHECK(read_plans(write_plans({})));
  CHECK(read_plans(write_plans({})).value.empty());
  for (std::size_t n : {0u, 1u, 2u, 1000u}) {
    CAPTURE(n);
    std::vector<plan::plan> const plans = {any_plan(random, 10, false), any_plan(random, n), any_plan(random, 3)};
    auto const read = read_plans(write_plans(plans));
    CAPTURE(read.error);
    REQUIRE(read);
    CHECK(std::ranges::equal(read.value, plans, same));
  }
}

TEST_CASE("a file cut off anywhere is refused") {
  std::mt19937_64 random(1);
  std::string const text = write_plans(any_plans(random));
  for (std::size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    auto const read = read_plans(std::string_view(text).substr(0, n));
    CHECK_FALSE(read);
    CHECK(read.value.empty());
    CHECK(read.error.find("truncated") != std::string::npos);
  }
  CHECK_FALSE(read_plans(text + '\0'));
}

TEST_CASE("a file with any bit flipped is refused") {
  std::mt19937_64 random(2);
  std::string text = write_plans(any_plans(random));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    CAPTURE(bit);
    CHECK_FALSE(read_plans(text));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
  }
  CHECK(read_plans(text));
}

TEST_CASE("a file with parts exchanged is refused") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::string const text = write_plans(any_plans(random));
  for (int round = 0; round < 2000; ++round) {
    std::size_t const length = 1 + random() % 40;
    std::size_t const a = random() % (text.size() - length + 1);
    std::size_t const b = random() % (text.size() - length + 1);
    std::string changed = text;
    changed.replace(a, length, text.substr(b, length)).replace(b, length, text.substr(a, length));
    CHECK(read_plans(changed).has_value() == (changed == text));
  }
}

TEST_CASE("behind a right checksum, too, nothing is believed") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::string const text = write_plans(any_plans(random));
  for (std::size_t byte = 0; byte + 8 < text.size(); ++byte) {
    for (int value : {0, 1, 127, 128, 255}) {
      std::string changed = text;
      changed[byte] = static_cast<char>(value);
      auto const read = read_plans(sealed(std::move(changed)));
      CHECK(read.has_value() == read.error.empty());
      for (plan::plan const& p : read.value) CHECK(plan::find_fault(p) == nullptr);
    }
  }
}

TEST_CASE("the error says what is wrong") {
  std::mt19937_64 random(3);
  std::vector<plan::plan> plans = any_plans(random);
  std::string const text = write_plans(plans);
  CHECK(error_of("GIF89a") == "not a plan file");
  CHECK(error_of("") == "truncated: the file is shorter than an empty one");
  std::string changed = text;
  changed[8] = 9;
  CHECK(error_of(changed) == "the file has version 9, which is not 2");
  changed = text;
  changed[40] = static_cast<char>(~changed[40]);
  CHECK(error_of(changed) == "the checksum is wrong: the file is truncated or damaged");
  changed = text;
  changed[15] = 0x7f;  // the highest byte of the plans' count
  CHECK(error_of(sealed(changed)) == "truncated: there are fewer plans than the file says");
  changed = text;
  changed[23] = 0x7f;  // of the first plan's requests
  CHECK(error_of(sealed(changed)) == "plan 0: truncated: it has fewer requests than it says");
  changed = text;
  changed[48] = 2;
  CHECK(error_of(sealed(changed)) == "plan 0: whether it repeats is neither yes nor no");
  for (int const laps : {0, 7}) {
    changed = text;
    changed[49] = static_cast<char>(laps);
    CHECK(error_of(sealed(changed)) == "plan 0: the requests are not those of so many laps");
  }
  changed = text;
  changed[12] = 2;
  CHECK(error_of(sealed(changed)) == std::to_string(34 + 3 * 36) + " bytes follow the last plan");
  std::swap(plans[0], plans[1]);
  CHECK(error_of(write_plans(plans)) == "plan 1: a prologue comes first, and there is only one");
  std::swap(plans[0], plans[1]);
  plans[2].requests[1].size = 100;
  CHECK(error_of(write_plans(plans)) == "plan 2: a size is no multiple of 512");
}
