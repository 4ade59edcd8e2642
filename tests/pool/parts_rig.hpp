#pragma once
/// A pool's parts without their engine, on a watched device: what it takes to try one of them alone. Memory is laid out
/// to the byte, so that a test knows which runs are free; streams are simulated, and no fence is reached by itself.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gmlake/pool/follower.hpp"
#include "gmlake/pool/inspection.hpp"
#include "tests/pool/rig.hpp"

namespace gmlake::test {

inline constexpr stream one{1};
inline constexpr stream two{2};

struct parts_options {
  bytes capacity = simulated_options::unlimited;
  bytes stitched_from = granule;  ///< smaller claims are not stitched
};

class parts_rig {
 public:
  using config = rig_config<simulated_streams>;
  static constexpr bytes nothing_stitched = ~bytes{0};

  explicit parts_rig(parts_options const& o = {})
      : device(either_device(simulated({.capacity = o.capacity, .granularity = granule}))),
        time(std::make_shared<simulated_timeline>(timeline_options{.lag = timeline_options::endless})),
        parts(borrowed_device(device), simulated_streams(time), rig_options{}.pool, policies(o)),
        grow(parts),
        stitch(parts),
        first(enter(one)) {}
  parts_rig(parts_rig const&) = delete;
  parts_rig& operator=(parts_rig const&) = delete;
  ~parts_rig() { sound(); }

  watched_device device;
  std::shared_ptr<simulated_timeline> time;
  pool_parts<config> parts;
  grower<config> grow;
  stitcher<config> stitch;
  address_map<block> live;
  stream_index first;  ///< stream one's lane

  [[nodiscard]] stream_index enter(stream s) { return must(parts.space.enter(s)); }
  [[nodiscard]] timeline<simulated_streams>& order() noexcept { return parts.space.time(); }
  [[nodiscard]] bytes free() const noexcept { return parts.space.total(); }
  [[nodiscard]] tick stamp(stream_index on) { return order().stamp(on); }

  block& take(bytes n, stream_index user) {
    REQUIRE(parts.space.home().reserve_blocks(2));
    REQUIRE(live.reserve_one());
    block* const from = parts.space.find(user, area::large, n);
    REQUIRE(from != nullptr);
    block& b = parts.space.carve(*from, from->begin, n, block_state::live);
    b.on = user;
    live.insert(b.begin, b);
    return b;
  }
  block& take(bytes n) { return take(n, first); }
  void give(block& b, stream_index on) {
    REQUIRE(live.extract(b.begin) == &b);
    parts.space.give_back(b, on, stamp(on));
  }
  void give(block& b) { give(b, first); }

  /// Some bytes of the lake; what is not free is live.
  struct piece {
    bytes size = 0;
    bool free = true;
  };
  /// Makes memory of these pieces, side by side from the beginning of a chunk; what is left of its last one is live.
  /// Where the free ones lie. Precondition: nothing is free.
  std::vector<address> lay(std::vector<piece> const& pieces) {
    REQUIRE(free() == 0);
    bytes sum = 0;
    for (piece const& p : pieces) sum += p.size;
    must(grow.add_contiguous(first, area::large, sum));
    std::vector<block*> to_free;
    for (piece const& p : pieces) {
      block& b = take(p.size);
      if (p.free) to_free.push_back(&b);
    }
    if (free() > 0) (void)take(free());
    std::vector<address> begins;
    for (block* const b : to_free) {
      begins.push_back(b->begin);
      give(*b);
    }
    return begins;
  }
  /// Whole chunks, no two of them side by side.
  std::vector<address> lay_chunks(std::size_t count) {
    std::vector<piece> pieces;
    for (std::size_t i = 0; i < count; ++i) {
      pieces.push_back({chunk_bytes, true});
      pieces.push_back({chunk_bytes, false});
    }
    return lay(pieces);
  }

  void sound() const {
    char const* const fault = find_fault(parts, live);
    CHECK_MESSAGE(fault == nullptr, fault);
  }

 private:
  [[nodiscard]] static pool_policies<config> policies(parts_options const& o) {
    pool_policies<config> p;
    p.growth = fixed_chunks(chunk_bytes);
    p.stitch = largest_first({.smallest = o.stitched_from});
    return p;
  }
};

/// A plan of these requests. Its height is where the last of them ends.
[[nodiscard]] inline plan::plan plan_of(std::vector<plan::step_request> requests, plan::instant period) {
  plan::plan p{.requests = std::move(requests), .period = period};
  for (plan::step_request const& r : p.requests) {
    if (r.offset != plan::step_request::nowhere) p.height = std::max(p.height, r.offset + r.size);
  }
  return p;
}

}  // namespace gmlake::test
