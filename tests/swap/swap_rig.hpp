#pragma once
/// A small device with real pages and a host beside it, with copies that take their time, for tests of swapping.

#include <cstring>
#include <memory>
#include <utility>

#include <doctest/doctest.h>

#include "gmlake/grow/fixed_chunks.hpp"
#include "gmlake/pool/basic_pool.hpp"
#include "gmlake/swap/swapping_pool.hpp"
#include "tests/backend/must.hpp"
#include "tests/pool/host_device.hpp"
#include "tests/pool/snapshot_rules.hpp"
#include "tests/swap/lazy_copies.hpp"

namespace gmlake::test {

struct swap_rig_options {
  bytes granule = 64_KiB;
  bytes device = 16_MiB;
  bytes host = 64_MiB;
};

class swap_rig {
 public:
  using device_pool = basic_pool<pool_config<borrowed_device, lazy_streams>::with_growth<fixed_chunks>>;
  using host_pool = basic_pool<pool_config<borrowed_device>>;
  using pool_type = swap::swapping_pool<device_pool, host_pool, lazy_streams, lazy_copier>;

  static constexpr bytes chunk = 1_MiB;
  static constexpr stream work{1};

  explicit swap_rig(swap_rig_options const& o = {})
      : queues(std::make_shared<copy_queues>()),
        device(either_device(must(memfd::open({.granularity = o.granule, .capacity = o.device})))),
        host(either_device(must(memfd::open({.granularity = o.granule, .capacity = o.host})))) {
    pool_policies<pool_config<borrowed_device, lazy_streams>::with_growth<fixed_chunks>> p;
    p.growth = fixed_chunks(chunk);
    p.stitch = largest_first({.smallest = o.granule});
    pool_options const small{.small_limit = 4_KiB, .small_chunk = o.granule, .home_addresses = 64_MiB};
    on_device = std::make_unique<device_pool>(borrowed_device(device), lazy_streams(queues), small, std::move(p));
    on_host = std::make_unique<host_pool>(borrowed_device(host), small);
    pool = std::make_unique<pool_type>(*on_device, *on_host, lazy_streams(queues), lazy_copier(queues),
                                       swap::swap_options{.smallest = o.granule});
  }
  swap_rig(swap_rig const&) = delete;
  swap_rig& operator=(swap_rig const&) = delete;
  ~swap_rig() { sound(); }

  [[nodiscard]] address take(bytes n, stream on = work, swap::tag group = {}) {
    return must(pool->allocate(n, on, group));
  }
  void fill(address at, bytes n, unsigned char value) { std::memset(to_pointer(at), value, n); }
  [[nodiscard]] bool holds(address at, bytes n, unsigned char value) {
    auto const* const p = static_cast<unsigned char const*>(to_pointer(at));
    for (bytes i = 0; i < n; ++i) {
      if (p[i] != value) return false;
    }
    return true;
  }
  [[nodiscard]] swap::residency state(address at) { return must(pool->residency_of(at)); }

  void sound() {
    for (char const* const fault : {on_device->validate(), on_host->validate()}) CHECK_MESSAGE(fault == nullptr, fault);
    std::string const broken = broken_rule(on_device->snapshot(), on_device->stats());
    CHECK_MESSAGE(broken.empty(), broken);
  }

  std::shared_ptr<copy_queues> queues;
  watched_device device, host;
  std::unique_ptr<device_pool> on_device;
  std::unique_ptr<host_pool> on_host;
  std::unique_ptr<pool_type> pool;
};

}  // namespace gmlake::test
