#pragma once
/// A program that trains: steps of requests and frees that repeat, on a pool with the naive model beside it, and every
/// departure from that which programs are known for. Blocks' contents are checked where memory is the host's.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmlake/pool/presets/planned.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/backend/must.hpp"
#include "tests/pool/naive_model.hpp"
#include "tests/pool/snapshot_rules.hpp"
#include "tests/pool/walk_suite.hpp"

namespace gmlake::test {

/// Little work for a plan: tests make many, which needn't be good.
inline constexpr plan::portfolio_options brief{.work = 100'000};

struct plan_briefly {
  static constexpr bool enabled = true;
  void start(std::shared_ptr<plan::plan_job> job) noexcept { job->run(brief); }
};
static_assert(plan::PlanningPolicy<plan_briefly>);

/// Makes its plans when it is told to.
class plan_on_demand {
 public:
  static constexpr bool enabled = true;
  void start(std::shared_ptr<plan::plan_job> job) noexcept { waiting_->push_back(std::move(job)); }

  using jobs = std::vector<std::shared_ptr<plan::plan_job>>;
  [[nodiscard]] std::shared_ptr<jobs> waiting() const noexcept { return waiting_; }

 private:
  std::shared_ptr<jobs> waiting_ = std::make_shared<jobs>();
};
static_assert(plan::PlanningPolicy<plan_on_demand>);

/// One event of a step. A slot holds at most one block; one freed before it is allocated is the step before's.
struct event {
  bool allocates = true;
  std::uint32_t slot = 0;
  bytes size = 0;
  std::size_t stream = 0;
};
using script = std::vector<event>;

struct step_shape {
  std::uint32_t layers = 10;
  std::size_t streams = 1;
  std::uint64_t seed = 1;  ///< of the sizes
  bool carried = true;     ///< a few blocks are freed by the step after
  bytes largest = 1_MiB;
};

/// Forward keeps activations, backward frees them and leaves gradients, which the optimizer frees. With two streams,
/// the second one gathers what each layer needs.
[[nodiscard]] inline script training_step(step_shape const& s) {
  std::mt19937_64 random(s.seed);
  auto const some = [&](bytes most) -> bytes { return 1 + random() % most; };
  script all;
  std::uint32_t slots = 0;
  auto const take = [&](bytes n, std::size_t on = 0) {
    all.push_back({true, slots, n, on % s.streams});
    return slots++;
  };
  auto const give = [&](std::uint32_t slot) { all.push_back({false, slot, 0, 0}); };
  std::vector<std::uint32_t> activations, gradients;
  std::uint32_t const carried_from = 4 * s.layers * 3;  // past all other slots
  if (s.carried) give(carried_from);
  std::uint32_t const batch = take(some(s.largest));
  if (s.carried) give(carried_from + 1);
  for (std::uint32_t l = 0; l < s.layers; ++l) {
    std::uint32_t const gathered = take(some(s.largest), 1);
    std::uint32_t const scratch = take(some(4000));
    activations.push_back(take(s.largest / 4 + some(s.largest)));
    give(scratch);
    activations.push_back(take(some(5000)));
    give(gathered);
  }
  if (s.carried) all.push_back({true, carried_from, 1000, 0});
  for (std::uint32_t l = s.layers; l-- > 0;) {
    std::uint32_t const gathered = take(some(s.largest), 1);
    std::uint32_t const scratch = take(some(s.largest / 2));
    gradients.push_back(take(some(s.largest / 4)));
    give(activations[2 * l + 1]);
    give(activations[2 * l]);
    give(gathered);
    give(scratch);
  }
  give(batch);
  if (s.carried) all.push_back({true, carried_from + 1, s.largest / 2, 0});
  for (std::uint32_t const g : gradients) {
    std::uint32_t const scratch = take(some(100'000));
    give(g);
    give(scratch);
  }
  return all;
}
[[nodiscard]] inline std::size_t requests_of(script const& s) {
  return static_cast<std::size_t>(std::ranges::count(s, true, &event::allocates));
}

struct training_options {
  std::size_t streams = 1;
  bool marked = true;
  bool host_memory = false;
  bool faults = false;
  bool callback = false;
  std::uint64_t lag = 50;
  std::size_t weights = 6;
  bytes spare = 20'000'000;  ///< free in the beginning: a little more memory than the steps need
  bytes granule = 64_KiB;
  bytes capacity = 256_MiB;
  std::uint64_t seed = 1;  ///< of the perturbations
  int validate_every = 64;
  int plans_take = -1;  ///< so many events after it was asked for, a plan is there; below 0: when it is told to
};

/// How often what happens, in so many of a thousand events.
struct perturbation {
  unsigned extra = 0;       ///< requests that no step has
  unsigned missing = 0;     ///< requests left out
  unsigned resized = 0;     ///< requests of another size
  unsigned swapped = 0;     ///< events that change places with the next
  unsigned late = 0;        ///< frees put off, perhaps beyond the step
  unsigned early = 0;       ///< blocks freed before their time
  unsigned moved = 0;       ///< requests on another stream
  unsigned elsewhere = 0;   ///< frees after another stream's work
  unsigned recorded = 0;    ///< uses on another stream
  unsigned odd = 0;         ///< aligned blocks, chunks of their own, blocks restored, wrong pointers
  unsigned upheaval = 0;    ///< trims, limits, streams that come and go
  unsigned broken_off = 0;  ///< steps that end here

  [[nodiscard]] static perturbation all(unsigned n) { return {n, n, n, n, n, n, n, n, n, n, (n + 3) / 4, (n + 3) / 4}; }
};

template <PoolConfig Config>
class training {
 public:
  using pool_type = basic_pool<Config>;
  static constexpr bool concurrent = std::same_as<typename Config::streams, simulated_streams>;

  explicit training(training_options const& o = {})
      : options_(o),
        random_(o.seed),
        device_(scaled_device({.granule = o.granule, .capacity = o.capacity, .host_memory = o.host_memory})),
        time_(std::make_shared<simulated_timeline>(timeline_options{.lag = o.lag})),
        model_(device_, concurrent ? time_ : nullptr) {
    pool_options const p{.small_limit = 4_KiB, .small_chunk = o.granule, .home_addresses = 64_MiB};
    auto policies = scaled_policies<Config>(o.granule);
    if constexpr (requires { policies.planning.waiting(); }) jobs_ = policies.planning.waiting();
    using backend = typename Config::backend;
    if constexpr (concurrent) pool_.emplace(backend(device_), simulated_streams(time_), p, std::move(policies));
    else pool_.emplace(backend(device_), p, std::move(policies));
    while (streams_.size() < o.streams) streams_.push_back(stream{next_stream_++});
    if (o.callback) {
      pool_->on_out_of_memory([this](memory_account const&) { return help(); });
    }
  }

  [[nodiscard]] pool_type& pool() noexcept { return *pool_; }
  [[nodiscard]] watched_device& device() noexcept { return device_; }
  [[nodiscard]] simulated_timeline& time() noexcept { return *time_; }
  [[nodiscard]] naive_model& model() noexcept { return model_; }
  [[nodiscard]] plan_stats seen() const { return pool_->plans_seen(); }
  [[nodiscard]] std::uint64_t calls() const { return pool_->stats().driver.total().calls; }
  [[nodiscard]] std::string const& fault() const { return model_.fault().empty() ? fault_ : model_.fault(); }
  [[nodiscard]] std::size_t live() const noexcept { return live_.size(); }
  [[nodiscard]] stream stream_at(std::size_t i) const { return streams_[i % streams_.size()]; }

  /// What stays for good, and what is only there in the beginning.
  void begin() {
    if (auto const at = take({.size = std::min(options_.spare, options_.capacity / 2), .on = streams_[0]})) give(*at);
    for (std::size_t i = 0; i < options_.weights; ++i) (void)take({.size = (i + 1) * 30'000, .on = streams_[0]});
  }

  void step(script const& s, perturbation const& p = {}) {
    if (options_.marked) pool_->mark_step();
    script todo = s;
    for (std::size_t i = 0; i < todo.size() && fault().empty(); ++i) {
      if (chance(p.broken_off)) break;
      if (i + 1 < todo.size() && chance(p.swapped)) std::swap(todo[i], todo[i + 1]);
      around(p);
      if (todo[i].allocates) allocate(todo[i], p);
      else release(todo[i].slot, p);
    }
  }
  void steps(int n, script const& s, perturbation const& p = {}) {
    for (int i = 0; i < n && fault().empty(); ++i) step(s, p);
  }

  /// Runs the plans that were asked for.
  void make_plans() {
    if (jobs_ == nullptr) return;
    for (auto const& job : *jobs_) job->run(brief);
    jobs_->clear();
  }

  /// A block for the test's own ends; none where memory ran out.
  std::optional<address> take(request const& r) {
    tick();
    result<address> const got = pool_->allocate(r);
    if (!got) {
      refused(r, got.error());
      return {};
    }
    enter(r, *got);
    return *got;
  }
  void give(address at, std::optional<stream> after = {}) {
    tick();
    if (!fault().empty()) return;
    auto const i = live_.find(at);
    check(at, i->second);
    live_.erase(i);
    if (after && model_.retired(model_.live().at(at).on)) after.reset();
    model_.freeing(at, after);
    result<void> const done = after ? pool_->deallocate(at, *after) : pool_->deallocate(at);
    if (!done) blame("a live block can be freed");
  }
  void record(address at, stream on) {
    if (!fault().empty()) return;
    model_.recording(at, on);
    if (!pool_->record_stream(at, on)) blame("a use of a live block can be recorded");
  }

  /// All that departures have left behind goes: what a step takes care of by itself stays.
  void tidy() {
    for (address const at : std::exchange(extras_, {})) {
      if (live_.contains(at)) give(at);
    }
    for (auto const& [slot, at] : std::exchange(slots_, {})) {
      if (live_.contains(at)) give(at);
    }
  }
  void regular() {
    faulted_ = false;
    device_.calls.disarm();
    device_.device().set_capacity(options_.capacity);
    pool_->set_limit(~bytes{0});
  }

  void look() {
    if (char const* broken = pool_->validate()) blame(broken);
    pool_stats const s = pool_->stats();
    if (s.requested.now != model_.requested()) blame("what was requested is what is live");
    if (s.allocations - s.deallocations != live_.size()) blame("blocks are counted");
    if (std::string const broken = broken_rule(pool_->snapshot(), s); !broken.empty()) blame(broken);
    compare_live();
    for (auto const& [at, b] : live_) check(at, b);
  }

  /// Everything goes back, or stays live and the pool goes away: either way nothing is left.
  void finish(bool free_first) {
    device_.calls.disarm();
    if (free_first) {
      while (!live_.empty()) give(live_.begin()->first);
      if (!pool_->trim()) blame("trim succeeds");
      if (pool_->stats().reserved.now != 0) blame("trim releases everything free");
    }
    if (char const* broken = pool_->validate()) blame(broken);
    model_.close();
    pool_.reset();
    if (!device_.idle()) blame("destruction leaves nothing behind");
    if (time_->counts().live_fences != 0) blame("destruction leaves no fence");
    if (time_->counts().misuses != 0) blame("fences are used rightly");
  }

  void blame(std::string const& rule) {
    if (fault_.empty()) fault_ = rule + " (event " + std::to_string(events_) + ")";
  }

 private:
  struct held {
    bytes size = 0;
    std::uint64_t pattern = 0;
  };

  [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  [[nodiscard]] bool chance(unsigned of_a_thousand) { return of_a_thousand > 0 && below(1000) < of_a_thousand; }
  [[nodiscard]] stream some_stream() { return streams_[below(streams_.size())]; }
  [[nodiscard]] bytes some_size() {
    switch (below(4)) {
      case 0: return below(2000);
      case 1: return options_.granule * below(8);
      default: return below(1_MiB);
    }
  }

  void tick() {
    ++events_;
    if constexpr (concurrent) time_->advance();
    if (jobs_ == nullptr || jobs_->empty()) asked_since_ = events_;
    else if (options_.plans_take >= 0 && events_ - asked_since_ > options_.plans_take) make_plans();
    if (events_ % options_.validate_every == 0) look();
  }

  void allocate(event const& e, perturbation const& p) {
    if (chance(p.missing) || slots_.contains(e.slot)) return;
    request r{.size = e.size, .on = streams_[e.stream % streams_.size()]};
    if (chance(p.resized)) r.size = below(2) == 0 ? some_size() : r.size + 1 + below(5000);
    if (chance(p.moved)) r.on = some_stream();
    if (auto const at = take(r)) slots_[e.slot] = *at;
  }

  void release(std::uint32_t slot, perturbation const& p) {
    auto const i = slots_.find(slot);
    if (i == slots_.end()) return;
    address const at = i->second;
    slots_.erase(i);
    if (chance(p.late)) return extras_.push_back(at);
    give(at, after(p));
  }
  [[nodiscard]] std::optional<stream> after(perturbation const& p) {
    return chance(p.elsewhere) ? std::optional(some_stream()) : std::nullopt;
  }

  /// What may come between any two events.
  void around(perturbation const& p) {
    if (chance(p.extra)) {
      for (std::size_t n = 1 + below(below(8) == 0 ? 6 : 1); n > 0; --n) {
        if (auto const at = take({.size = some_size(), .on = some_stream()})) extras_.push_back(*at);
      }
    }
    if (!extras_.empty() && (chance(p.late + p.extra + 20) || extras_.size() > 40)) drop_extra(p);
    if (chance(p.early) && !slots_.empty()) {
      auto const i = std::next(slots_.begin(), static_cast<std::ptrdiff_t>(below(slots_.size())));
      address const at = i->second;
      slots_.erase(i);
      give(at, after(p));
    }
    if (chance(p.recorded) && !live_.empty()) record(some_live(), some_stream());
    if (chance(p.odd)) odd();
    if (chance(p.upheaval)) upheaval();
  }
  void drop_extra(perturbation const& p) {
    std::swap(extras_[below(extras_.size())], extras_.back());
    address const at = extras_.back();
    extras_.pop_back();
    give(at, after(p));
  }
  [[nodiscard]] address some_live() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())))->first;
  }

  void odd() {
    request r{.size = some_size(), .on = some_stream()};
    switch (below(6)) {
      case 0: r.alignment = bytes{1} << (10 + below(8)); break;
      case 1: r.where = placement::own_chunks; break;
      case 2: r.where = placement::one_handle; break;
      case 3: return misuse();
      case 4: return restore();
      default: r.alignment = 256; break;
    }
    if (auto const at = take(r)) extras_.push_back(*at);
  }

  /// A block goes, and comes back where it was.
  void restore() {
    if (live_.empty()) return;
    address const at = some_live();
    auto const [size, on] = std::pair(model_.live().at(at).size, model_.live().at(at).on);
    if (model_.retired(on) || !model_.live().at(at).recorded.empty()) return;
    std::optional<std::uint32_t> slot;
    for (auto const& [s, a] : slots_) {
      if (a == at) slot = s;
    }
    if (!slot) return;
    slots_.erase(*slot);
    give(at);
    request const r{.size = size, .on = on};
    if (!pool_->allocate_at(at, r)) return;
    enter(r, at);
    slots_[*slot] = at;
  }

  void misuse() {
    if (pool_->deallocate(address{below(1024)})) blame("unknown pointers are refused");
    if (live_.empty()) return;
    address const at = some_live();
    bytes const n = live_.at(at).size;
    if (n > 1 && pool_->deallocate(at + 1 + below(n - 1))) blame("interior pointers are refused");
    if (n > 1 && pool_->record_stream(at + 1 + below(n - 1), some_stream())) blame("interior pointers are no blocks");
  }

  void upheaval() {
    switch (below(8)) {
      case 0:
        if (!pool_->trim() && !faulted_) blame("trim succeeds");
        break;
      case 1:
        if (!pool_->trim_passed() && !faulted_) blame("trim succeeds");
        break;
      case 2: pool_->set_limit(below(3) == 0 ? pool_->stats().reserved.now : ~bytes{0}); break;
      case 3: pool_->set_limit(~bytes{0}); break;
      case 4: device_.device().set_capacity(options_.capacity / (1 + below(3))); break;
      case 5: time_->finish_all(); break;
      case 6: retire(); break;
      default:
        if (options_.faults) fail_some();
    }
  }
  void retire() {
    if constexpr (concurrent) {
      std::size_t const i = below(streams_.size());
      model_.retiring(streams_[i]);
      if (!pool_->retire_stream(streams_[i]) && !faulted_) blame("a stream can be retired");
      (void)time_->destroy(streams_[i]);
      streams_[i] = stream{next_stream_++};
    }
  }
  void fail_some() {
    fault_plan plan{.first = below(12), .count = 1 + below(4), .only = {}};
    if (below(2) == 0) plan.only = static_cast<driver_call>(below(driver_call_names.size()));
    device_.calls.arm(plan);
    faulted_ = true;
  }

  void refused(request const& r, error const& e) {
    if (faulted_) return;
    if (e.code == errc::invalid_argument && r.where != placement::anywhere && r.alignment > options_.granule) return;
    if (e.code != errc::out_of_memory) return blame("only memory runs out");
    bytes const needed = align_up(std::max(r.size, bytes{1}) + r.alignment, options_.granule) + options_.granule;
    if (e.account.reserved + needed <= std::min(e.account.limit, device_.device().capacity())) {
      blame("memory that can be created is not out");
    }
  }
  [[nodiscard]] bool help() {
    if (extras_.empty()) return false;
    drop_extra({});
    return true;
  }

  void enter(request const& r, address at) {
    model_.allocated(r, at);
    if (!live_.emplace(at, held{r.size, ++patterns_ * 0x9E3779B97F4A7C15u}).second) return;
    fill(at, live_.at(at));
  }

  /// A word every so often tells the block and the place in it.
  static constexpr bytes stride = 512;
  void fill(address at, held const& b) {
    if (!options_.host_memory || !model_.fault().empty()) return;
    for_each_word(at, b, [](unsigned char* to, std::uint64_t w, std::size_t n) {
      std::memcpy(to, &w, n);
      return true;
    });
  }
  void check(address at, held const& b) {
    if (!options_.host_memory || !model_.fault().empty()) return;
    for_each_word(at, b, [this](unsigned char const* from, std::uint64_t w, std::size_t n) {
      bool const same = std::memcmp(from, &w, n) == 0;
      if (!same) blame("a block keeps its contents");
      return same;
    });
  }
  template <class F>
  static void for_each_word(address at, held const& b, F&& f) {
    auto* const begin = static_cast<unsigned char*>(to_pointer(at));
    for (bytes i = 0; i < b.size; i += stride) {
      if (!f(begin + i, b.pattern ^ i, std::min(sizeof(std::uint64_t), b.size - i))) return;
    }
  }

  /// What the pool says of its live blocks is what the model knows.
  void compare_live() {
    std::size_t seen = 0;
    pool_->each_live([&](block const& b, stream) {
      auto const i = live_.find(b.begin);
      if (i == live_.end() || i->second.size != b.requested || b.size < b.requested) blame("each live block is one");
      ++seen;
    });
    if (seen != live_.size()) blame("every live block is told");
    if (live_.empty()) return;
    address const at = some_known();
    bool right = false;
    bool const found = pool_->look_at(at, [&](block const& b, stream) {
      right = b.begin == at && b.requested == live_.at(at).size && (b.view != nullptr || b.first_chunk != nullptr);
    });
    if (!found || !right) blame("a live block can be looked at");
    if (pool_->look_at(at + 1, [](block const&, stream) {})) blame("only live blocks can be looked at");
  }
  [[nodiscard]] address some_known() const {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(static_cast<std::size_t>(events_) % live_.size()))
        ->first;
  }

  training_options options_;
  std::mt19937_64 random_;
  watched_device device_;
  std::shared_ptr<simulated_timeline> time_;
  naive_model model_;
  std::shared_ptr<plan_on_demand::jobs> jobs_;
  std::optional<pool_type> pool_;
  std::map<address, held> live_;
  std::map<std::uint32_t, address> slots_;
  std::vector<address> extras_;
  std::vector<stream> streams_;
  std::uintptr_t next_stream_ = 1;
  std::uint64_t patterns_ = 0;
  int events_ = 0;
  int asked_since_ = 0;  ///< the last event without a plan that was asked for
  bool faulted_ = false;
  std::string fault_;
};

}  // namespace gmlake::test
