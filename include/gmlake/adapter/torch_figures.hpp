#pragma once
/// A device's figures and memory in PyTorch's terms: `DeviceStats`, and the segments of a memory snapshot.
///
/// A segment is a run of one stream's memory side by side: of one range's homes, without what stitches have taken from
/// them, or the view of a stitch that serves a block; in a pool whose memory comes in segments, those. So all segments
/// add up to what is reserved, and none counts twice.

#include <algorithm>
#include <utility>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>

#include "gmlake/adapter/torch_device.hpp"

namespace gmlake {

[[nodiscard]] inline c10::CachingAllocator::StatArray to_stats(torch_lines const& t,
                                                               torch_gauge torch_totals::* which) {
  c10::CachingAllocator::StatArray out;
  for (auto const& [from, to] : {std::pair{&t.all, c10::CachingAllocator::StatType::AGGREGATE},
                                 std::pair{&t.small, c10::CachingAllocator::StatType::SMALL_POOL},
                                 std::pair{&t.large, c10::CachingAllocator::StatType::LARGE_POOL}}) {
    torch_gauge const& g = from->*which;
    auto& s = out[static_cast<std::size_t>(to)];
    s.current = g.current;
    s.peak = g.peak;
    s.allocated = g.added;
    s.freed = g.taken;
  }
  return out;
}

/// What PyTorch's own allocator would tell of the pools. `active` counts what
/// is handed out or kept for another stream; `inactive_split` what is
/// free in chunks that are partly used.
[[nodiscard]] inline c10::cuda::CUDACachingAllocator::DeviceStats device_stats(torch_device& d) {
  torch_lines const sum = d.lines();
  pool_stats const all = d.stats();
  bytes releasable = 0;
  bytes parked = 0;  // freed, and kept for other streams' recorded uses
  d.each_pool([&](torch_pool_id, torch_pool& p) {
    pool_stats const s = p.stats();
    parked += p.account().live - std::min(p.account().live, s.live.now);
    releasable += p.free_chunks();
  });
  c10::cuda::CUDACachingAllocator::DeviceStats out;
  out.allocation = to_stats(sum, &torch_totals::allocation);
  out.active = out.allocation;
  out.segment = to_stats(sum, &torch_totals::segment);
  out.allocated_bytes = to_stats(sum, &torch_totals::allocated_bytes);
  out.active_bytes = out.allocated_bytes;
  for (auto const kind : {c10::CachingAllocator::StatType::AGGREGATE, c10::CachingAllocator::StatType::LARGE_POOL}) {
    auto& active = out.active_bytes[static_cast<std::size_t>(kind)];
    active.current += static_cast<std::int64_t>(parked);
    active.peak = std::max(active.peak, active.current);
  }
  out.reserved_bytes = to_stats(sum, &torch_totals::reserved_bytes);
  out.requested_bytes = to_stats(sum, &torch_totals::requested_bytes);
  auto& split = out.inactive_split_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  // What has left for the host is handed out, and takes no memory.
  std::int64_t const free = sum.all.reserved_bytes.current - sum.all.allocated_bytes.current;
  split.current = std::max(free - static_cast<std::int64_t>(releasable), std::int64_t{0});
  split.peak = split.current;
  out.num_alloc_retries = static_cast<std::int64_t>(all.retries);
  out.num_ooms = static_cast<std::int64_t>(all.failures);
  out.num_sync_all_streams = static_cast<std::int64_t>(all.host_waits);
  out.num_device_alloc = sum.all.segment.added;
  out.num_device_free = sum.all.segment.taken;
  return out;
}

namespace detail {

[[nodiscard]] inline void* to_segment_stream(stream s) noexcept { return reinterpret_cast<void*>(to_integer(s)); }

inline void add_block(c10::cuda::CUDACachingAllocator::SegmentInfo& s, bytes size, bytes requested, bool allocated,
                      bool active) {
  c10::cuda::CUDACachingAllocator::BlockInfo b;
  b.size = size;
  b.requested_size = requested;
  b.allocated = allocated;
  b.active = active;
  s.total_size += size;
  s.allocated_size += allocated ? size : 0;
  s.active_size += active ? size : 0;
  s.requested_size += requested;
  s.blocks.push_back(std::move(b));
}

}  // namespace detail

/// The device's memory as segments, in order of address; of one pool alone, if it is named. Linear.
[[nodiscard]] inline std::vector<c10::cuda::CUDACachingAllocator::SegmentInfo> segments_of(torch_device& d,
                                                                                           c10::DeviceIndex device,
                                                                                           torch_pool_id const* only) {
  using segment = c10::cuda::CUDACachingAllocator::SegmentInfo;
  std::vector<segment> all;
  d.each_pool([&](torch_pool_id id, torch_pool& p) {
    if (only != nullptr && *only != id) return;
    auto const open = [&](address at, stream on) -> segment& {
      segment s;
      s.device = device;
      s.address = to_integer(at);
      s.stream = detail::to_segment_stream(on);
      s.is_large = true;
      s.is_expandable = !p.placed();
      s.owner_private_pool_id = {id.first, id.second};
      all.push_back(std::move(s));
      return all.back();
    };
    pool_snapshot const shot = p.snapshot();
    address end{};
    stream on{};
    for (block_snapshot const& b : shot.blocks) {
      if (b.state != block_state::live && b.state != block_state::free) continue;
      bool const live = b.state == block_state::live;
      bool const others = b.owner != on && (live || b.pending) && !p.placed();
      if (end != b.begin || others || std::ranges::binary_search(shot.ranges, b.begin)) {
        open(b.begin, b.owner);
        on = b.owner;
      }
      detail::add_block(all.back(), b.size, b.requested, live, live || b.parked);
      end = b.begin + b.size;
    }
    for (stitch_snapshot const& s : shot.stitches) {
      if (s.live && !s.planned) detail::add_block(open(s.block, s.owner), s.served, s.requested, !s.parked, true);
    }
    auto next = shot.planned_live.begin();
    for (planned_run const& r : shot.planned) {
      address const upto = r.begin + r.size;
      while (next != shot.planned_live.end() && next->begin < r.begin) ++next;
      bool const any = next != shot.planned_live.end() && next->begin < upto;
      if (!any && !r.held) continue;
      // What has gone back of it stands with the lake's blocks.
      address at = r.held ? r.begin : next->begin;
      segment& s = open(at, any ? next->owner : stream{});
      for (; next != shot.planned_live.end() && next->begin < upto; ++next) {
        if (next->begin > at) detail::add_block(s, next->begin - at, 0, false, false);
        detail::add_block(s, next->size, next->requested, true, true);
        at = next->begin + next->size;
      }
      if (r.held && upto > at) detail::add_block(s, upto - at, 0, false, false);
    }
  });
  std::ranges::sort(all, {}, &segment::address);
  return all;
}

}  // namespace gmlake
