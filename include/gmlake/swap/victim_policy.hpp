#pragma once
/// VictimPolicy: which of the blocks that nobody uses leaves first where memory is out (`least_recent`,
/// `farthest_use`).
///
/// | call | does |
/// | --- | --- |
/// | `insert(p)` | p may be sent away from now on; its job's priority and its uses, last and next, stay as they are |
/// | `erase(p)` | no longer |
/// | `next()` | the page to leave next, null where there is none; it stays inserted |
///
/// Of jobs, those of low priority give first. No call throws; all are logarithmic at most, `next` in the mean.

#include <concepts>

#include "gmlake/swap/page.hpp"

namespace gmlake::swap {

template <class V>
concept VictimPolicy = std::default_initializable<V> && requires(V& v, page& p) {
  { v.insert(p) } noexcept -> std::same_as<void>;
  { v.erase(p) } noexcept -> std::same_as<void>;
  { v.next() } noexcept -> std::same_as<page*>;
};

}  // namespace gmlake::swap
