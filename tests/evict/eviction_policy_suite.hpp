#pragma once
/// What every EvictionPolicy must do. To hold one to it: TEST_CASE_TEMPLATE_INVOKE(eviction_policy, gmlake::lru);

#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/evict/eviction_policy.hpp"

namespace gmlake::test {

/// Idle stitches, and what they hold together.
template <EvictionPolicy E>
class idle_model {
 public:
  explicit idle_model(E made, std::size_t most) : policy(std::move(made)), stitches_(most) {}
  idle_model(idle_model const&) = delete;
  idle_model& operator=(idle_model const&) = delete;
  ~idle_model() {
    for (stitch* s : idle) policy.erase(*s);
  }

  stitch& rest(std::size_t i, std::size_t handles = 1, bytes size = 2_MiB) {
    stitch& s = stitches_[i];
    s.count = handles;
    s.size = size;
    policy.insert(s);
    idle.insert(&s);
    held.count += 1;
    held.mappings += handles;
    held.addresses += size;
    return s;
  }
  void wake(stitch& s) {
    policy.erase(s);
    idle.erase(&s);
    held.count -= 1;
    held.mappings -= s.count;
    held.addresses -= s.size;
  }

  [[nodiscard]] std::size_t most() const { return stitches_.size(); }
  [[nodiscard]] bool rests(std::size_t i) const { return idle.count(const_cast<stitch*>(&stitches_[i])) == 1; }
  stitch& operator[](std::size_t i) { return stitches_[i]; }

  E policy;
  std::set<stitch*> idle;
  idle_stitches held;

 private:
  std::vector<stitch> stitches_;
};

/// Stitches rest and wake at random; `check` is called after each.
template <EvictionPolicy E, class Check>
void walk_idle(idle_model<E>& m, int steps, Check&& check) {
  std::uint64_t const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int step = 0; step < steps; ++step) {
    std::size_t const i = random() % m.most();
    if (m.rests(i)) m.wake(m[i]);
    else m.rest(i, 1 + random() % 64, (1 + random() % 64) * 2_MiB);
    check(i);
  }
}

TEST_CASE_TEMPLATE_DEFINE("an eviction policy keeps its contract", E, eviction_policy) {
  SUBCASE("where none is idle, there is none to go") {
    E const policy{};
    CHECK(policy.next() == nullptr);
    CHECK(policy.victim({}) == nullptr);
    CHECK(policy.victim({1'000'000'000, 1'000'000'000, ~bytes{0}}) == nullptr);
  }

  SUBCASE("one of the idle stitches is next, and any victim is that one") {
    idle_model<E> m(E{}, 50);
    walk_idle(m, 5000, [&](std::size_t) {
      stitch* const next = m.policy.next();
      REQUIRE((next == nullptr) == m.idle.empty());
      if (next != nullptr) REQUIRE(m.idle.count(next) == 1);
      for (std::size_t const times : {std::size_t{1}, std::size_t{1000}, std::size_t{1'000'000}}) {
        stitch* const victim =
            m.policy.victim({m.held.count * times, m.held.mappings * times, m.held.addresses * times});
        if (victim != nullptr) REQUIRE(victim == next);
      }
    });
  }

  SUBCASE("asked twice, it answers the same") {
    idle_model<E> m(E{}, 20);
    walk_idle(m, 500, [&](std::size_t) {
      REQUIRE(m.policy.next() == m.policy.next());
      REQUIRE(m.policy.victim(m.held) == m.policy.victim(m.held));
    });
  }

  SUBCASE("every idle stitch goes once, if all must") {
    idle_model<E> m(E{}, 100);
    for (std::size_t i = 0; i < m.most(); ++i) m.rest(i);
    for (std::size_t i = 0; i < 100; ++i) {
      REQUIRE(m.policy.next() != nullptr);
      m.wake(*m.policy.next());
    }
    CHECK(m.idle.empty());
    CHECK(m.policy.next() == nullptr);
  }

  SUBCASE("few stitches are never too many") {
    idle_model<E> m(E{}, 4);
    for (std::size_t i = 0; i < 4; ++i) m.rest(i);
    CHECK(m.policy.victim(m.held) == nullptr);
  }
}

}  // namespace gmlake::test
