#pragma once
/// A pool that holds many live blocks of mixed sizes, as the benchmarks find it, and what to say about it beside its
/// speed. The blocks are laid end to end, so that no hole is there but those which a benchmark makes.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "gmlake/pool/pool_concept.hpp"

namespace gmlake::bench {

inline constexpr bytes hot_size =
    bytes{1} << 20;  ///< what a hot pair allocates: the least size of its class, so that TLSF finds it too

/// Sizes as in the traces: log-normal, median 64 KiB, from bytes to tens of MiB. The same sequence every time.
class mixed_sizes {
 public:
  /// Every size is divided by `divisor`, for allocators whose memory is really touched.
  explicit mixed_sizes(bytes divisor) {
    constexpr double median = 64.0 * 1024;
    constexpr double sigma = 2.5;
    constexpr double largest = 64.0 * 1024 * 1024;
    std::mt19937_64 random(20240427);
    std::lognormal_distribution<double> sizes(std::log(median), sigma);
    for (bytes& n : table_) n = static_cast<bytes>(std::clamp(sizes(random), 1.0, largest)) / divisor + 1;
  }

  /// The i-th size; they come again after 2^16.
  [[nodiscard]] bytes operator[](std::size_t i) const noexcept { return table_[i % table_.size()]; }

 private:
  std::array<bytes, 1 << 16> table_;
};

/// xorshift64* (Vigna 2016): a nanosecond a number, so that the choice of a victim does not show.
class quick_random {
 public:
  explicit quick_random(std::uint64_t seed) noexcept : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  /// A number below n, which is less than 2^32.
  [[nodiscard]] std::size_t below(std::size_t n) noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::size_t>((((state_ * 0x2545F4914F6CDD1Du) >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

/// What must not happen in a benchmark: there is nothing to measure then.
inline void expect(bool good, char const* what) noexcept {
  if (good) return;
  (void)std::fprintf(stderr, "%s\n", what);
  std::exit(EXIT_FAILURE);
}

/// Bytes, and 1 − peak requested / peak reserved.
inline void report_memory(benchmark::State& state, bytes requested, bytes reserved) {
  using benchmark::Counter;
  double const held = static_cast<double>(reserved);
  state.counters["reserved"] = Counter(held, Counter::kDefaults, Counter::kIs1024);
  state.counters["fragmentation"] = reserved > 0 ? 1 - static_cast<double>(requested) / held : 0;
}

template <Pool P>
[[nodiscard]] address allocate_from(P& pool, bytes n) noexcept {
  result<address> const block = pool.allocate(n, stream{});
  expect(block.has_value(), "the pool is out of memory");
  return *block;
}

template <Pool P>
class loaded_pool {
 public:
  static constexpr int most_threads = 8;

  /// `live` blocks; between them, spread evenly, one hot block for each thread.
  loaded_pool(std::unique_ptr<P> pool, std::size_t live, bytes divisor = 1) : pool_(std::move(pool)), sizes_(divisor) {
    blocks_.reserve(live);
    std::size_t const apart = live / most_threads;
    for (std::size_t i = 0; i < live; ++i) {
      if (i % apart == apart / 2 && i / apart < most_threads) {
        hot_[i / apart].at = allocate_from(*pool_, hot_size / divisor);
        requested_ += hot_size / divisor;
      }
      blocks_.push_back({allocate_from(*pool_, sizes_[i]), sizes_[i]});
      requested_ += sizes_[i];
    }
    note_requested(requested_);
    // Room for growth that the benchmark is not to pay for, as one free block.
    address const room = allocate_from(*pool_, most_threads * 2 * hot_size / divisor);
    expect(pool_->deallocate(room).has_value(), "a block can't be freed");
  }

  loaded_pool(loaded_pool const&) = delete;
  ~loaded_pool() {
    for (live_block const& b : blocks_) expect(pool_->deallocate(b.at).has_value(), "a block can't be freed");
    for (hot_block const& h : hot_) expect(pool_->deallocate(h.at).has_value(), "a block can't be freed");
  }

  /// Replaces blocks at random, one of another size for each, until the pool is as it will stay. Once is enough.
  void settle() {
    if (settled_) return;
    settled_ = true;
    quick_random random(1);
    bytes requested = requested_;
    for (std::size_t i = 0; i < 2 * blocks_.size(); ++i) {
      requested += replace(random.below(blocks_.size()), i);
      note_requested(requested);
    }
  }

  /// Block i goes, and one of the k-th size comes instead. Returns by how many bytes it is larger (modulo 2^64).
  bytes replace(std::size_t i, std::size_t k) noexcept {
    live_block const gone = blocks_[i];
    expect(pool_->deallocate(gone.at).has_value(), "a block can't be freed");
    blocks_[i] = {allocate_from(*pool_, sizes_[k]), sizes_[k]};
    return blocks_[i].size - gone.size;
  }

  /// By all live blocks together, in bytes: now, and at most, as far as was noted.
  [[nodiscard]] bytes requested() const noexcept { return requested_; }
  [[nodiscard]] bytes peak_requested() const noexcept { return peak_requested_; }
  void note_requested(bytes now) noexcept {
    requested_ = now;
    peak_requested_ = std::max(peak_requested_, now);
  }

  [[nodiscard]] P& pool() noexcept { return *pool_; }
  [[nodiscard]] std::size_t live() const noexcept { return blocks_.size(); }
  [[nodiscard]] address& hot(int thread) noexcept { return hot_[static_cast<std::size_t>(thread)].at; }

  void report(benchmark::State& state) const {
    pool_stats const s = pool_->stats();
    report_memory(state, s.requested.peak, s.reserved.peak);
  }

 private:
  struct live_block {
    address at{};
    bytes size = 0;
  };
  struct alignas(64) hot_block {
    address at{};
  };

  std::unique_ptr<P> pool_;
  mixed_sizes sizes_;
  std::vector<live_block> blocks_;
  bytes requested_ = 0;
  bytes peak_requested_ = 0;
  bool settled_ = false;
  std::array<hot_block, most_threads> hot_;
};

struct load_options {
  bytes divisor = 1;     ///< of all sizes
  bool settled = false;  ///< after random replacements
};

/// The pool that `make` makes, loaded with so many blocks: kept from one run of a benchmark to the next, as making it
/// takes far longer than the runs. The first thread to call loads it, the others wait.
template <class Make>
[[nodiscard]] auto& loaded(Make const& make, std::int64_t live, load_options const& options = {}) {
  using pool = typename decltype(make())::element_type;
  static std::mutex mutex;
  static std::unique_ptr<loaded_pool<pool>> kept;
  std::scoped_lock const lock(mutex);
  auto const blocks = static_cast<std::size_t>(live);
  if (kept == nullptr || kept->live() != blocks) {
    kept.reset();
    kept = std::make_unique<loaded_pool<pool>>(make(), blocks, options.divisor);
  }
  if (options.settled) kept->settle();
  return *kept;
}

}  // namespace gmlake::bench
