#include "gmlake/plan/track.hpp"

#include <optional>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using namespace gmlake;
using plan::segment;
using plan::step_request;
using plan::track;

namespace {

constexpr address base{1_MiB};

/// All in one segment from `base` on.
[[nodiscard]] track at_base(plan::plan p) {
  segment const whole[] = {{base, 1_GiB, 0}};
  return {std::move(p), whole};
}
/// A letter a request, told by their sizes: each is freed before the next comes.
[[nodiscard]] plan::plan spelt(std::string_view letters, bool repeats = true) {
  plan::plan p{.requests = {}, .period = 2 * letters.size(), .repeats = repeats};
  for (std::size_t i = 0; i < letters.size(); ++i) {
    bytes const size = 512 * static_cast<bytes>(letters[i]);
    p.requests.push_back({.size = size, .birth = 2 * i, .death = 2 * i + 1, .offset = 0});
  }
  return p;
}
[[nodiscard]] std::uint64_t hash_of(std::string_view run) {
  std::uint64_t keys[track::run];
  for (std::size_t i = 0; i < track::run; ++i) keys[i] = track::key(512 * static_cast<bytes>(run[i]), 0);
  return track::hash(keys);
}

[[nodiscard]] bool share_bytes(step_request const& a, step_request const& b) {
  return a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}
/// Which end of `on`'s comes last before request `i` where its memory is concerned, by a look at all.
[[nodiscard]] std::optional<std::uint32_t> last_use(track const& t, std::uint32_t i, std::uint32_t on) {
  std::vector<step_request> const& all = t.source().requests;
  std::optional<std::uint32_t> in_step, in_step_before;
  for (std::uint32_t e = 0; e < t.ends().size(); ++e) {
    step_request const& r = all[t.ends()[e].request];
    if (r.stream != on || !share_bytes(r, all[i])) continue;
    (t.ends()[e].when <= all[i].birth ? in_step : in_step_before) = e;
  }
  return in_step ? in_step : in_step_before;
}

}  // namespace

TEST_CASE("an offset is an address in the segment that it lies in") {
  std::vector<segment> const segments = {{address{1_MiB}, 4096, 0}, {address{64_MiB}, 2048, 4608}};
  plan::plan p{.requests = {{.size = 1024, .birth = 0, .death = 1, .offset = 3072},
                            {.size = 512, .birth = 2, .death = 3, .offset = 4608},
                            {.size = 512, .birth = 4, .death = 5, .offset = 6144}},
               .period = 6};
  track const t(p, segments);
  CHECK(t.steps()[0].at == address{1_MiB} + 3072);
  CHECK(t.steps()[1].at == address{64_MiB});
  CHECK(t.steps()[2].at == address{64_MiB} + 1536);
  CHECK(t.spots() == 3);
}

TEST_CASE("what lies in no segment, stays or has no offset is not planned") {
  std::vector<segment> const segments = {{address{1_MiB}, 4096, 512}, {address{64_MiB}, 2048, 5120}};
  plan::plan p{.requests = {{.size = 512, .birth = 0, .death = 1, .offset = 0},       // before the first
                            {.size = 1024, .birth = 2, .death = 3, .offset = 4096},   // across the first one's end
                            {.size = 512, .birth = 4, .death = 5, .offset = 4608},    // between them
                            {.size = 512, .birth = 6, .death = 7, .offset = 7168},    // beyond the last
                            {.size = 1_GiB, .birth = 8, .death = 9, .offset = 5120},  // longer than it
                            {.size = 512, .birth = 10, .offset = 512},                // stays
                            {.size = 512, .birth = 11, .death = 12}},                 // has no offset
               .period = 14};
  track const t(p, segments);
  REQUIRE(t.steps().size() == 7);
  for (track::step const& s : t.steps()) {
    CHECK(s.at == address{});
    CHECK(s.spot == track::none);
  }
  CHECK(t.ends().empty());
  CHECK(t.spots() == 0);
  CHECK(track(p, {}).spots() == 0);
}

TEST_CASE("requests at one address share a spot, and every address is found") {
  plan::plan p{.requests = {}, .period = 4000};
  for (plan::instant i = 0; i < 2000; ++i) {
    p.requests.push_back({.size = 512, .birth = 2 * i, .death = 2 * i + 1, .offset = i * i % 701 * 512});
  }
  track const t = at_base(p);
  std::set<std::uint32_t> spots;
  for (track::step const& s : t.steps()) {
    CHECK(t.spot_at(s.at) == s.spot);
    CHECK(s.spot < t.spots());
    spots.insert(s.spot);
  }
  CHECK(spots.size() == 351);  // so many squares modulo 701
  CHECK(t.spots() == spots.size());
  CHECK(t.spot_at(base + 256) == track::none);
  CHECK(t.spot_at(base + 2 * 512) == track::none);  // no square
}

TEST_CASE("ends are in order, those of the step before at their time in this one") {
  plan::plan p{.requests = {{.size = 512, .birth = 0, .death = 12, .offset = 0},
                            {.size = 512, .birth = 1, .death = 8, .offset = 512},
                            {.size = 512, .birth = 2, .death = 3, .offset = 1024},
                            {.size = 512, .birth = 4, .death = 10, .offset = 1024}},
               .period = 10};
  track const steps = at_base(p);
  std::vector<std::pair<plan::instant, std::uint32_t>> ends;
  for (track::end const& e : steps.ends()) ends.emplace_back(e.when, e.request);
  CHECK(ends == std::vector<std::pair<plan::instant, std::uint32_t>>{{0, 3}, {2, 0}, {3, 2}, {8, 1}});
  p.repeats = false;
  CHECK(at_base(p).ends().back().when == 12);
}

TEST_CASE("each stream's last use of a place is known, by a look at every pair") {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::size_t uses = 0;
  for (int round = 0; round < 300; ++round) {
    plan::plan p{.requests = {}, .period = 80};
    for (plan::instant birth = random() % 2; birth < p.period; birth += 1 + random() % 4) {
      p.requests.push_back({.size = 512 * (1 + random() % 4),
                            .stream = static_cast<std::uint32_t>(random() % 3),
                            .birth = birth,
                            .death = birth + 1 + random() % 40,
                            .offset = random() % 8 == 0 ? step_request::nowhere : 512 * (random() % 12)});
    }
    track const t = at_base(p);
    for (std::uint32_t i = 0; i < t.steps().size(); ++i) {
      std::vector<std::optional<std::uint32_t>> found(3);
      for (track::earlier_use const& u : t.before(i)) {
        REQUIRE(u.stream != p.requests[i].stream);
        REQUIRE_FALSE(found[u.stream]);
        found[u.stream] = u.end;
        ++uses;
      }
      for (std::uint32_t on = 0; on < 3; ++on) {
        bool const asked = on != p.requests[i].stream && t.steps()[i].at != address{};
        CHECK(found[on] == (asked ? last_use(t, i, on) : std::nullopt));
      }
    }
  }
  CHECK(uses > 1000);
}

TEST_CASE("of one stream there are no earlier uses to wait for") {
  track const t = at_base(spelt("abcabc"));
  for (std::uint32_t i = 0; i < t.steps().size(); ++i) CHECK(t.before(i).empty());
}

TEST_CASE("a run is found from a request on, and else from the first") {
  track const t = at_base(spelt("abcdeabcdf", false));
  CHECK(t.find(hash_of("abcd"), 0) == 3);
  CHECK(t.find(hash_of("abcd"), 3) == 3);
  CHECK(t.find(hash_of("abcd"), 4) == 8);
  CHECK(t.find(hash_of("abcd"), 9) == 3);
  CHECK(t.find(hash_of("bcde"), 9) == 4);
  CHECK(t.find(hash_of("abdc"), 0) == track::none);
  CHECK(t.find(hash_of("cdfa"), 0) == track::none);
}

TEST_CASE("in a plan that repeats, runs go on from its end to its beginning") {
  track const t = at_base(spelt("abcdef"));
  CHECK(t.find(hash_of("defa"), 0) == 0);
  CHECK(t.find(hash_of("fabc"), 0) == 2);
  CHECK(at_base(spelt("abcdef", false)).find(hash_of("defa"), 0) == track::none);
}

TEST_CASE("a plan shorter than a run has none") {
  CHECK(at_base(spelt("abc")).find(hash_of("abca"), 0) == track::none);
  CHECK(at_base({}).find(hash_of("abca"), 0) == track::none);
}

TEST_CASE("runs tell sizes, streams and their order") {
  CHECK(track::key(512, 0) != track::key(512, 1));
  CHECK(track::key(512, 0) != track::key(1024, 0));
  CHECK(hash_of("abcd") != hash_of("bacd"));
  CHECK(hash_of("abcd") != hash_of("abdc"));
}
