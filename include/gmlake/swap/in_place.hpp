#pragma once
/// An absent block served in place: its host copy is mapped at the block's address, so that a kernel which touches it
/// is slow, not wrong, and what it writes is the block's contents.
///
///     device address ..| host chunk | host chunk | (the last one's rest) |..     the copy's own chunks, mapped twice:
///     host address   ..| host chunk | host chunk |                               here too, at the copy's address
///
/// Handles are mapped whole, so a copy that may be shown begins on a chunk's beginning: it is a movable block of the
/// host pool's.

#include <concepts>
#include <new>
#include <span>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/lake/block.hpp"
#include "gmlake/lake/chunk.hpp"
#include "gmlake/lake/lent_memory.hpp"
#include "gmlake/lake/stitch.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/stitch/no_stitch.hpp"

namespace gmlake::swap {

/// A pool that shows other memory at its vacated blocks' addresses, as `basic_pool` does.
template <class P>
concept ShowingPool = requires(P& p, address a, std::span<lent_memory const> m) {
  { p.show(a, m) } noexcept -> std::same_as<result<void>>;
  { p.hide(a) } noexcept -> std::same_as<result<void>>;
};

/// A pool whose movable blocks' chunks can be mapped elsewhere too.
template <class P>
concept LendingPool = requires(P& p, request const& r) {
  { p.allocate(r) } noexcept -> std::same_as<result<address>>;
  typename P::config;
} && !PlacedBackend<typename P::config::backend> && !std::same_as<typename P::config::stitching, no_stitch>;

/// Whether copies in `Host` can be served at addresses of `Device`.
template <class Device, class Host>
inline constexpr bool can_serve_in_place = ShowingPool<Device> && LendingPool<Host>;

/// Maps the host copy at `copy` at the vacated block `at`. Errors: `device.show`'s, `out_of_host_memory`; then nothing
/// has changed.
template <ShowingPool Device, LendingPool Host>
[[nodiscard]] result<void> show_copy(Device& device, Host& host, address at, address copy) noexcept {
  std::vector<lent_memory> chunks;
  try {
    host.look_at(copy, [&](block const& b, stream) {
      stitch const& view = *b.view;
      for (std::size_t i = 0; i < view.count; ++i) chunks.push_back({view.chunks[i]->memory, view.chunks[i]->size});
    });
  } catch (std::bad_alloc const&) {
    return failure(errc::out_of_host_memory, "show");
  }
  return device.show(at, chunks);
}

}  // namespace gmlake::swap
