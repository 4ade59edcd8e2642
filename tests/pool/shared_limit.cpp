/// Limits from outside a pool: one that several pools share, and what the device says it has left.

#include "gmlake/pool/shared_limit.hpp"

#include <thread>

#include "gmlake/pool/presets/gmlake.hpp"
#include "tests/pool/rig.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

constexpr stream a{1};
constexpr stream b{2};

[[nodiscard]] rig_options sharing(shared_limit& limit, bytes own = ~bytes{0}) {
  rig_options o;
  o.pool.limit = own;
  o.pool.shared = &limit;
  return o;
}

/// A device that says how much it has left.
class measured_device : public borrowed_device {
 public:
  using borrowed_device::borrowed_device;
  measured_device(watched_device& lender, int& asked) noexcept : borrowed_device(lender), asked_(&asked) {}
  [[nodiscard]] result<device_memory> memory_info() const noexcept {
    ++*asked_;
    auto& device = const_cast<measured_device*>(this)->lender().device();
    bytes const total = device.capacity();
    return device_memory{.free = total - std::min(total, device.created_bytes()), .total = total};
  }

 private:
  int* asked_;
};
static_assert(MeasuredBackend<measured_device> && !MeasuredBackend<borrowed_device>);

/// As a pool gives memory back, is any of it still the device's that the limit no longer counts?
class honest_device : public borrowed_device {
 public:
  honest_device(watched_device& lender, shared_limit const& limit, bool& lied) noexcept
      : borrowed_device(lender), limit_(&limit), lied_(&lied) {}
  [[nodiscard]] result<handle> create(bytes n) noexcept {
    result<handle> made = borrowed_device::create(n);
    look();
    return made;
  }
  [[nodiscard]] result<void> release(handle h) noexcept {
    look();
    return borrowed_device::release(h);
  }

 private:
  void look() noexcept { *lied_ = *lied_ || lender().device().created_bytes() > limit_->held(); }
  shared_limit const* limit_;
  bool* lied_;
};

}  // namespace

TEST_CASE("a shared limit remembers the most that was held") {
  shared_limit l;
  CHECK(l.take(4));
  CHECK(l.take(5));
  l.give(7);
  CHECK(l.take(1));
  CHECK(l.peak() == 9);
  l.reset_peak();
  CHECK(l.peak() == 3);
  CHECK(l.take(1));
  CHECK(l.peak() == 4);
}

TEST_CASE("a shared limit hands out what it has and no more") {
  shared_limit l(10);
  CHECK(l.limit() == 10);
  CHECK(l.take(4));
  CHECK(l.left() == 6);
  CHECK_FALSE(l.take(7));
  CHECK(l.held() == 4);
  CHECK(l.take(6));
  CHECK_FALSE(l.take(1));
  CHECK(l.take(0));
  l.give(10);
  CHECK(l.held() == 0);
}

TEST_CASE("a shared limit without a number is none") {
  shared_limit l;
  CHECK(l.take(~bytes{0} - 1));
  CHECK_FALSE(l.take(2));  // nor do sums wrap around
  CHECK(l.left() == 1);
}

TEST_CASE("a shared limit set below what is held stays exceeded until that is given back") {
  shared_limit l(10);
  REQUIRE(l.take(8));
  l.set(5);
  CHECK(l.left() == 0);
  CHECK_FALSE(l.take(1));
  CHECK_FALSE(l.take(0));
  l.give(4);
  CHECK(l.left() == 1);
  CHECK(l.take(1));
}

TEST_CASE("threads never take more than a shared limit together") {
  constexpr bytes most = 100;
  shared_limit l(most);
  std::atomic<bytes> held = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 4; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 20'000; ++i) {
        bytes const n = 1 + random() % 60;
        if (!l.take(n)) continue;
        if (held.fetch_add(n) + n > most) ++wrong;
        held.fetch_sub(n);
        l.give(n);
      }
    });
  }
  for (auto& t : all) t.join();
  CHECK(wrong == 0);
  CHECK(l.held() == 0);
}

TEST_CASE("pools that share a limit stay within it together") {
  shared_limit limit(4 * chunk_bytes);
  plain_rig first(sharing(limit));
  plain_rig second(sharing(limit));
  address const p = first.take(3 * chunk_bytes);
  CHECK(limit.held() == 3 * chunk_bytes);
  fails_with(second.pool().allocate(2 * chunk_bytes), errc::out_of_memory);
  (void)second.take(chunk_bytes);
  fails_with(first.pool().allocate(half_chunk), errc::out_of_memory);
  first.give(p);
  fails_with(second.pool().allocate(2 * chunk_bytes), errc::out_of_memory);  // free, but another pool's
  CHECK(first.trim() == 3 * chunk_bytes);
  CHECK(limit.held() == chunk_bytes);
  (void)second.take(2 * chunk_bytes);
  CHECK(limit.held() == first.reserved() + second.reserved());
}

TEST_CASE("a pool's own limit holds beside the shared one") {
  shared_limit limit(8 * chunk_bytes);
  plain_rig r(sharing(limit, 2 * chunk_bytes));
  (void)r.take(2 * chunk_bytes);
  auto const refused = r.pool().allocate(chunk_bytes);
  fails_with(refused, errc::out_of_memory);
  CHECK(refused.error().account.limit == 2 * chunk_bytes);
  CHECK(limit.held() == 2 * chunk_bytes);
}

TEST_CASE("the last chunk under a shared limit is as large as what is left") {
  shared_limit limit(chunk_bytes + quarter_chunk);
  plain_rig first(sharing(limit));
  plain_rig second(sharing(limit));
  (void)first.take(chunk_bytes);
  (void)second.take(quarter_chunk);
  CHECK(second.reserved() == quarter_chunk);
  CHECK(limit.left() == 0);
}

TEST_CASE("chunks of their own and small ones count in the shared limit") {
  shared_limit limit(4 * chunk_bytes);
  plain_rig r(sharing(limit));
  (void)r.take(small_block);
  CHECK(limit.held() == granule);
  address const own = r.take({.size = 2 * chunk_bytes, .where = placement::own_chunks});
  address const one = r.take({.size = chunk_bytes, .where = placement::one_handle});
  CHECK(limit.held() == granule + 3 * chunk_bytes);
  fails_with(r.pool().allocate({.size = chunk_bytes, .where = placement::one_handle}), errc::out_of_memory);
  fails_with(r.pool().allocate({.size = chunk_bytes, .where = placement::own_chunks}), errc::out_of_memory);
  r.give({own, one});
  (void)r.trim();
  CHECK(limit.held() == granule);
}

TEST_CASE("a pool that goes gives all its share back, live blocks' too") {
  shared_limit limit(8 * chunk_bytes);
  {
    plain_rig r(sharing(limit));
    auto const kept = r.checker(3);
    (void)r.take({.size = chunk_bytes, .where = placement::one_handle});
    CHECK(limit.held() == r.reserved());
    CHECK(r.reserved() > 0);
    r.destroy();
  }
  CHECK(limit.held() == 0);
}

TEST_CASE("a pinned pool keeps its share when it trims") {
  shared_limit limit(4 * chunk_bytes);
  plain_rig r(sharing(limit));
  r.give(r.take(2 * chunk_bytes));
  r.pool().pin();
  CHECK(r.trim() == 0);
  CHECK(limit.held() == 2 * chunk_bytes);
}

TEST_CASE("what a call of the driver that fails leaves is not counted, and what it created is") {
  shared_limit limit(32 * chunk_bytes);
  rig_options const o = sharing(limit);
  request const all[] = {{.size = 3 * chunk_bytes, .on = a},
                         {.size = small_block, .on = a},
                         {.size = 3 * chunk_bytes, .on = b, .where = placement::own_chunks},
                         {.size = 3 * chunk_bytes, .on = a, .where = placement::one_handle},
                         {.size = 2 * chunk_bytes, .on = b, .alignment = 2 * chunk_bytes}};
  for (request const& wanted : all) {
    for (std::uint64_t count : {std::uint64_t{1}, fault_plan::endless}) {
      for (std::uint64_t n = 0;; ++n) {
        CAPTURE(wanted.size);
        CAPTURE(n);
        REQUIRE(n < 1000);
        stream_rig r(o);
        auto const kept = r.holes(2, a);
        auto const already = r.device.calls.faults();
        r.device.calls.arm({.first = n, .count = count});
        (void)r.pool().allocate(wanted);
        CHECK(limit.held() == r.reserved());
        (void)r.pool().trim();
        CHECK(limit.held() == r.reserved());
        bool const over = r.device.calls.faults() == already;
        r.device.calls.disarm();
        r.give(kept);
        (void)r.trim();
        r.sound();
        CHECK(limit.held() == r.reserved());
        r.destroy();
        REQUIRE(limit.held() == 0);
        if (over) break;
      }
    }
  }
}

TEST_CASE("pools that share a limit never exceed it together, whatever they do") {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 5);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    auto const below = [&](bytes n) { return static_cast<bytes>(random() % n); };
    shared_limit limit(12 * chunk_bytes);
    std::vector<std::unique_ptr<stream_rig>> rigs;
    std::vector<std::vector<address>> live(3);
    for (std::size_t i = 0; i < live.size(); ++i) rigs.push_back(std::make_unique<stream_rig>(sharing(limit)));
    int refused = 0;
    for (int step = 0; step < 1500; ++step) {
      CAPTURE(step);
      std::size_t const i = below(live.size());
      stream_rig& r = *rigs[i];
      r.time->advance();
      std::size_t const what = below(64);
      if (what == 0) {
        (void)r.trim();
      } else if (what == 1) {
        live[i].clear();
        rigs[i] = std::make_unique<stream_rig>(sharing(limit));
      } else if (what == 2) {
        limit.set(below(16) * chunk_bytes);
      } else if (what < 36 || live[i].empty()) {
        bytes const held = limit.held();
        auto const got = r.pool().allocate({.size = below(2) == 0 ? below(20'000) : below(3 * chunk_bytes),
                                            .on = stream{below(3)},
                                            .where = below(8) == 0 ? placement::own_chunks : placement::anywhere});
        if (got) live[i].push_back(*got);
        else ++refused;
        REQUIRE(limit.held() <= std::max(held, limit.limit()));
      } else {
        std::swap(live[i][below(live[i].size())], live[i].back());
        r.give(live[i].back());
        live[i].pop_back();
      }
      bytes reserved = 0;
      for (auto const& one : rigs) reserved += one->reserved();
      REQUIRE(limit.held() == reserved);
    }
    CHECK(refused > 0);
    rigs.clear();
    CHECK(limit.held() == 0);
  }
}

TEST_CASE("while a pool grows and trims, the shared limit counts all that the device has created") {
  shared_limit limit;
  bool lied = false;
  watched_device device(either_device(simulated({.granularity = granule})));
  {
    basic_pool<pool_config<honest_device>> pool(honest_device(device, limit, lied), {.shared = &limit});
    for (bytes n : {small_block, chunk_bytes, 64_MiB}) must(pool.deallocate(must(pool.allocate(n))));
    (void)must(pool.trim());
    CHECK_FALSE(lied);
    (void)must(pool.allocate(64_MiB));
    lied = false;
  }
  CHECK(device.idle());
}

TEST_CASE("while a pool is destroyed, the shared limit counts all that the device still holds") {
  shared_limit limit;
  bool lied = false;
  watched_device device(either_device(simulated({.granularity = granule})));
  {
    basic_pool<pool_config<honest_device>> pool(honest_device(device, limit, lied), {.shared = &limit});
    (void)must(pool.allocate(64_MiB));
  }
  CHECK_FALSE(lied);
}

TEST_CASE("a request beyond what the device has left takes nothing from it first") {
  int asked = 0;
  watched_device device(either_device(simulated({.capacity = 3_GiB, .granularity = 2_MiB})));
  basic_pool<pool_config<measured_device>> pool{measured_device(device, asked)};
  auto const kept = must(pool.allocate(512_MiB));
  CHECK(asked == 0);  // it is not worth asking for so little
  bytes const before = pool.stats().reserved.peak;
  fails_with(pool.allocate(4_GiB), errc::out_of_memory);
  CHECK(asked > 0);
  CHECK(pool.stats().reserved.peak == before);
  fails_with(pool.allocate({.size = 4_GiB, .where = placement::own_chunks}), errc::out_of_memory);
  CHECK(pool.stats().reserved.peak == before);
  (void)must(pool.allocate(2_GiB));
  must(pool.deallocate(kept));
}

TEST_CASE("what is free in the pool already is not asked of the device") {
  int asked = 0;
  watched_device device(either_device(simulated({.capacity = 3_GiB, .granularity = 2_MiB})));
  basic_pool<pool_config<measured_device>> pool{measured_device(device, asked)};
  must(pool.deallocate(must(pool.allocate(2_GiB))));
  (void)must(pool.allocate(pool.stats().reserved.now + 512_MiB));
  CHECK(pool.stats().failures == 0);
  CHECK(device.device().created_bytes() <= 3_GiB);
}

TEST_CASE("the account is the same asked for as in an error, and free chunks are those wholly free") {
  rig_options o;
  o.pool.limit = 4 * chunk_bytes;
  plain_rig r(o);
  auto const kept = r.holes(1);
  address const half = r.take(half_chunk);
  auto const refused = r.pool().allocate(3 * chunk_bytes);
  fails_with(refused, errc::out_of_memory);
  memory_account const now = r.pool().account();
  memory_account const then = refused.error().account;
  CHECK(now.requested == 0);
  CHECK(then.requested == 3 * chunk_bytes);
  CHECK(now.reserved == then.reserved);
  CHECK(now.live == then.live);
  CHECK(now.free == then.free);
  CHECK(now.largest_contiguous == then.largest_contiguous);
  CHECK(now.limit == 4 * chunk_bytes);
  CHECK(now.live + now.free == now.reserved);
  bytes const whole = r.pool().free_chunks();
  r.give(half);
  CHECK(r.pool().free_chunks() == r.reserved() - chunk_bytes);
  CHECK(whole <= r.pool().free_chunks() - chunk_bytes);
  CHECK(r.trim() == r.stats().reserved.peak - chunk_bytes - (r.stats().reserved.peak - now.reserved));
  CHECK(r.pool().free_chunks() == 0);
}

TEST_CASE("free chunks count whoever may still use them") {
  stream_rig r;
  (void)r.take(small_block, b);
  r.give(r.take(2 * chunk_bytes, a));
  CHECK(r.pool().free_chunks() == 2 * chunk_bytes);
}

TEST_CASE("requests that come to the last resorts are counted, served or not") {
  rig_options o;
  o.pool.limit = 2 * chunk_bytes;
  rig<rig_config<simulated_streams>> r(o);
  (void)r.take(small_block, b);
  r.give(r.take(chunk_bytes, a));
  CHECK(r.stats().retries == 0);
  fails_with(r.pool().allocate(4 * chunk_bytes, a), errc::out_of_memory);
  CHECK(r.stats().retries == 1);
  CHECK(r.stats().failures == 1);
}

TEST_CASE("trimming without waiting releases what is passed, and leaves what the device may still use") {
  stream_rig r;
  (void)r.take(small_block, b);
  address const p = r.take(chunk_bytes, a);
  address const q = r.take({.size = chunk_bytes, .on = a, .where = placement::one_handle});
  r.give(p);
  CHECK(must(r.pool().trim_passed()) == 0);
  CHECK(r.time->counts().host_waits == 0);
  CHECK(r.time->counts().device_syncs == 0);
  must(r.pool().retire_stream(a));  // sets a fence
  CHECK(must(r.pool().trim_passed()) == 0);
  r.time->finish_all();
  CHECK(must(r.pool().trim_passed()) == chunk_bytes);
  CHECK(r.time->counts().host_waits == 0);
  r.give(q);
}
