/// A class that lacks one requirement of the concept, or gets one wrong, does not model it.

#include "gmlake/grow/growth_policy.hpp"

namespace gmlake {
namespace {

struct model {
  bytes chunk_size(growth const&) noexcept;
  bool separate() const noexcept;
};
static_assert(GrowthPolicy<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!GrowthPolicy<immovable>);

struct no_chunk_size : model {
  bytes chunk_size(growth const&) noexcept = delete;
};
struct throwing_chunk_size : model {
  bytes chunk_size(growth const&);
};
struct narrow_chunk_size : model {
  unsigned chunk_size(growth const&) noexcept;
};
struct meddling_chunk_size : model {
  bytes chunk_size(growth&) noexcept;
};
static_assert(!GrowthPolicy<no_chunk_size> && !GrowthPolicy<throwing_chunk_size>);
static_assert(!GrowthPolicy<narrow_chunk_size> && !GrowthPolicy<meddling_chunk_size>);

struct no_separate : model {
  bool separate() const noexcept = delete;
};
struct throwing_separate : model {
  bool separate() const;
};
struct counted_separate : model {
  int separate() const noexcept;
};
static_assert(!GrowthPolicy<no_separate> && !GrowthPolicy<throwing_separate> && !GrowthPolicy<counted_separate>);

}  // namespace
}  // namespace gmlake
