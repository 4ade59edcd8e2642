/// The fault sweep over a planned pool: each driver or stream call of an operation fails in turn, while plans are
/// claimed, held, followed, left and trimmed. Whatever fails, nothing is lost and nothing changes hands.

#include "tests/pool/faulty_streams.hpp"
#include "tests/pool/rig.hpp"
#include "tests/pool/training.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

using planned_here = rig_config<faulty_streams>::with_planning<plan_briefly>;

/// A program with two streams, after so many of its steps; its live blocks by slot.
struct scene {
  explicit scene(int steps, bool marked) : s(training_step({.layers = 6, .streams = 2, .largest = 300'000})) {
    r.give(r.take(4 * chunk_bytes, stream{1}));
    for (int i = 0; i < steps; ++i) (void)step(marked, s.size());
  }
  /// The first events of a step. Whether all went well.
  bool step(bool marked, std::size_t events) {
    if (marked) r.pool().mark_step();
    bool well = true;
    for (std::size_t i = 0; i < events; ++i) {
      event const& e = s[i];
      auto const at = live.find(e.slot);
      if (e.allocates) {
        if (at != live.end()) continue;
        auto const got = r.pool().allocate(e.size, stream{1 + e.stream});
        if (got) live[e.slot] = *got;
        well = well && got.has_value();
      } else if (at != live.end()) {
        must(r.pool().deallocate(at->second));
        live.erase(at);
      }
      r.time->advance();
    }
    return well;
  }

  rig_options options() {
    rig_options o;
    o.time.lag = 200;
    return o;
  }
  rig<planned_here> r{options()};
  script s;
  std::map<std::uint32_t, address> live;
};

struct operation {
  char const* name;
  int steps;  ///< before it
  std::function<void(scene&)> run;
};

[[nodiscard]] std::vector<operation> operations() {
  return {
      {"have a plan made and follow it", 2, [](scene& s) { (void)s.step(true, s.s.size()); }},
      {"follow a plan", 4, [](scene& s) { (void)s.step(true, s.s.size()); }},
      {"trim in the middle of a step", 4,
       [](scene& s) {
         (void)s.step(true, 40);
         (void)s.r.pool().trim();
         (void)s.step(false, s.s.size());
       }},
      {"trim what has passed", 4,
       [](scene& s) {
         (void)s.step(true, 40);
         (void)s.r.pool().trim_passed();
         (void)s.step(false, s.s.size());
       }},
      {"want more than there is beside the plan", 4,
       [](scene& s) {
         (void)s.step(true, 40);
         for (std::uint32_t i = 0; i < 3; ++i) {
           if (auto const at = s.r.pool().allocate(2 * chunk_bytes, stream{1 + i % 2})) s.live[1000 + i] = *at;
         }
         (void)s.step(true, s.s.size());
       }},
      {"use blocks on other streams", 4,
       [](scene& s) {
         (void)s.step(true, 30);
         for (auto const& [slot, at] : s.live) (void)s.r.pool().record_stream(at, stream{1 + slot % 3});
         (void)s.step(true, s.s.size());
       }},
      {"retire a stream", 4,
       [](scene& s) {
         (void)s.step(true, 30);
         (void)s.r.pool().retire_stream(stream{2});
         (void)s.step(true, s.s.size());
       }},
  };
}

void recover(scene& s) {
  s.r.sound();
  CHECK(s.r.stats().allocations - s.r.stats().deallocations == s.live.size());
  CHECK(s.step(true, s.s.size()));
  s.r.sound();
  for (auto const& [slot, at] : s.live) s.r.give(at);
  s.live.clear();
  (void)s.r.trim();
  CHECK(s.r.reserved() == 0);
  s.r.sound();
  s.r.destroy();
  CHECK(s.r.time->counts().live_fences == 0);
  CHECK(s.r.time->counts().misuses == 0);
}

/// Each call in turn fails, or all from one on; some are passed over, for there are many.
template <class Arm, class Faults, class Disarm>
void sweep(Arm const& arm, Faults const& faults, Disarm const& disarm) {
  for (operation const& op : operations()) {
    for (std::uint64_t n = 0;; n += 1 + n / 24) {
      CAPTURE(op.name);
      CAPTURE(n);
      scene s(op.steps, true);
      auto const already = faults(s);
      arm(s, n);
      op.run(s);
      char const* const broken = s.r.pool().validate();
      REQUIRE_MESSAGE(broken == nullptr, broken);
      bool const over = faults(s) == already;
      disarm(s);
      recover(s);
      if (over) break;
    }
  }
}

}  // namespace

TEST_CASE("the sweep follows plans") {
  scene s(5, true);
  CHECK(s.r.pool().plans_seen().placed > 100);
}

TEST_CASE("any call of the driver may fail beneath a plan") {
  for (std::uint64_t const count : {std::uint64_t{1}, fault_plan::endless}) {
    sweep([&](scene& s, std::uint64_t n) { s.r.device.calls.arm({.first = n, .count = count, .only = {}}); },
          [](scene& s) { return s.r.device.calls.faults(); }, [](scene& s) { s.r.device.calls.disarm(); });
  }
}

TEST_CASE("any call of the streams may fail beneath a plan") {
  for (errc const code : {errc::driver_failure, errc::not_supported}) {
    for (std::uint64_t const count : {std::uint64_t{1}, stream_fault_plan::endless}) {
      CAPTURE(count);
      sweep([&](scene& s,
                std::uint64_t n) { s.r.pool().streams().arm({.first = n, .count = count, .only = {}, .code = code}); },
            [](scene& s) { return s.r.pool().streams().faults(); }, [](scene& s) { s.r.pool().streams().disarm(); });
    }
  }
}
