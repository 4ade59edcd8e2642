#pragma once
/// WaitPolicy: what to do with free memory that another stream's work may still use. The pool always prefers memory
/// that is free for the requesting stream already; a wait of the stream on the device costs nothing on the host, but
/// ties the two streams together.
///
/// | call | asks: rather than ..., may the requesting stream wait for memory that another stream has freed? |
/// | --- | --- |
/// | `before_stitching()` | making a stitch of memory that is free already |
/// | `before_growing()` | taking more memory from the device |
///
/// Waiting on the device before the request fails, and on the host as a last resort, are not asked for: the pool does.

#include <concepts>

namespace gmlake {

template <class W>
concept WaitPolicy = std::movable<W> && requires(W const& w) {
  { w.before_stitching() } noexcept -> std::same_as<bool>;
  { w.before_growing() } noexcept -> std::same_as<bool>;
};

}  // namespace gmlake
