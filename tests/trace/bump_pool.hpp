#pragma once
/// The simplest pool that replay can drive: addresses only rise, memory is given back when the last block goes, and
/// everything is counted. It has a byte limit, and faults on request.

#include <map>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/pool/pool_concept.hpp"

namespace gmlake::test {

class bump_pool {
 public:
  explicit bump_pool(bytes limit = static_cast<bytes>(-1)) noexcept : limit_(limit) {}

  result<address> allocate(bytes n, stream s) noexcept {
    last_stream = s;
    if (stats_.requested.now + n > limit_) return failure(errc::out_of_memory, "allocate");
    address const a = next_;
    next_ = next_ + n + 512;
    blocks_[a] = n;
    stats_.requested.add(n);
    stats_.live.add(n);
    if (stats_.live.now > stats_.reserved.now) stats_.reserved.add(stats_.live.now - stats_.reserved.now);
    ++stats_.allocations;
    return overlap ? static_cast<address>(bytes{1} << 20) : a;
  }
  result<void> deallocate(address a) noexcept {
    auto const found = blocks_.find(a);
    if (found == blocks_.end()) return failure(errc::unknown_pointer, "deallocate");
    stats_.requested.sub(found->second);
    stats_.live.sub(found->second);
    blocks_.erase(found);
    ++stats_.deallocations;
    return {};
  }
  [[nodiscard]] pool_stats stats() const noexcept { return stats_; }
  [[nodiscard]] pool_snapshot snapshot() const {
    pool_snapshot s;
    for (auto const& [a, n] : blocks_) {
      s.blocks.push_back({.begin = a, .size = n, .requested = n, .state = block_state::live});
    }
    return s;
  }

  bool overlap = false;  ///< hand out the same address again and again
  stream last_stream{};

 private:
  bytes limit_;
  address next_ = static_cast<address>(bytes{1} << 20);
  std::map<address, bytes> blocks_;
  pool_stats stats_;
};
static_assert(Pool<bump_pool>);
static_assert(SnapshotPool<bump_pool>);

}  // namespace gmlake::test
