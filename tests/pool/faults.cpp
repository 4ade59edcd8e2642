/// The fault sweep: every call of the driver and of the streams that an operation makes is made to fail in turn, once,
/// and with all that follow, of any kind and of each. Whatever fails, nothing changes hands, every invariant holds, the
/// pool serves again when the faults are over, and nothing is left when it goes.

#include <algorithm>
#include <functional>
#include <string>

#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/stitch/no_stitch.hpp"
#include "tests/pool/faulty_streams.hpp"
#include "tests/pool/rig.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};
constexpr bytes limit = 24 * chunk_bytes;
/// More than can be added to what lies free in one piece.
constexpr bytes last_resort_bytes = 9 * chunk_bytes;

template <PoolConfig Config>
constexpr bool moves = !std::same_as<typename Config::stitching, no_stitch>;

/// A pool with a bit of everything: free chunks apart from one another, half chunks, small blocks, chunks of their own
/// in use and free, a live and an idle stitch, a parked block, and blocks that another stream's work still uses.
template <PoolConfig Config>
struct scene {
  scene() : r(options()) {
    auto const pending = r.take_many(2, chunk_bytes, b);
    small = r.take(small_block, b);
    kept = r.holes(5, a);
    address const idle = r.take(2 * chunk_bytes - granule, a);
    stitched = r.take(2 * chunk_bytes, a);
    auto const halves = r.take_many(4, half_chunk, a);
    r.give(idle);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      if (i == 0) must(r.pool().record_stream(halves[i], b));
      if (i % 2 == 0) r.give(halves[i]);
      else kept.push_back(halves[i]);
    }
    own = r.take({.size = 2 * chunk_bytes, .on = a, .where = placement::own_chunks});
    r.give(r.take({.size = chunk_bytes, .on = a, .where = placement::one_handle}));
    if constexpr (moves<Config>) {
      movable = r.take({.size = chunk_bytes + granule, .on = a, .where = placement::movable});
      vacated = r.take({.size = chunk_bytes + granule, .on = a, .where = placement::movable});
      must(r.pool().vacate(vacated));
      left = r.take({.size = chunk_bytes + granule, .on = a, .where = placement::movable});
      must(r.pool().vacate(left, vacating::leave));
      kept.push_back(r.take(chunk_bytes, a));  // some of what it had
      handed = r.take({.size = chunk_bytes + granule, .on = a, .where = placement::movable});
      taken = r.take({.size = chunk_bytes + granule, .on = a, .where = placement::movable});
      must(r.pool().vacate_behind(taken, stream{4}));
      kept.push_back(r.take(chunk_bytes, stream{4}));  // some of what that had
      must(r.pool().vacate_behind(handed, stream{4}));
    }
    r.give(pending);
  }

  static rig_options options() {
    rig_options o;
    o.pool.limit = limit;
    o.time.lag = 1000;
    o.cache.stitches = 1;
    return o;
  }

  rig<Config> r;
  std::vector<address> kept;
  address small{}, stitched{}, own{}, movable{}, vacated{}, left{}, handed{}, taken{};
};

/// An operation on a scene: whether it succeeded.
template <PoolConfig Config>
struct operation {
  char const* name;
  std::function<bool(scene<Config>&)> run;
};

template <PoolConfig Config>
[[nodiscard]] std::vector<operation<Config>> operations() {
  using here = scene<Config>&;
  auto const take = [](request const& r) { return [r](here s) { return s.r.pool().allocate(r).has_value(); }; };
  auto const give = [](address scene<Config>::* which) {
    return [which](here s) { return s.r.pool().deallocate(s.*which).has_value(); };
  };
  std::vector<operation<Config>> all = {
      {"allocate a small block", take({.size = small_block, .on = a})},
      {"grow for small blocks", take({.size = 10 * small_block, .on = a, .alignment = granule})},
      {"allocate a large block", take({.size = half_chunk, .on = a})},
      {"allocate a stitched block", take({.size = 3 * chunk_bytes + half_chunk, .on = b})},
      {"grow", take({.size = 8 * chunk_bytes, .on = a})},
      {"grow and align", take({.size = 5 * chunk_bytes, .on = b, .alignment = 4 * chunk_bytes})},
      {"allocate own chunks", take({.size = 3 * chunk_bytes, .on = a, .where = placement::own_chunks})},
      {"allocate one handle", take({.size = 2 * chunk_bytes, .on = b, .where = placement::one_handle})},
      {"come to the last resorts", take({.size = last_resort_bytes, .on = b})},
      {"run out of memory", take({.size = limit, .on = a})},
      {"take another stream's memory", take({.size = quarter_chunk, .on = stream{3}})},
      {"deallocate a small block", give(&scene<Config>::small)},
      {"deallocate a stitched block", give(&scene<Config>::stitched)},
      {"deallocate own chunks", give(&scene<Config>::own)},
      {"record a use",
       [](here s) {
         return s.r.pool().record_stream(s.stitched, b).has_value() && s.r.pool().deallocate(s.stitched).has_value();
       }},
      {"evict",
       [](here s) {
         bool done = s.r.pool().deallocate(s.stitched).has_value();
         s.r.time->finish_all();
         return s.r.pool().deallocate(s.small).has_value() && done;
       }},
      {"trim", [](here s) { return s.r.pool().trim().has_value(); }},
      {"retire a stream", [](here s) { return s.r.pool().retire_stream(a).has_value(); }},
  };
  if constexpr (moves<Config>) {
    all.push_back(
        {"allocate a movable block", take({.size = 3 * chunk_bytes + granule, .on = b, .where = placement::movable})});
    all.push_back({"vacate", [](here s) { return s.r.pool().vacate(s.movable).has_value(); }});
    all.push_back({"refill", [](here s) { return s.r.pool().refill(s.vacated, b).has_value(); }});
    all.push_back({"leave mapped", [](here s) { return s.r.pool().vacate(s.movable, vacating::leave).has_value(); }});
    all.push_back({"refill what was left", [](here s) { return s.r.pool().refill(s.left, b).has_value(); }});
    all.push_back({"deallocate what was left", give(&scene<Config>::left)});
    all.push_back({"hand on", [](here s) { return s.r.pool().vacate_behind(s.movable, stream{5}).has_value(); }});
    all.push_back({"allocate a movable block where what is in use is as good",
                   take({.size = 3 * chunk_bytes,
                         .on = b,
                         .where = placement::movable,
                         .foreseen = {.as = 1, .now = 1, .until = 2, .again = 3}})});
    for (bool const insist : {false, true}) {
      all.push_back({"refill what was handed on",
                     [=](here s) { return s.r.pool().refill(s.handed, b, stream{6}, insist).has_value(); }});
      all.push_back({"refill what was handed on and taken",
                     [=](here s) { return s.r.pool().refill(s.taken, b, stream{6}, insist).has_value(); }});
    }
    all.push_back({"deallocate what was handed on", give(&scene<Config>::handed)});
    all.push_back({"deallocate what was handed on and taken", give(&scene<Config>::taken)});
    all.push_back({"deallocate a vacated block", give(&scene<Config>::vacated)});
  }
  return all;
}

/// After the faults: the pool is sound, serves, gives everything back and goes without a trace.
template <PoolConfig Config>
void recover(scene<Config>& s) {
  s.r.sound();
  bytes const held = s.r.reserved();
  s.r.pool().set_limit(2 * held + limit);
  for (bytes n : {small_block, half_chunk, 4 * chunk_bytes}) {
    for (stream on : {a, b}) s.r.give(s.r.take(n, on));
  }
  (void)s.r.trim();
  s.r.sound();
  s.r.destroy();
  CHECK(s.r.time->counts().live_fences == 0);
  CHECK(s.r.time->counts().misuses == 0);
}

/// Runs `op` on a fresh scene with the n-th call failing, for n = 0 and on until none fails. `arm(scene, n)` plans it,
/// `faults(scene)` counts, `disarm(scene)` ends it.
template <PoolConfig Config, class Arm, class Faults, class Disarm>
void sweep(operation<Config> const& op, Arm const& arm, Faults const& faults, Disarm const& disarm) {
  constexpr std::uint64_t most = 4000;
  for (std::uint64_t n = 0;; ++n) {
    CAPTURE(op.name);
    CAPTURE(n);
    REQUIRE(n < most);
    scene<Config> s;
    pool_stats const before = s.r.stats();
    auto const already = faults(s);
    arm(s, n);
    bool const done = op.run(s);
    pool_stats const after = s.r.stats();
    if (!done) {
      CHECK(after.requested.now == before.requested.now);
      CHECK(after.live.now == before.live.now);
      CHECK(after.allocations == before.allocations);
      CHECK(after.deallocations == before.deallocations);
    }
    char const* const broken = s.r.pool().validate();
    REQUIRE_MESSAGE(broken == nullptr, broken);
    bool const over = faults(s) == already;
    disarm(s);
    recover(s);
    if (over) return;
  }
}

template <PoolConfig Config>
void sweep_driver(fault_plan const& how) {
  for (auto const& op : operations<Config>()) {
    sweep<Config>(
        op,
        [&](auto& s, std::uint64_t n) {
          fault_plan plan = how;
          plan.first = n;
          s.r.device.calls.arm(plan);
        },
        [](auto& s) { return s.r.device.calls.faults(); }, [](auto& s) { s.r.device.calls.disarm(); });
  }
}

template <PoolConfig Config>
void sweep_streams(stream_fault_plan const& how) {
  for (auto const& op : operations<Config>()) {
    sweep<Config>(
        op,
        [&](auto& s, std::uint64_t n) {
          stream_fault_plan plan = how;
          plan.first = n;
          s.r.pool().streams().arm(plan);
        },
        [](auto& s) { return s.r.pool().streams().faults(); }, [](auto& s) { s.r.pool().streams().disarm(); });
  }
}

using lake_here = rig_config<faulty_streams>;
using unstitched_here = lake_here::with_stitch<no_stitch>;
using gmlake_here = gmlake_config<borrowed_device, faulty_streams>;

constexpr driver_call every_call[] = {driver_call::create,   driver_call::map,     driver_call::set_access,
                                      driver_call::unmap,    driver_call::release, driver_call::reserve,
                                      driver_call::unreserve};
constexpr stream_call every_stream_call[] = {stream_call::record, stream_call::reached, stream_call::wait,
                                             stream_call::synchronize, stream_call::synchronize_device};

}  // namespace

TEST_CASE("the sweep meets what it is meant to") {
  scene<lake_here> s;
  pool_stats const stats = s.r.stats();
  auto const beneath = s.r.device.beneath(s.taken, chunk_bytes).front().memory;
  CHECK(s.r.device.beneath(s.kept.back(), chunk_bytes).front().memory == beneath);
  CHECK(stats.stitches_live == 6);
  CHECK(stats.stitches_cached == 1);
  CHECK(std::ranges::count(s.r.pool().snapshot().blocks, true, &block_snapshot::pending) >= 3);
  scene<unstitched_here> u;
  for (auto const& op : operations<unstitched_here>()) {
    if (op.name != std::string("come to the last resorts")) continue;
    CHECK(op.run(u));
    CHECK(u.r.stats().host_waits > 0);
    CHECK(u.r.stats().driver[driver_call::release].calls > 0);
  }
}

TEST_CASE_TEMPLATE("any one call of the driver may fail", Config, lake_here, unstitched_here, gmlake_here) {
  sweep_driver<Config>({.first = 0});
}

TEST_CASE_TEMPLATE("all calls of the driver may fail from one on", Config, lake_here, unstitched_here, gmlake_here) {
  sweep_driver<Config>({.first = 0, .count = fault_plan::endless});
}

TEST_CASE("any call of one kind may fail, once or from then on") {
  for (driver_call c : every_call) {
    CAPTURE(driver_call_names[static_cast<std::size_t>(c)]);
    sweep_driver<lake_here>({.first = 0, .only = c});
    sweep_driver<lake_here>({.first = 0, .count = fault_plan::endless, .only = c});
  }
}

TEST_CASE("any call of the streams may fail, once or from then on") {
  for (errc code : {errc::driver_failure, errc::not_supported}) {
    CAPTURE(to_string(code));
    for (std::uint64_t count : {std::uint64_t{1}, stream_fault_plan::endless}) {
      CAPTURE(count);
      sweep_streams<lake_here>({.count = count, .code = code});
      for (stream_call c : every_stream_call) {
        CAPTURE(static_cast<int>(c));
        sweep_streams<lake_here>({.count = count, .only = c, .code = code});
      }
    }
  }
}

TEST_CASE("one call that fails in destruction leaves nothing behind") {
  for (std::uint64_t n = 0;; ++n) {
    CAPTURE(n);
    scene<lake_here> s;
    auto const already = s.r.device.calls.faults();
    s.r.device.calls.arm({.first = n});
    s.r.destroy();
    if (s.r.device.calls.faults() == already) break;
  }
}

TEST_CASE("destruction after the driver has gone is quiet") {
  watched_device device(either_device(simulated({.granularity = granule})));
  {
    basic_pool<rig_config<one_stream>> pool{borrowed_device(device)};
    for (bytes n : {small_block, chunk_bytes, 3 * chunk_bytes}) (void)must(pool.allocate(n));
    device.calls.arm({.first = 0, .count = fault_plan::endless});
  }
  CHECK_FALSE(device.idle());
}
