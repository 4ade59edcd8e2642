/// A class that lacks one requirement of the concept, or gets one wrong, does not model it.

#include "gmlake/evict/eviction_policy.hpp"

namespace gmlake {
namespace {

struct model {
  void insert(stitch&) noexcept;
  void erase(stitch&) noexcept;
  stitch* victim(idle_stitches const&) const noexcept;
  stitch* next() const noexcept;
};
static_assert(EvictionPolicy<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!EvictionPolicy<immovable>);

// insert, erase
struct no_insert : model {
  void insert(stitch&) noexcept = delete;
};
struct throwing_insert : model {
  void insert(stitch&);
};
struct failing_insert : model {
  bool insert(stitch&) noexcept;
};
struct no_erase : model {
  void erase(stitch&) noexcept = delete;
};
struct throwing_erase : model {
  void erase(stitch&);
};
struct failing_erase : model {
  bool erase(stitch&) noexcept;
};
static_assert(!EvictionPolicy<no_insert> && !EvictionPolicy<throwing_insert> && !EvictionPolicy<failing_insert>);
static_assert(!EvictionPolicy<no_erase> && !EvictionPolicy<throwing_erase> && !EvictionPolicy<failing_erase>);

// victim
struct no_victim : model {
  stitch* victim(idle_stitches const&) const noexcept = delete;
};
struct throwing_victim : model {
  stitch* victim(idle_stitches const&) const;
};
struct mutable_victim : model {
  stitch* victim(idle_stitches const&) noexcept;
};
struct constant_victim : model {
  stitch const* victim(idle_stitches const&) const noexcept;
};
struct meddling_victim : model {
  stitch* victim(idle_stitches&) const noexcept;
};
static_assert(!EvictionPolicy<no_victim> && !EvictionPolicy<throwing_victim> && !EvictionPolicy<mutable_victim>);
static_assert(!EvictionPolicy<constant_victim> && !EvictionPolicy<meddling_victim>);

// next
struct no_next : model {
  stitch* next() const noexcept = delete;
};
struct throwing_next : model {
  stitch* next() const;
};
struct mutable_next : model {
  stitch* next() noexcept;
};
struct constant_next : model {
  stitch const* next() const noexcept;
};
static_assert(!EvictionPolicy<no_next> && !EvictionPolicy<throwing_next>);
static_assert(!EvictionPolicy<mutable_next> && !EvictionPolicy<constant_next>);

}  // namespace
}  // namespace gmlake
