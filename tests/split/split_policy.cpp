/// A class that lacks one requirement of the concept, or gets one wrong, does not model it.

#include "gmlake/split/split_policy.hpp"

namespace gmlake {
namespace {

struct model {
  static bytes round(bytes, bytes) noexcept;
  void insert(block&) noexcept;
  void erase(block&) noexcept;
  void resize(block&, address, bytes) noexcept;
  block* find(bytes) const noexcept;
  block* next_fit(block&, bytes) const noexcept;
  block* largest() const noexcept;
  block* smaller(block&) const noexcept;
};
static_assert(SplitPolicy<model>);

struct unbuildable : model {
  explicit unbuildable(int);
};
static_assert(!SplitPolicy<unbuildable>);

// round
struct no_round : model {
  static bytes round(bytes, bytes) noexcept = delete;
};
struct throwing_round : model {
  static bytes round(bytes, bytes);
};
struct member_round : model {
  bytes round(bytes, bytes) noexcept;
};
struct narrow_round : model {
  static unsigned round(bytes, bytes) noexcept;
};
static_assert(!SplitPolicy<no_round> && !SplitPolicy<throwing_round>);
static_assert(!SplitPolicy<member_round> && !SplitPolicy<narrow_round>);

// insert, erase
struct no_insert : model {
  void insert(block&) noexcept = delete;
};
struct throwing_insert : model {
  void insert(block&);
};
struct failing_insert : model {
  bool insert(block&) noexcept;
};
struct no_erase : model {
  void erase(block&) noexcept = delete;
};
struct throwing_erase : model {
  void erase(block&);
};
struct failing_erase : model {
  bool erase(block&) noexcept;
};
static_assert(!SplitPolicy<no_insert> && !SplitPolicy<throwing_insert> && !SplitPolicy<failing_insert>);
static_assert(!SplitPolicy<no_erase> && !SplitPolicy<throwing_erase> && !SplitPolicy<failing_erase>);

// resize
struct no_resize : model {
  void resize(block&, address, bytes) noexcept = delete;
};
struct throwing_resize : model {
  void resize(block&, address, bytes);
};
struct failing_resize : model {
  bool resize(block&, address, bytes) noexcept;
};
struct fixed_resize : model {
  void resize(block&, bytes) noexcept;
};
static_assert(!SplitPolicy<no_resize> && !SplitPolicy<throwing_resize>);
static_assert(!SplitPolicy<failing_resize> && !SplitPolicy<fixed_resize>);

// find
struct no_find : model {
  block* find(bytes) const noexcept = delete;
};
struct throwing_find : model {
  block* find(bytes) const;
};
struct mutable_find : model {
  block* find(bytes) noexcept;
};
struct constant_find : model {
  block const* find(bytes) const noexcept;
};
static_assert(!SplitPolicy<no_find> && !SplitPolicy<throwing_find>);
static_assert(!SplitPolicy<mutable_find> && !SplitPolicy<constant_find>);

// next_fit
struct no_next_fit : model {
  block* next_fit(block&, bytes) const noexcept = delete;
};
struct throwing_next_fit : model {
  block* next_fit(block&, bytes) const;
};
struct mutable_next_fit : model {
  block* next_fit(block&, bytes) noexcept;
};
struct constant_next_fit : model {
  block const* next_fit(block&, bytes) const noexcept;
};
static_assert(!SplitPolicy<no_next_fit> && !SplitPolicy<throwing_next_fit>);
static_assert(!SplitPolicy<mutable_next_fit> && !SplitPolicy<constant_next_fit>);

// largest, smaller
struct no_largest : model {
  block* largest() const noexcept = delete;
};
struct throwing_largest : model {
  block* largest() const;
};
struct mutable_largest : model {
  block* largest() noexcept;
};
struct sized_largest : model {
  bytes largest() const noexcept;
};
static_assert(!SplitPolicy<no_largest> && !SplitPolicy<throwing_largest>);
static_assert(!SplitPolicy<mutable_largest> && !SplitPolicy<sized_largest>);

struct no_smaller : model {
  block* smaller(block&) const noexcept = delete;
};
struct throwing_smaller : model {
  block* smaller(block&) const;
};
struct mutable_smaller : model {
  block* smaller(block&) noexcept;
};
struct constant_smaller : model {
  block const* smaller(block&) const noexcept;
};
static_assert(!SplitPolicy<no_smaller> && !SplitPolicy<throwing_smaller>);
static_assert(!SplitPolicy<mutable_smaller> && !SplitPolicy<constant_smaller>);

}  // namespace
}  // namespace gmlake
