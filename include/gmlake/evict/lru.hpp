#pragma once
/// The least recently used goes first, while the idle stitches exceed any of three budgets. GMLake's StitchFree.

#include "gmlake/evict/eviction_policy.hpp"

namespace gmlake {

/// Budgets for all idle stitches together. What they cost is page tables and the time to look through them, not memory,
/// so they are generous: the whole of an H200 in 2 MiB granules takes 70,000 mappings.
struct lru_options {
  std::size_t stitches = 4096;
  std::size_t mappings = 65536;
  bytes addresses = 4_TiB;
};

class lru {
 public:
  explicit lru(lru_options o = {}) noexcept : options_(o) {}

  void insert(stitch& s) noexcept { idle_.push_back(s); }
  void erase(stitch& s) noexcept { idle_.erase(list::s_iterator_to(s)); }

  [[nodiscard]] stitch* victim(idle_stitches const& held) const noexcept {
    bool const within =
        held.count <= options_.stitches && held.mappings <= options_.mappings && held.addresses <= options_.addresses;
    return within ? nullptr : next();
  }
  [[nodiscard]] stitch* next() const noexcept { return idle_.empty() ? nullptr : const_cast<stitch*>(&idle_.front()); }

 private:
  using list = hooked_list<stitch, &stitch::by_use>;
  lru_options options_;
  list idle_;
};
static_assert(EvictionPolicy<lru>);

}  // namespace gmlake
