#pragma once
/// A small device with real pages, a host beside it and a file below that, with copies that take their time and calls
/// that fail, for tests of swapping.

#include <cstring>
#include <functional>
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

/// Which of a store's calls fail; null: none.
struct store_faults {
  std::function<bool()> write_fails, read_fails;
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
};

class faulty_store {
 public:
  faulty_store(swap::swap_file file, std::shared_ptr<store_faults> faults) noexcept
      : file_(std::move(file)), faults_(std::move(faults)) {}

  [[nodiscard]] bytes capacity() const noexcept { return file_.capacity(); }
  [[nodiscard]] result<swap::slot> write(address from, bytes n) noexcept {
    ++faults_->writes;
    if (faults_->write_fails && faults_->write_fails()) return failure(errc::driver_failure, "pwrite: injected");
    return file_.write(from, n);
  }
  [[nodiscard]] result<void> read(address to, swap::slot from, bytes offset, bytes n) noexcept {
    ++faults_->reads;
    if (faults_->read_fails && faults_->read_fails()) return failure(errc::driver_failure, "pread: injected");
    return file_.read(to, from, offset, n);
  }
  void release(swap::slot where, bytes n) noexcept { file_.release(where, n); }

 private:
  swap::swap_file file_;
  std::shared_ptr<store_faults> faults_;
};
static_assert(swap::BackingStore<faulty_store>);

/// Whether n > 0 bytes have one value.
[[nodiscard]] inline bool all_are(address at, bytes n, unsigned char value) {
  auto const* const p = static_cast<unsigned char const*>(to_pointer(at));
  return p[0] == value && std::memcmp(p, p + 1, n - 1) == 0;
}

inline constexpr auto any_block = [](address) noexcept { return true; };

struct swap_rig_options {
  bytes granule = 64_KiB;
  bytes chunk = 1_MiB;
  bytes device = 16_MiB;
  bytes host = 64_MiB;
  bytes file = 0;  ///< capacity; 0: none
  /// Absent blocks are served from their copies; both pools are on one backend then, with room for what one owes it.
  bool in_place = false;
};

class swap_rig {
 public:
  using device_pool = basic_pool<pool_config<borrowed_device, lazy_streams>::with_growth<fixed_chunks>>;
  using host_pool = basic_pool<pool_config<borrowed_device>>;
  using pool_type = swap::swapping_pool<device_pool, host_pool, lazy_streams, lazy_copier, faulty_store>;

  static constexpr bytes stage = 128_KiB;  ///< what comes back from the file comes in pieces of this
  static constexpr stream work{1};

  explicit swap_rig(swap_rig_options const& o = {})
      : queues(std::make_shared<copy_queues>()),
        store(std::make_shared<store_faults>()),
        device(either_device(must(
            memfd::open({.granularity = o.granule, .capacity = o.in_place ? 2 * (o.device + o.host) : o.device})))),
        host(either_device(must(memfd::open({.granularity = o.granule, .capacity = o.host})))) {
    pool_policies<pool_config<borrowed_device, lazy_streams>::with_growth<fixed_chunks>> p;
    p.growth = fixed_chunks(o.chunk);
    p.stitch = largest_first({.smallest = o.granule});
    pool_options const small{.small_limit = 4_KiB, .small_chunk = o.granule, .home_addresses = 64_MiB};
    pool_options limited = small;
    limited.limit = o.device;
    on_device = std::make_unique<device_pool>(borrowed_device(device), lazy_streams(queues), limited, std::move(p));
    limited.limit = o.host;
    typename host_pool::policies host_chunks;
    if (o.in_place) {
      host_chunks.stitch = largest_first({.smallest = o.granule});
      host_chunks.growth = adaptive_chunks(adaptive_options::fixed(o.chunk));
    }
    on_host = std::make_unique<host_pool>(borrowed_device(o.in_place ? device : host), limited, std::move(host_chunks));
    swap::swap_file below;
    if (o.file > 0) below = must(swap::swap_file::open({.directory = "/tmp", .capacity = o.file}));
    pool = std::make_unique<pool_type>(
        *on_device, *on_host, lazy_streams(queues), lazy_copier(queues), faulty_store(std::move(below), store),
        swap::swap_options{.in_place = o.in_place, .stage_size = stage, .smallest = o.granule});
  }
  swap_rig(swap_rig const&) = delete;
  swap_rig& operator=(swap_rig const&) = delete;
  ~swap_rig() { sound(); }

  [[nodiscard]] address take(bytes n, stream on = work, swap::tag group = {}) const {
    return must(pool->allocate(n, on, group));
  }
  void fill(address at, bytes n, unsigned char value) { std::memset(to_pointer(at), value, n); }
  [[nodiscard]] bool holds(address at, bytes n, unsigned char value) { return all_are(at, n, value); }
  [[nodiscard]] swap::residency state(address at) const { return must(pool->residency_of(at)); }

  void sound() const {
    for (char const* const fault : {on_device->validate(), on_host->validate()}) CHECK_MESSAGE(fault == nullptr, fault);
    std::string const broken = broken_rule(on_device->snapshot(), on_device->stats());
    CHECK_MESSAGE(broken.empty(), broken);
  }

  std::shared_ptr<copy_queues> queues;
  std::shared_ptr<store_faults> store;
  watched_device device, host;
  std::unique_ptr<device_pool> on_device;
  std::unique_ptr<host_pool> on_host;
  std::unique_ptr<pool_type> pool;
};

}  // namespace gmlake::test
