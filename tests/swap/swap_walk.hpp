#pragma once
/// A random program over a swapping pool: it allocates, frees, sends blocks away and asks for them back, pauses and
/// resumes groups, while calls fail; every block has contents that are checked whenever its user may look at it.
///
/// A rig gives it the pool (`rig.pool`), whatever memory that lies on:
///
/// | call | does |
/// | --- | --- |
/// | `fill(at, n, value, on)` | work on `on` writes n bytes that nothing else writes |
/// | `expect(at, n, value, on)` | work on `on` looks whether they are there; who is wrong is told at once or at the end
/// | | `upset(random)` | some later calls fail; `calm()`: none does |
///
/// Several walks may use one rig from threads of their own.

#include <cstdlib>
#include <random>
#include <vector>

#include "gmlake/swap/swapping_pool.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

[[nodiscard]] inline std::uint64_t first_seed() {
  char const* const s = std::getenv("GMLAKE_TEST_SEED");
  return s != nullptr ? std::strtoull(s, nullptr, 10) : 1;
}

struct swap_walk_options {
  std::uint64_t seed = 1;
  bool faults = false;
  bytes smallest = 64_KiB;
  bytes largest = 2_MiB;
  stream on{1};
  std::uint32_t groups_from = 0;  ///< three groups of its own
};

template <class Rig>
class swap_walk {
 public:
  swap_walk(Rig& rig, swap_walk_options const& o) : rig_(&rig), options_(o), random_(o.seed) {}

  void step() {
    ++steps_;
    switch (below(12)) {
      case 0:
      case 1:
      case 2: allocate(); break;
      case 3: free_one(); break;
      case 4:
      case 5: send_away(); break;
      case 6:
      case 7: bring_back(); break;
      case 8: touch(); break;
      case 9: (void)(below(2) == 0 ? rig_->pool->progress().has_value() : rig_->pool->settle().has_value()); break;
      case 10: pin_or_freeze(); break;
      default: rest();
    }
    if (options_.faults && below(40) == 0) rig_->upset(random_);
  }

  /// Everything is looked at once more and freed. Precondition: the rig is calm, and has room.
  void finish() {
    while (!all_.empty()) {
      held& b = all_.back();
      if (use(b)) expect(b);
      must(rig_->pool->deallocate(b.at));
      all_.pop_back();
    }
  }

 private:
  struct held {
    address at{};
    bytes size = 0;
    unsigned value = 0;
    swap::tag group{};
    bool usable = true;  ///< its user has asked for it since it was sent away
    bool read_only = false;
    bool known = true;  ///< its contents were not discarded
    int pins = 0;
  };

  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  [[nodiscard]] held* some() { return all_.empty() ? nullptr : &all_[below(all_.size())]; }
  [[nodiscard]] swap::tag some_group() {
    return swap::tag{options_.groups_from + static_cast<std::uint32_t>(below(3))};
  }

  void allocate() {
    bytes const n = options_.smallest + below(options_.largest);
    swap::tag const group = some_group();
    result<address> const at = rig_->pool->allocate(n, options_.on, group);
    if (!at) return;
    all_.push_back({.at = *at, .size = n, .value = next(), .group = group});
    rig_->fill(*at, n, all_.back().value, options_.on);
  }
  void free_one() {
    held* const b = some();
    if (b == nullptr || !rig_->pool->deallocate(b->at)) return;
    *b = all_.back();
    all_.pop_back();
  }
  void send_away() {
    held* const b = some();
    if (b == nullptr) return;
    if (below(16) == 0) (void)rig_->pool->unmap_absent([](address) noexcept { return true; }).has_value();
    vacating const way = below(2) == 0 ? vacating::leave : vacating::unmap;
    bool const discards = below(12) == 0;
    if (discards ? rig_->pool->discard(b->at, options_.on, way) : rig_->pool->swap_out(b->at, options_.on, way)) {
      CHECK(b->pins == 0);
      b->usable = false;
      b->known = b->known && !discards;
      if (below(2) == 0) foresee(*b);
    }
  }
  /// That it has memory again some steps later, as one of a few that are there in turn.
  void foresee(held const& b) {
    std::uint64_t const until = steps_ + 1 + below(40);
    must(rig_->pool->foresee(b.at, {.as = 1 + below(8), .now = steps_, .until = until, .again = until + below(40)}));
  }
  void bring_back() {
    held* const b = some();
    if (b == nullptr) return;
    if (below(4) == 0) (void)rig_->pool->prefetch(b->at).has_value();
    else if (below(8) == 0) (void)rig_->pool->try_prefetch(b->at).has_value();
    else if (use(*b)) expect(*b);
  }
  [[nodiscard]] bool use(held& b) {
    b.usable = rig_->pool->swap_in(b.at, options_.on).has_value() || b.usable;
    return b.usable;
  }
  void touch() {
    held* const b = some();
    if (b == nullptr || !(b->usable || must(rig_->pool->served_in_place(b->at)))) return;
    expect(*b);
    if (b->read_only) return;
    b->value = next();
    b->known = true;
    rig_->fill(b->at, b->size, b->value, options_.on);
  }
  void pin_or_freeze() {
    held* const b = some();
    if (b == nullptr) return;
    if (below(2) == 0) {
      b->read_only = !b->read_only;
      must(rig_->pool->set_read_only(b->at, b->read_only));
    } else if (b->pins > 0) {
      must(rig_->pool->unpin(b->at));
      --b->pins;
    } else if (rig_->pool->pin(b->at, options_.on)) {
      ++b->pins;
      b->usable = true;
      expect(*b);
    }
  }
  /// A group sleeps and wakes.
  void rest() {
    if (below(4) != 0) return;
    swap::tag const group = some_group();
    bool const keeping = below(3) != 0;
    (void)rig_->pool->pause(group, keeping);
    for (held& b : all_) {
      if (b.group != group) continue;
      b.usable = must(rig_->pool->residency_of(b.at)) == swap::residency::mapped;
      if (!keeping && !b.usable) b.known = false;
    }
    (void)rig_->pool->resume(group);
  }
  void expect(held const& b) {
    if (b.known) rig_->expect(b.at, b.size, b.value, options_.on);
  }
  [[nodiscard]] unsigned next() { return ++values_; }

  Rig* rig_;
  swap_walk_options options_;
  std::mt19937_64 random_;
  std::vector<held> all_;
  unsigned values_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace gmlake::test
