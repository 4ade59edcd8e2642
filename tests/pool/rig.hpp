#pragma once
/// A small pool on a watched device, for tests in sentences: what it takes to set a scene in a line or two. Sizes are
/// chosen so that a chunk holds a few large blocks and a few chunks fill the device.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/stream/simulated_streams.hpp"
#include "tests/backend/must.hpp"
#include "tests/pool/host_device.hpp"
#include "tests/pool/snapshot_rules.hpp"

namespace gmlake::test {

// Not literals where they are used: Clang 14 leaves consteval literals in templates uncompiled.
inline constexpr bytes granule = 64_KiB;
inline constexpr bytes chunk_bytes = 1_MiB;
inline constexpr bytes half_chunk = 512_KiB;
inline constexpr bytes quarter_chunk = 256_KiB;
inline constexpr bytes small_block = 1_KiB;

/// Chunks of one size; one stream or several.
template <StreamPolicy Streams>
using rig_config = typename pool_config<borrowed_device, Streams>::template with_growth<fixed_chunks>;

struct rig_options {
  bytes capacity = simulated_options::unlimited;
  bool host_memory = false;
  pool_options pool{.small_limit = 16_KiB, .small_chunk = granule, .home_addresses = 1_GiB};
  lru_options cache{};
  timeline_options time{.lag = timeline_options::endless};
};

template <PoolConfig Config>
class rig {
 public:
  using pool_type = basic_pool<Config>;
  static constexpr bool concurrent =
      std::constructible_from<typename Config::streams, std::shared_ptr<simulated_timeline>>;

  explicit rig(rig_options const& o = {})
      : device(o.host_memory ? either_device(must(memfd::open({.granularity = granule, .capacity = o.capacity})))
                             : either_device(simulated({.capacity = o.capacity, .granularity = granule}))),
        time(std::make_shared<simulated_timeline>(o.time)) {
    pool_policies<Config> p;
    if constexpr (std::same_as<typename Config::growth, fixed_chunks>) p.growth = fixed_chunks(chunk_bytes);
    if constexpr (std::same_as<typename Config::stitching, largest_first>) {
      p.stitch = largest_first({.smallest = granule});
    }
    if constexpr (std::same_as<typename Config::eviction, lru>) p.evict = lru(o.cache);
    if constexpr (concurrent) {
      pool_.emplace(borrowed_device(device), typename Config::streams(time), o.pool, std::move(p));
    } else {
      pool_.emplace(borrowed_device(device), o.pool, std::move(p));
    }
  }
  rig(rig const&) = delete;
  rig& operator=(rig const&) = delete;
  ~rig() {
    if (pool_) sound();
  }

  watched_device device;
  std::shared_ptr<simulated_timeline> time;

  [[nodiscard]] pool_type& pool() noexcept { return *pool_; }
  [[nodiscard]] pool_stats stats() const { return pool_->stats(); }
  [[nodiscard]] bytes reserved() const { return pool_->stats().reserved.now; }

  [[nodiscard]] address take(bytes n, stream on = {}) { return must(pool_->allocate(n, on)); }
  [[nodiscard]] address take(request const& r) { return must(pool_->allocate(r)); }
  void give(address a) { must(pool_->deallocate(a)); }
  void give(address a, stream after) { must(pool_->deallocate(a, after)); }
  void give(std::vector<address> const& all) {
    for (address a : all) give(a);
  }
  bytes trim() { return must(pool_->trim()); }

  /// `count` blocks of n bytes.
  [[nodiscard]] std::vector<address> take_many(std::size_t count, bytes n, stream on = {}) {
    std::vector<address> all;
    while (all.size() < count) all.push_back(take(n, on));
    return all;
  }

  /// Blocks of half a chunk on `chunks` chunks: one of each pair is freed, so that half of every chunk is free, and no
  /// whole one. Returns those that stay.
  [[nodiscard]] std::vector<address> checker(std::size_t chunks, stream on = {}) {
    std::vector<address> all = take_many(2 * chunks, half_chunk, on);
    std::vector<address> kept;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 0) give(all[i]);
      else kept.push_back(all[i]);
    }
    return kept;
  }

  /// Chunks that are free and wholly so, every other one of `2 * count`, so that no two touch. Returns the blocks on
  /// those between.
  [[nodiscard]] std::vector<address> holes(std::size_t count, stream on = {}) {
    std::vector<address> all = take_many(2 * count, chunk_bytes, on);
    std::vector<address> kept;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 0) give(all[i]);
      else kept.push_back(all[i]);
    }
    return kept;
  }

  void sound() const {
    char const* const fault = pool_->validate();
    CHECK_MESSAGE(fault == nullptr, fault);
    std::string const broken = broken_rule(pool_->snapshot(), pool_->stats());
    CHECK_MESSAGE(broken.empty(), broken);
  }

  /// The pool goes; nothing of it stays with the device.
  void destroy() {
    pool_.reset();
    CHECK(device.idle());
  }

 private:
  std::optional<pool_type> pool_;
};

using plain_rig = rig<rig_config<one_stream>>;
using stream_rig = rig<rig_config<simulated_streams>>;

}  // namespace gmlake::test
