#pragma once
/// Copier: queues copies between device and host memory, on a stream of its own for each direction.
///
/// | call | does |
/// | --- | --- |
/// | `stream_out()`, `stream_in()` | the streams that its copies are queued on |
/// | `copy_out(host, device, n)` | queues a copy of n bytes to host memory; the caller's host goes on |
/// | `copy_in(device, host, n)` | the same to device memory |
///
/// When a copy is done, a fence recorded behind it tells. A call that fails has queued nothing. Host addresses are
/// addresses like others. No call throws.

#include <concepts>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake::swap {

template <class C>
concept Copier = std::movable<C> && requires(C& c, C const& k, address a, bytes n) {
  { k.stream_out() } noexcept -> std::same_as<stream>;
  { k.stream_in() } noexcept -> std::same_as<stream>;
  { c.copy_out(a, a, n) } noexcept -> std::same_as<result<void>>;
  { c.copy_in(a, a, n) } noexcept -> std::same_as<result<void>>;
};

}  // namespace gmlake::swap
