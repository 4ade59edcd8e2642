/// Random lives of a device under PyTorch: requests, captures, contexts that nest, pools that come and go; by one
/// thread with a model beside it, and by several.

#include <random>
#include <thread>

#include "tests/adapter/torch_rig.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// What a walk expects of a device, by the rules that its header states.
class device_walk {
 public:
  device_walk(torch_rig_options const& o, std::uint64_t seed) : limit_(*o.settings.limit), r_(o), random_(seed) {}

  void step() {
    {
      std::scoped_lock const lock(r_.gpu.mutex);
      r_.gpu.time->advance();
    }
    bool const was_paused = r_.device().paused();
    auto const before = r_.gpu.counts();
    auto const pools = r_.pools();
    std::size_t const what = below(100);
    if (what < 2) begin();
    else if (what < 4) end();
    else if (what < 6) use();
    else if (what < 8) release();
    else if (what < 9) r_.device().trim(id(below(ids)));
    else if (what < 10) r_.device().trim();
    else if (what < 11) serve();
    else if (what < 14) record();
    else if (what < 15) split();
    else if (what < 16) finish();
    else if (live_.empty() || what < 60) allocate();
    else deallocate(below(live_.size()));
    if (was_paused && r_.device().paused()) {
      auto const after = r_.gpu.counts();
      CHECK(after.records == before.records);
      CHECK(after.waits == before.waits);
      CHECK(after.queries == before.queries);
      CHECK(after.host_waits == before.host_waits);
      CHECK(after.device_syncs == before.device_syncs);
      CHECK(r_.pools() >= pools);
    }
    look();
  }

  void finish_all() {
    while (!contexts_.empty()) end();
    while (!live_.empty()) deallocate(live_.size() - 1);
    for (std::size_t i = 0; i < ids; ++i) {
      while (uses_[i] > 0) {
        CHECK(r_.device().release(id(i)));
        --uses_[i];
      }
    }
    look();
    CHECK(r_.pools() == 1);
    r_.device().trim();
    CHECK(r_.gpu.created() == 0);
    r_.destroy();
  }

  /// Other processes leave the device less than the limit.
  void shrink(bytes capacity) { r_.gpu.memory.set_capacity(capacity); }
  /// PyTorch has not made the stream.
  void disown(stream s) { r_.gpu.foreign.add(s); }

  std::size_t elsewhere = 0, refused = 0, routed = 0, captured = 0, pinned_trims = 0;

 private:
  static constexpr std::size_t ids = 4;
  static constexpr std::size_t streams = 4;
  struct held {
    address at{};
    bytes size = 0;
    torch_pool_id home;
  };
  struct context {
    std::size_t pool;
    std::vector<stream> accepted;
    bool capture;
    bool pausing;
  };

  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  [[nodiscard]] static torch_pool_id id(std::size_t i) { return {0, i + 1}; }
  [[nodiscard]] bool has_blocks(std::size_t i) const {
    return std::ranges::any_of(live_, [i](held const& h) { return h.home == id(i); });
  }

  void begin() {
    std::size_t const i = below(ids);
    bool const open = std::ranges::count(contexts_, i, &context::pool) > 0;
    context c{i, {stream{1 + below(streams)}}, below(2) == 0, true};
    if (below(3) == 0) c.accepted.push_back(stream{1 + below(streams)});
    REQUIRE(r_.device().begin(id(i), only(c.accepted)) == !open);
    if (open) return;
    ++uses_[i];
    if (!has_blocks(i) && uses_[i] == 1) pinned_[i].clear();
    if (c.capture) r_.gpu.set_captured(c.accepted[0], true);
    contexts_.push_back(c);
  }
  void end() {
    if (contexts_.empty()) {
      REQUIRE_FALSE(r_.device().end(id(0)));
      return;
    }
    std::size_t const i = below(contexts_.size());
    context const c = contexts_[i];
    contexts_.erase(contexts_.begin() + static_cast<std::ptrdiff_t>(i));
    if (c.capture && std::ranges::none_of(
                         contexts_, [&](context const& o) { return o.capture && o.accepted[0] == c.accepted[0]; })) {
      r_.gpu.set_captured(c.accepted[0], false);
    }
    REQUIRE(r_.device().end(id(c.pool)));
  }
  void use() {
    std::size_t const i = below(ids);
    r_.device().use_pool(id(i));
    ++uses_[i];
  }
  void release() {
    std::size_t const i = below(ids);
    // An open context's own use stays, as PyTorch has it.
    int const kept = std::ranges::count(contexts_, i, &context::pool) > 0 ? 1 : 0;
    if (uses_[i] <= kept && uses_[i] > 0) return;
    REQUIRE(r_.device().release(id(i)) == (uses_[i] > 0));
    if (uses_[i] > 0) --uses_[i];
  }
  void serve() {
    std::size_t const i = below(ids);
    bool const there = r_.device().pool(id(i)) != nullptr;
    REQUIRE(r_.device().serve_on_out_of_memory(id(i), below(2) == 0) == there);
  }
  void split() {
    if (below(8) == 0) (void)r_.device().never_split(id(below(ids)));
  }
  void finish() {
    std::scoped_lock const lock(r_.gpu.mutex);
    r_.gpu.time->finish_all();
  }
  void record() {
    if (live_.empty()) return;
    held const& h = live_[below(live_.size())];
    must(r_.registry.find(h.at).pool->record_stream(h.at, stream{1 + below(streams)}));
  }

  void allocate() {
    stream const on{1 + below(streams)};
    bytes const n = below(3) == 0 ? below(20'000) : below(24 * mib);
    torch_pool_id expected{};
    for (auto c = contexts_.rbegin(); c != contexts_.rend(); ++c) {
      if (std::ranges::find(c->accepted, on) == c->accepted.end()) continue;
      expected = id(c->pool);
      ++routed;
      if (r_.gpu.is_captured(on)) pinned_now_[c->pool] = true, ++captured;
      else c->pausing = false;
      break;
    }
    bytes const reserved = r_.gpu.created();
    auto const got = r_.device().allocate(n, on);
    if (!got) {
      CHECK(got.error().code == errc::out_of_memory);
      CHECK(reserved <= limit_);
      ++refused;
      return;
    }
    torch_pool_id const home = r_.home(*got);
    if (home != expected) {
      CHECK(expected == torch_pool_id{});  // only the main pool has others to help it
      ++elsewhere;
    }
    for (held const& h : live_) REQUIRE((h.at + h.size <= *got || *got + n <= h.at));
    live_.push_back({*got, std::max(n, bytes{1}), home});
  }

  void deallocate(std::size_t i) {
    held const h = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    CHECK(r_.home(h.at) == h.home);
    r_.give(h.at);
  }

  void look() {
    r_.sound();
    CHECK(r_.gpu.most <= limit_);
    CHECK(r_.device().limit().held() <= limit_);
    bool paused = std::ranges::any_of(contexts_, &context::pausing);
    CHECK(r_.device().paused() == paused);
    for (std::size_t i = 0; i < ids; ++i) {
      CHECK(r_.device().uses(id(i)) == uses_[i]);
      torch_pool* const pool = r_.device().pool(id(i));
      if (pool == nullptr) {
        CHECK(uses_[i] == 0);
        CHECK_FALSE(has_blocks(i));
        pinned_[i].clear();
        pinned_now_[i] = false;
        pools_[i] = nullptr;
        continue;
      }
      if (pool != pools_[i]) pinned_[i].clear();
      pools_[i] = pool;
      if (!pinned_now_[i]) continue;
      // What a captured pool has mapped once is mapped for good.
      std::map<address, bytes> now;
      pool_snapshot const shot = pool->snapshot();
      for (auto const& c : shot.chunks) now[c.home] = c.size;
      for (auto const& s : shot.stitches) now[s.begin] = s.size;
      for (auto const& [at, size] : pinned_[i]) CHECK((now.contains(at) && now[at] == size));
      pinned_[i] = std::move(now);
      ++pinned_trims;
    }
  }

  bytes limit_;
  torch_rig r_;
  std::mt19937_64 random_;
  std::vector<held> live_;
  std::vector<context> contexts_;
  int uses_[ids] = {};
  torch_pool* pools_[ids] = {};
  bool pinned_now_[ids] = {};
  std::map<address, bytes> pinned_[ids];
};

}  // namespace

TEST_CASE("whatever a program does with its pools and captures, the device keeps its rules") {
  std::uint64_t const first = from_environment("GMLAKE_TEST_SEED", 1);
  std::uint64_t const walks = from_environment("GMLAKE_TEST_WALKS", 5);
  std::size_t elsewhere = 0, refused = 0, routed = 0, captured = 0, pinned = 0;
  for (std::uint64_t seed = first; seed < first + 2 * walks; ++seed) {
    CAPTURE(seed);
    torch_rig_options o;
    o.lag = seed % 3 == 0 ? timeline_options::endless : 30 * (seed % 3);
    o.settings.limit = 160_MiB;
    if (seed % 4 == 3) o.settings.preset = torch_settings::preset_kind::gmlake;
    if (seed % 4 == 1) o.settings.wait = false;
    device_walk w(o, seed);
    if (seed % 5 == 2) w.shrink(110_MiB);
    if (seed % 5 == 4) w.disown(stream{3});
    for (int i = 0; i < 1200; ++i) {
      CAPTURE(i);
      w.step();
    }
    w.finish_all();
    elsewhere += w.elsewhere;
    refused += w.refused;
    routed += w.routed;
    captured += w.captured;
    pinned += w.pinned_trims;
  }
  CHECK(elsewhere > 0);
  CHECK(refused > 0);
  CHECK(routed > 500);
  CHECK(captured > 100);
  CHECK(pinned > 100);
}

TEST_CASE("threads share a device, its pools and its limit") {
  std::uint64_t const seed = from_environment("GMLAKE_TEST_SEED", 1);
  CAPTURE(seed);
  torch_rig_options o;
  o.lag = 20;
  o.settings.limit = 200_MiB;
  torch_rig r(o);
  std::atomic<int> wrong = 0;
  r.device().on_out_of_memory([](memory_account const& a) { return a.limit == 0; });
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < 4; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random(seed + 1000 * t);
      auto const below = [&](bytes n) { return static_cast<bytes>(random() % n); };
      stream const own{1 + t};
      torch_pool_id const mine{0, 1 + t};
      std::vector<address> live;
      bool open = false;
      for (int i = 0; i < 800; ++i) {
        bytes const what = below(100);
        if (what < 2) {
          // Every other context is a capture on the thread's own stream.
          if (open) {
            if (!r.device().end(mine)) ++wrong;
            r.gpu.set_captured(own, false);
            if (!r.device().release(mine)) ++wrong;
          } else {
            if (below(2) == 0) r.gpu.set_captured(own, true);
            if (!r.device().begin(mine, [own](stream s) { return s == own; })) ++wrong;
          }
          open = !open;
        } else if (what == 3) {
          r.device().trim();
        } else if (what == 4) {
          (void)r.device().account();
          (void)r.device().lines();
        } else if (what == 5) {
          std::scoped_lock const lock(r.gpu.mutex);
          r.gpu.time->advance(10);
        } else if (what == 6 && !live.empty()) {
          auto const owner = r.registry.find(live.back());
          if (owner.pool == nullptr || !owner.pool->record_stream(live.back(), stream{1 + below(4)})) ++wrong;
        } else if (what < 55 || live.empty()) {
          auto const got = r.device().allocate(below(2) == 0 ? below(20'000) : below(20 * mib), own);
          if (!got && got.error().code != errc::out_of_memory) ++wrong;
          if (got) live.push_back(*got);
        } else {
          std::swap(live[below(live.size())], live.back());
          auto const owner = r.registry.find(live.back());
          if (owner.pool == nullptr || !r.device().deallocate(*owner.pool, live.back())) ++wrong;
          live.pop_back();
        }
        if (r.device().limit().held() > 200_MiB) ++wrong;
      }
      for (address one : live) {
        auto const owner = r.registry.find(one);
        if (owner.pool == nullptr || !r.device().deallocate(*owner.pool, one)) ++wrong;
      }
      if (open) {
        if (!r.device().end(mine) || !r.device().release(mine)) ++wrong;
        r.gpu.set_captured(own, false);
      }
    });
  }
  for (std::thread& t : all) t.join();
  CHECK(wrong == 0);
  r.sound();
  r.device().trim();
  CHECK(r.pools() == 1);
  CHECK(r.gpu.created() == 0);
  CHECK(r.gpu.most <= 200_MiB);
}
