/// A class that lacks one requirement of the concept, or gets one wrong, does not model it; one that models it in its
/// own way does what the suite asks.

#include "gmlake/stream/wait_policy.hpp"

#include "tests/stream/wait_policy_suite.hpp"

namespace gmlake {
namespace {

struct model {
  [[nodiscard]] bool before_stitching() const noexcept { return true; }
  [[nodiscard]] bool before_growing() const noexcept { return true; }
};
static_assert(WaitPolicy<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!WaitPolicy<immovable>);

struct no_before_stitching : model {
  bool before_stitching() const noexcept = delete;
};
struct throwing_before_stitching : model {
  bool before_stitching() const;
};
struct mutable_before_stitching : model {
  bool before_stitching() noexcept;
};
struct counted_before_stitching : model {
  int before_stitching() const noexcept;
};
static_assert(!WaitPolicy<no_before_stitching> && !WaitPolicy<throwing_before_stitching>);
static_assert(!WaitPolicy<mutable_before_stitching> && !WaitPolicy<counted_before_stitching>);

struct no_before_growing : model {
  bool before_growing() const noexcept = delete;
};
struct throwing_before_growing : model {
  bool before_growing() const;
};
struct mutable_before_growing : model {
  bool before_growing() noexcept;
};
struct counted_before_growing : model {
  int before_growing() const noexcept;
};
static_assert(!WaitPolicy<no_before_growing> && !WaitPolicy<throwing_before_growing>);
static_assert(!WaitPolicy<mutable_before_growing> && !WaitPolicy<counted_before_growing>);

}  // namespace

namespace test {
using wait_before_stitching = model;
TEST_CASE_TEMPLATE_INVOKE(wait_policy, wait_before_stitching);
}  // namespace test

}  // namespace gmlake
