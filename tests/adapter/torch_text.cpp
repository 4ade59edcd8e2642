#include "gmlake/adapter/torch_text.hpp"

#include <chrono>
#include <sstream>
#include <thread>

#include "tests/adapter/torch_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr torch_pool_id p{3, 4};

[[nodiscard]] std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  CHECK((text.empty() || text.back() == '\n'));
  return all;
}

[[nodiscard]] std::vector<std::string> fields_of(std::string const& line, char separator = ',') {
  std::vector<std::string> all;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, separator);) all.push_back(field);
  return all;
}

[[nodiscard]] std::map<std::string, bytes> figures_of(torch_device& d) {
  std::map<std::string, bytes> all;
  for (std::string const& line : lines_of(stats_text(d))) {
    std::size_t const space = line.find(' ');
    REQUIRE(space != std::string::npos);
    CHECK(all.emplace(line.substr(0, space), std::stoull(line.substr(space + 1))).second);
  }
  return all;
}

/// Free chunks with live ones between, a live stitch over some of them, and a block in a private pool.
void set_scene(torch_rig& r) {
  std::vector<address> all;
  while (all.size() < 16) all.push_back(r.take(4 * mib, a));
  for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
  (void)r.take(9 * mib, a);
  (void)r.take(1000, b);
  r.device().limit().set(100_MiB);
  REQUIRE(r.device().begin(p, only({b})));
  (void)r.take(3 * mib, b);
  REQUIRE(r.device().end(p));
}

[[nodiscard]] torch_rig_options scene_options() {
  torch_rig_options o;
  o.settings.limit = 70_MiB;
  o.settings.chunk = 4_MiB;
  return o;
}

}  // namespace

TEST_CASE("a device's figures are lines of a name and a number, all its pools added up") {
  torch_rig r(scene_options());
  set_scene(r);
  r.give(r.take(100, a));
  fails_with(r.device().allocate(1_GiB, a), errc::out_of_memory);
  auto const all = figures_of(r.device());
  pool_stats const main = r.device().main().stats();
  pool_stats const other = r.device().pool(p)->stats();
  std::map<std::string, bytes> const expected = {
      {"requested", main.requested.now + other.requested.now},
      {"requested_peak", 64_MiB},  // of both at a time: those of each alone are more
      {"live", main.live.now + other.live.now},
      {"live_peak", 64_MiB},
      {"reserved", r.gpu.created()},
      {"reserved_peak", r.device().limit().peak()},
      {"mapped", main.mapped.now + other.mapped.now},
      {"mapped_peak", main.mapped.peak + other.mapped.peak},
      {"limit", 100_MiB},
      {"pools", 2},
      {"allocations", 20},
      {"deallocations", 9},
      {"stitches_live", 1},
      {"stitches_cached", main.stitches_cached + other.stitches_cached},
      {"stitches_made", main.stitches_made + other.stitches_made},
      {"stitch_hits", main.stitch_hits + other.stitch_hits},
      {"device_waits", main.device_waits + other.device_waits},
      {"host_waits", main.host_waits + other.host_waits},
      {"retries", main.retries + other.retries},
      {"out_of_memory", 1},
      {"plans_made", 0},
      {"plans_followed", 0},
      {"plans_left", 0},
      {"plan_placed", 0},
      {"plan_squeezed", 0},
      {"plan_displaced", 0},
      {"plan_astray", 0},
      {"driver_calls", main.driver.total().calls + other.driver.total().calls},
      {"driver_ns", static_cast<bytes>((main.driver.total().time + other.driver.total().time).count())}};
  for (auto const& [name, value] : expected) {
    std::string const& figure = name;
    CAPTURE(figure);
    REQUIRE(all.contains(name));
    CHECK(all.at(name) == value);
  }
  CHECK(all.size() == expected.size());
  CHECK(main.requested.peak + other.requested.peak > 64_MiB);
  CHECK(all.at("requested") == 8 * 4 * mib + 9 * mib + 1000 + 3 * mib);
  CHECK(all.at("retries") > 0);
}

TEST_CASE("a device that was not used yet has figures of nothing") {
  torch_rig r;
  auto const all = figures_of(r.device());
  for (auto const& [name, value] : all) {
    std::string const& figure = name;
    CAPTURE(figure);
    CHECK(value == (name == "limit" ? 1_GiB : name == "pools" ? 1 : 0));
  }
  CHECK(snapshot_text(r.device()) == "");
}

TEST_CASE("a snapshot's lines tell every chunk, block and stitch of every pool") {
  torch_rig r(scene_options());
  set_scene(r);
  std::map<std::string, int> kinds, pools, states;
  bytes chunks = 0, requested = 0, live = 0, pending = 0;
  std::map<bytes, bytes> homes;
  for (std::string const& line : lines_of(snapshot_text(r.device()))) {
    CAPTURE(line);
    auto const f = fields_of(line);
    REQUIRE(f.size() >= 4);
    ++kinds[f[0]];
    ++pools[f[1]];
    if (f[0] == "chunk") {
      REQUIRE(f.size() == 4);
      chunks += std::stoull(f[3]);
      homes[std::stoull(f[2])] = std::stoull(f[3]);
    } else if (f[0] == "block") {
      REQUIRE(f.size() == 8);
      ++states[f[6]];
      requested += std::stoull(f[4]);
      if (f[6] == "live") live += std::stoull(f[3]);
      CHECK((f[7] == "0" || f[7] == "1"));
      CHECK((f[6] == "live") == (std::stoull(f[4]) > 0));
      if (f[7] == "1") pending += std::stoull(f[3]);
    } else {
      REQUIRE(f[0] == "stitch");
      REQUIRE(f.size() == 8);
      CHECK(std::stoull(f[4]) == 9 * mib);
      CHECK(f[5] == "1");
      CHECK(f[6] == "1");
      requested += std::stoull(f[4]);
      bytes extents = 0;
      for (std::string const& e : fields_of(f[7], ';')) {
        auto const parts = fields_of(e, ':');
        REQUIRE(parts.size() == 2);
        CHECK(homes[std::stoull(parts[0])] == std::stoull(parts[1]));
        extents += std::stoull(parts[1]);
      }
      CHECK(extents == std::stoull(f[3]));
    }
  }
  CHECK(chunks == r.gpu.created());
  CHECK(requested == figures_of(r.device()).at("requested"));
  CHECK(live + 9 * mib == figures_of(r.device()).at("live"));
  CHECK(kinds.size() == 3);
  CHECK(kinds["stitch"] == 1);
  CHECK(pools.size() == 2);
  CHECK(pools["0.0"] > 0);
  CHECK(pools["3.4"] > 0);
  CHECK(states["live"] == 10);
  CHECK(states["taken"] > 0);
  CHECK(states["free"] > 0);
  CHECK(pending > 0);
}

TEST_CASE("blocks that a plan has placed have lines of their own, and the plans figures") {
  torch_rig r;
  (void)r.take(3 * mib, a);
  auto const step = [&](auto&& at_the_peak) {
    std::vector<address> kept;
    for (bytes i = 0; i < 40; ++i) kept.push_back(r.take(mib + i * 512, a));
    at_the_peak();
    for (; !kept.empty(); kept.pop_back()) r.give(kept.back());
    r.device().main().note_update();
  };
  // Plans are made in the background: steps go on meanwhile.
  for (int i = 0; i < 2000 && figures_of(r.device()).at("plan_placed") < 40; ++i) {
    step([] {});
    if (figures_of(r.device()).at("plans_made") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(figures_of(r.device()).at("plans_made") >= 1);
  CHECK(figures_of(r.device()).at("plans_followed") >= 1);
  REQUIRE(figures_of(r.device()).at("plan_placed") >= 40);
  bytes planned = 0, requested = 0;
  std::size_t seen = 0;
  step([&] {
    for (std::string const& line : lines_of(snapshot_text(r.device()))) {
      auto const f = fields_of(line);
      if (f[0] != "planned") continue;
      REQUIRE(f.size() == 6);
      CHECK(f[1] == "0.0");
      planned += std::stoull(f[3]);
      requested += std::stoull(f[4]);
    }
    r.device().main().each_live([&](block const&, stream) { ++seen; });
  });
  CHECK(planned == 40 * mib + 512 * 780);
  CHECK(requested == planned);
  CHECK(seen == 41);
}

TEST_CASE("without plans, a pool that is told of updates knows none") {
  torch_settings settings;
  settings.plan = torch_settings::no_plan;
  torch_rig r({.settings = settings});
  r.device().main().note_update();
  r.give(r.take(mib, a));
  CHECK(r.device().main().plans().empty());
  CHECK(r.device().main().planned().placed == 0);
}

TEST_CASE("an idle stitch's line says so, and a hole's says that nothing lies there") {
  torch_rig r(scene_options());
  std::vector<address> all;
  while (all.size() < 16) all.push_back(r.take(4 * mib, a));
  for (std::size_t i = 0; i < all.size(); i += 2) r.give(all[i]);
  r.give(r.take(9 * mib, a));
  std::string text = snapshot_text(r.device());
  std::size_t const at = text.find("stitch,0.0,");
  REQUIRE(at != std::string::npos);
  auto const f = fields_of(text.substr(at, text.find('\n', at) - at));
  CHECK(f[4] == "0");
  CHECK(f[6] == "0");
  CHECK(text.find(",hole,") == std::string::npos);
  r.device().trim();
  text = snapshot_text(r.device());
  CHECK(text.find("stitch,") == std::string::npos);
  CHECK(text.find(",hole,0\n") != std::string::npos);
}
