#pragma once
/// Observer: told of everything a pool does, under its lock. It must not call the pool. One that does nothing costs
/// nothing.

#include <concepts>
#include <cstddef>

#include "gmlake/core/error.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/lake/block.hpp"

namespace gmlake {

/// A block handed out or taken back.
struct block_event {
  address at{};
  bytes requested = 0;
  bytes size = 0;  ///< as placed
  stream on{};     ///< whom it was handed out to; when taken back: after whose work it may be used again
  /// The block itself while the call lasts, for observers that look at what lies beneath; none from pools without.
  block const* placed = nullptr;
};

/// A stitch mapped, reused or unmapped.
struct stitch_event {
  address at{};
  bytes size = 0;           ///< of the mapping
  std::size_t handles = 0;  ///< mapped in it
};

template <class O>
concept Observer = std::movable<O> && requires(O& o, block_event const& b, stitch_event const& s, address a, bytes n,
                                               memory_account const& account) {
  { o.allocated(b) } noexcept -> std::same_as<void>;
  { o.deallocated(b) } noexcept -> std::same_as<void>;
  { o.created(a, n) } noexcept -> std::same_as<void>;   // a chunk, at its home
  { o.released(a, n) } noexcept -> std::same_as<void>;  // a chunk, from its home
  { o.stitched(s) } noexcept -> std::same_as<void>;
  { o.reused(s) } noexcept -> std::same_as<void>;
  { o.evicted(s) } noexcept -> std::same_as<void>;
  { o.failed(account) } noexcept -> std::same_as<void>;
};

}  // namespace gmlake
