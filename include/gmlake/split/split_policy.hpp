#pragma once
/// SplitPolicy: which free block serves a request, and how large a block the request makes. One instance keeps one
/// shelf: the free blocks of one area that one stream freed last.
///
/// | call | does | cost |
/// | --- | --- | --- |
/// | `round(n, granule)` | the size of the block for a request of n ≥ 1 bytes: whole `block_alignment`s | constant |
/// | `insert(b)`, `erase(b)` | b comes on the shelf, leaves it; there, its size and address don't change | log |
/// | `resize(b, begin, size)` | b with another end or size; less work where its place is the same | log |
/// | `find(n)` | a block of n bytes or more; null where there is none | log |
/// | `next_fit(b, n)` | another one, where the last answer can't be used; null at the end | log |
/// | `largest()`, `smaller(b)` | from the largest block down; a policy may be off by its classes | log |
///
/// A policy owns nothing, allocates nothing and never fails. It uses the hooks `by_size` and `in_list` of a block.

#include <concepts>

#include "gmlake/lake/block.hpp"

namespace gmlake {

/// Every block begins and ends at a multiple of this: what CUDA promises of `cudaMalloc` is 256, and kernels of the
/// libraries ask for up to 512.
inline constexpr bytes block_alignment = 512;

template <class S>
concept SplitPolicy = std::default_initializable<S> && requires(S& s, S const& c, block& b, address a, bytes n) {
  { S::round(n, n) } noexcept -> std::same_as<bytes>;
  { s.insert(b) } noexcept -> std::same_as<void>;
  { s.erase(b) } noexcept -> std::same_as<void>;
  { s.resize(b, a, n) } noexcept -> std::same_as<void>;
  { c.find(n) } noexcept -> std::same_as<block*>;
  { c.next_fit(b, n) } noexcept -> std::same_as<block*>;
  { c.largest() } noexcept -> std::same_as<block*>;
  { c.smaller(b) } noexcept -> std::same_as<block*>;
};

}  // namespace gmlake
