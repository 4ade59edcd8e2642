#pragma once
/// What gives the buffers of a problem their offsets. A packer is a value with its options in it; what it returns is
/// valid for every problem whose fixed buffers are: no two buffers that conflict (lifespans.hpp) share a byte, every
/// offset is aligned, and fixed ones are kept. The same problem gives the same solution. It must not fail but for want
/// of memory, and must not know of pools, addresses or devices.

#include <concepts>
#include <string_view>

#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// | expression   | returns            | what it does                                                          |
/// | ------------ | ------------------ | --------------------------------------------------------------------- |
/// | `p.pack(of)` | `solution`         | offsets for all buffers of `of`; throws nothing but `std::bad_alloc`  |
/// | `p.name()`   | `std::string_view` | what tables call it; static storage; does not throw                   |
template <class P>
concept Packer = std::copyable<P> && requires(P const p, problem const& of) {
  { p.pack(of) } -> std::same_as<solution>;
  { p.name() } noexcept -> std::same_as<std::string_view>;
};

}  // namespace gmlake::plan
