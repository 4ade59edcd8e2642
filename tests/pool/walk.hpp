#pragma once
/// A walk: operations on a pool chosen one after the other, at random or by a fuzzer, with the naive model beside it.
/// The device is small and its granule too, so that every step of the pool's ladder is met often.

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gmlake/evict/no_evict.hpp"
#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/stitch/gmlake_limits.hpp"
#include "gmlake/stitch/no_stitch.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/pool/naive_model.hpp"
#include "tests/pool/snapshot_rules.hpp"

namespace gmlake::test {

struct walk_options {
  bytes granule = 64_KiB;
  bytes capacity = 16_MiB;   ///< of the device
  bytes largest = 3_MiB;     ///< request
  std::size_t streams = 3;   ///< in use at one time
  std::uint64_t lag = 50;    ///< steps until a fence is reached
  bool host_memory = false;  ///< real pages, whose contents are checked
  bool faults = false;       ///< driver calls fail now and then
  bool callback = false;     ///< frees a block when memory runs out, now and then
  int validate_every = 16;   ///< steps
};

/// Policies scaled down to a walk's granule.
template <PoolConfig Config>
[[nodiscard]] pool_policies<Config> scaled_policies(bytes unit) {
  pool_policies<Config> p;
  if constexpr (std::same_as<typename Config::growth, fixed_chunks>) p.growth = fixed_chunks(4 * unit);
  if constexpr (std::same_as<typename Config::growth, adaptive_chunks>) {
    adaptive_options o;
    o.smallest = 3 * unit;  // no power of two, as the default is none
    o.largest = 8 * unit;
    p.growth = adaptive_chunks(o);
  }
  if constexpr (std::same_as<typename Config::stitching, largest_first>) p.stitch = largest_first({.smallest = unit});
  if constexpr (std::same_as<typename Config::stitching, gmlake_limits>) {
    p.stitch = gmlake_limits({.frag_limit = unit});
  }
  if constexpr (std::same_as<typename Config::eviction, lru>) {
    p.evict = lru({.stitches = 6, .mappings = 96, .addresses = 64 * unit});
  }
  return p;
}

[[nodiscard]] inline either_device scaled_device(walk_options const& o) {
  if (!o.host_memory) return either_device(simulated({.capacity = o.capacity, .granularity = o.granule}));
  auto opened = memfd::open({.granularity = o.granule, .capacity = o.capacity});
  return opened ? either_device(*std::move(opened)) : either_device(simulated({.granularity = o.granule}));
}

template <PoolConfig Config>
class walk {
 public:
  /// A number below n.
  using chooser = std::function<std::size_t(std::size_t n)>;

  walk(walk_options const& options, chooser choose)
      : options_(options),
        choose_(std::move(choose)),
        device_(scaled_device(options)),
        time_(std::make_shared<simulated_timeline>(timeline_options{.lag = options.lag})),
        model_(device_, concurrent ? time_ : nullptr) {
    pool_options const p{.small_limit = 4_KiB, .small_chunk = options.granule, .home_addresses = 64 * options.granule};
    auto policies = scaled_policies<Config>(options.granule);
    using backend = typename Config::backend;
    if constexpr (concurrent) pool_.emplace(backend(device_), simulated_streams(time_), p, std::move(policies));
    else pool_.emplace(backend(device_), p, std::move(policies));
    while (streams_.size() < options.streams) streams_.push_back(stream{next_stream_++});
    if (options_.callback) {
      pool_->on_out_of_memory([this](memory_account const&) { return help(); });
    }
  }

  void step() {
    ++steps_;
    if constexpr (concurrent) time_->advance();
    switch (choose_(64)) {
      case 0: trim(); break;
      case 1:
        if (choose_(4) == 0) pool_->set_limit(choose_(2) == 0 ? ~bytes{0} : choose_(options_.capacity));
        break;
      case 2:
        if (choose_(4) == 0) device_.device().set_capacity(options_.capacity - choose_(options_.capacity / 2));
        break;
      case 3:
        if (choose_(4) == 0) retire();
        break;
      case 4: time_->finish_all(); break;
      case 5:
      case 6:
      case 7: record(); break;
      case 8: misuse(); break;
      case 9:
        if (options_.faults) fail_some();
        break;
      case 10:
        if (choose_(8) == 0) deallocate_all();
        break;
      case 11:
      case 12: vacate(); break;
      case 13:
      case 14: refill(); break;
      default:
        if (live_.empty() || choose_(100) < 54) allocate();
        else deallocate(choose_(live_.size()));
    }
    if (steps_ % options_.validate_every == 0) look();
  }

  /// Everything goes back, or stays live and the pool goes away: either way nothing is left.
  void finish() {
    device_.calls.disarm();
    if (choose_(2) == 0) {
      deallocate_all();
      trim();
      if (pool_->stats().reserved.now != 0) blame("trim releases everything free");
      if (device_.device().live_handles() != 0) blame("trim leaves no handle");
    }
    look();
    model_.close();
    pool_.reset();
    if (!device_.idle()) blame("destruction leaves nothing behind");
  }

  /// The first violation, and at which step; empty while there is none.
  [[nodiscard]] std::string fault() const {
    if (!model_.fault().empty()) return model_.fault() + " (step " + std::to_string(steps_) + ")";
    return fault_.empty() ? fault_ : fault_ + " (step " + std::to_string(steps_) + ")";
  }
  [[nodiscard]] pool_stats stats() const { return pool_->stats(); }

 private:
  static constexpr bool concurrent = std::same_as<typename Config::streams, simulated_streams>;
  static constexpr bool moves =
      !PlacedBackend<typename Config::backend> && !std::same_as<typename Config::stitching, no_stitch>;
  struct held {
    address at{};
    bytes size = 0;
    std::uint64_t pattern = 0;
    bool movable = false;
  };

  [[nodiscard]] bytes some_size() {
    switch (choose_(8)) {
      case 0: return choose_(3);
      case 1:
      case 2: return choose_(5000);
      case 3: return options_.granule * choose_(8);
      case 4: return choose_(options_.largest);
      default: return choose_(options_.largest / 6);
    }
  }
  [[nodiscard]] stream some_stream() { return streams_[choose_(streams_.size())]; }
  /// Nothing, or that the block comes in the place of one of a few others for some steps, and again some steps later.
  [[nodiscard]] foresight some_foresight() {
    if (choose_(2) == 0) return {};
    auto const now = static_cast<std::uint64_t>(steps_);
    foresight f{.as = 1 + choose_(8), .now = now, .until = now + 1 + choose_(200), .again = foresight::never};
    if (choose_(4) != 0) f.again = f.until + choose_(200);
    return f;
  }

  void allocate() {
    request r{.size = some_size(), .on = some_stream()};
    std::size_t const rare = choose_(40);
    if (rare < 3) r.alignment = bytes{1} << (9 + choose_(10));
    if (rare == 3) r.where = placement::own_chunks;
    if (rare == 4) r.where = placement::one_handle;
    if (rare == 5) r.alignment = bytes{1} << choose_(9);
    if (moves && rare >= 6 && rare < 10) {
      r.where = placement::movable;
      r.foreseen = some_foresight();
    }
    result<address> const got = pool_->allocate(r);
    if (!got) return refused(r, got.error());
    model_.allocated(r, *got);
    if (r.where == placement::one_handle && device_.beneath(*got, std::max(r.size, bytes{1})).size() != 1) {
      blame("one handle is one handle");
    }
    live_.push_back({*got, r.size, ++patterns_ * 0x9E3779B97F4A7C15u, r.where == placement::movable});
    fill(live_.back());
  }

  /// A movable block that is live loses its memory: once nothing can be using it, or behind what uses it last.
  void vacate() {
    std::vector<std::size_t> movable;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].movable) movable.push_back(i);
    }
    if (movable.empty()) return misuse();
    std::size_t const i = movable[choose_(movable.size())];
    held const b = live_[i];
    check(b);
    stream const on = model_.live().at(b.at).on;
    bool const behind = choose_(3) != 0;
    if (!(behind ? vacate_behind(b) : vacate_idle(b))) {
      if (behind || !faulted_) blame("a movable block can be vacated");
      model_.allocated({.size = b.size, .on = on}, b.at);
      return;
    }
    live_[i] = live_.back();
    live_.pop_back();
    vacated_.push_back(b);
    vacated_bytes_ += b.size;
  }
  [[nodiscard]] bool vacate_idle(held const& b) {
    if (concurrent && !time_->synchronize_device()) return false;
    model_.freeing(b.at);
    if (concurrent && !time_->synchronize_device()) return false;
    return pool_->vacate(b.at, choose_(2) == 0 ? vacating::leave : vacating::unmap).has_value();
  }
  /// Nobody can be made to wait for streams that are gone.
  [[nodiscard]] bool vacate_behind(held const& b) {
    naive_model::block const& known = model_.live().at(b.at);
    bool gone = model_.retired(known.on);
    for (stream const s : known.recorded) gone = gone || model_.retired(s);
    if (concurrent && gone && !time_->synchronize_device()) return false;
    stream const after = some_stream();
    model_.handing_on(b.at, after);
    return pool_->vacate_behind(b.at, after).has_value();
  }

  /// A vacated block has its memory back, for one stream or first for another, or is freed without.
  void refill() {
    if (vacated_.empty()) return;
    std::size_t const i = choose_(vacated_.size());
    held const b = vacated_[i];
    bool const freed = choose_(3) == 0;
    request const r{.size = b.size, .on = some_stream()};
    stream const by = choose_(2) == 0 ? r.on : some_stream();
    if (choose_(4) == 0 && !pool_->foresee(b.at, some_foresight())) blame("a vacated block can be foreseen");
    if (freed) {
      if (!pool_->deallocate(b.at)) blame("a vacated block can be freed");
    } else if (result<void> const done = pool_->refill(b.at, r.on, by, choose_(2) == 0); !done) {
      if (!faulted_ && done.error().code != errc::out_of_memory) blame("a vacated block can be refilled");
      return;
    }
    vacated_[i] = vacated_.back();
    vacated_.pop_back();
    vacated_bytes_ -= b.size;
    if (freed) return;
    model_.allocated(r, b.at, by);
    live_.push_back(b);
    fill(live_.back());
  }

  /// Out of memory is an error only where there was none to be had.
  void refused(request const& r, error const& e) {
    if (e.code == errc::invalid_argument && r.where != placement::anywhere && r.alignment > options_.granule) return;
    if (faulted_) return;
    if (e.code != errc::out_of_memory) return blame("only memory runs out");
    bytes const padding = r.alignment > 512 ? r.alignment : 0;
    bytes const rounded = align_up(std::max(r.size, bytes{1}), options_.granule);  // as some policies do
    bytes const needed = align_up(rounded + padding, options_.granule);
    if (e.account.reserved + needed <= std::min(e.account.limit, device_.device().capacity())) {
      blame("memory that can be created is not out");
    }
    if (e.account.reserved != e.account.live + e.account.free || e.account.requested != r.size) {
      blame("the account adds up");
    }
  }

  void deallocate(std::size_t i) {
    held const gone = live_[i];
    live_[i] = live_.back();
    live_.pop_back();
    check(gone);
    std::optional<stream> after;
    if (choose_(5) == 0 && !model_.retired(model_.live().at(gone.at).on)) after = some_stream();
    model_.freeing(gone.at, after);
    result<void> const done = after ? pool_->deallocate(gone.at, *after) : pool_->deallocate(gone.at);
    if (!done) blame("a live block can be freed");
  }
  void deallocate_all() {
    while (!live_.empty()) deallocate(live_.size() - 1);
    for (held const& b : vacated_) {
      if (!pool_->deallocate(b.at)) blame("a vacated block can be freed");
    }
    vacated_.clear();
    vacated_bytes_ = 0;
  }

  void record() {
    if (live_.empty()) return;
    held const& b = live_[choose_(live_.size())];
    stream const s = some_stream();
    model_.recording(b.at, s);
    if (!pool_->record_stream(b.at, s)) blame("a use of a live block can be recorded");
  }

  void trim() {
    bytes const before = pool_->stats().reserved.now;
    result<bytes> const freed = pool_->trim();
    if (!freed) {
      if (!faulted_) blame("trim succeeds");
      return;
    }
    if (before - *freed != pool_->stats().reserved.now) blame("trim tells what it released");
  }

  void retire() {
    if constexpr (concurrent) {
      std::size_t const i = choose_(streams_.size());
      model_.retiring(streams_[i]);
      if (!pool_->retire_stream(streams_[i])) blame("a stream can be retired");
      (void)time_->destroy(streams_[i]);
      streams_[i] = stream{next_stream_++};
    }
  }

  /// What is no block's beginning is not taken back.
  void misuse() {
    if (pool_->deallocate(address{choose_(1024)})) blame("unknown pointers are refused");
    if (live_.empty()) return;
    held const& b = live_[choose_(live_.size())];
    if (b.size > 1 && pool_->deallocate(b.at + 1 + choose_(b.size - 1))) blame("interior pointers are refused");
    if (pool_->allocate({.size = 1, .alignment = 3 * (bytes{1} << choose_(12))})) blame("alignments are powers of two");
    if (pool_->allocate(~bytes{0} - choose_(1 << 20))) blame("no block is larger than can be");
  }

  void fail_some() {
    fault_plan plan{.first = choose_(12), .count = 1 + choose_(4), .only = {}};
    if (choose_(2) == 0) plan.only = static_cast<driver_call>(choose_(driver_call_names.size()));
    device_.calls.arm(plan);
    faulted_ = true;
  }

  [[nodiscard]] bool help() {
    if (live_.empty() || choose_(3) == 0) return choose_(2) == 0;
    deallocate(choose_(live_.size()));
    return true;
  }

  void look() {
    if (char const* broken = pool_->validate()) blame(broken);
    pool_stats const s = pool_->stats();
    if (s.requested.now != model_.requested() + vacated_bytes_) blame("what was requested is what is live");
    if (s.allocations - s.deallocations != live_.size() + vacated_.size()) blame("blocks are counted");
    if (steps_ % (4 * options_.validate_every) != 0) return;
    if (std::string const broken = broken_rule(pool_->snapshot(), s); !broken.empty()) blame(broken);
  }

  /// A word that tells the block and the place in it.
  [[nodiscard]] static std::uint64_t word(held const& b, bytes i) { return b.pattern ^ i; }

  void fill(held const& b) {
    if (!options_.host_memory || !model_.fault().empty()) return;
    auto* const to = static_cast<unsigned char*>(to_pointer(b.at));
    for (bytes i = 0; i < b.size; i += sizeof(std::uint64_t)) {
      std::uint64_t const w = word(b, i);
      std::memcpy(to + i, &w, std::min(sizeof w, b.size - i));
    }
  }
  void check(held const& b) {
    if (!options_.host_memory || !model_.fault().empty()) return;
    auto const* const from = static_cast<unsigned char const*>(to_pointer(b.at));
    for (bytes i = 0; i < b.size; i += sizeof(std::uint64_t)) {
      std::uint64_t const w = word(b, i);
      if (std::memcmp(from + i, &w, std::min(sizeof w, b.size - i)) != 0) return blame("a block keeps its contents");
    }
  }

  void blame(std::string const& rule) {
    if (fault_.empty()) fault_ = rule;
  }

  walk_options options_;
  chooser choose_;
  watched_device device_;
  std::shared_ptr<simulated_timeline> time_;
  naive_model model_;
  std::optional<basic_pool<Config>> pool_;
  std::vector<held> live_;
  std::vector<held> vacated_;
  bytes vacated_bytes_ = 0;
  std::vector<stream> streams_;
  std::uintptr_t next_stream_ = 0;
  std::uint64_t patterns_ = 0;
  int steps_ = 0;
  bool faulted_ = false;
  std::string fault_;
};

}  // namespace gmlake::test
