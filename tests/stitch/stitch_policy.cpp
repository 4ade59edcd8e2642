/// A class that lacks one requirement of the concept, or gets one wrong, does not model it.

#include "gmlake/stitch/stitch_policy.hpp"

namespace gmlake {
namespace {

struct model {
  bool stitches(bytes, bool) const noexcept;
  bool reuses(bytes, bytes) const noexcept;
  stitch_choice choose(stitch_candidates, bytes, std::span<extent>) const noexcept;
};
static_assert(StitchPolicy<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!StitchPolicy<immovable>);

// stitches
struct no_stitches : model {
  bool stitches(bytes, bool) const noexcept = delete;
};
struct throwing_stitches : model {
  bool stitches(bytes, bool) const;
};
struct mutable_stitches : model {
  bool stitches(bytes, bool) noexcept;
};
struct counted_stitches : model {
  int stitches(bytes, bool) const noexcept;
};
static_assert(!StitchPolicy<no_stitches> && !StitchPolicy<throwing_stitches>);
static_assert(!StitchPolicy<mutable_stitches> && !StitchPolicy<counted_stitches>);

// reuses
struct no_reuses : model {
  bool reuses(bytes, bytes) const noexcept = delete;
};
struct throwing_reuses : model {
  bool reuses(bytes, bytes) const;
};
struct mutable_reuses : model {
  bool reuses(bytes, bytes) noexcept;
};
struct counted_reuses : model {
  int reuses(bytes, bytes) const noexcept;
};
static_assert(!StitchPolicy<no_reuses> && !StitchPolicy<throwing_reuses>);
static_assert(!StitchPolicy<mutable_reuses> && !StitchPolicy<counted_reuses>);

// choose
struct no_choose : model {
  stitch_choice choose(stitch_candidates, bytes, std::span<extent>) const noexcept = delete;
};
struct throwing_choose : model {
  stitch_choice choose(stitch_candidates, bytes, std::span<extent>) const;
};
struct mutable_choose : model {
  stitch_choice choose(stitch_candidates, bytes, std::span<extent>) noexcept;
};
struct counting_choose : model {
  std::size_t choose(stitch_candidates, bytes, std::span<extent>) const noexcept;
};
static_assert(!StitchPolicy<no_choose> && !StitchPolicy<throwing_choose>);
static_assert(!StitchPolicy<mutable_choose> && !StitchPolicy<counting_choose>);

}  // namespace
}  // namespace gmlake
