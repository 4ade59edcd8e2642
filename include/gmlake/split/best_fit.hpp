#pragma once
/// Best fit with coalescing (BFC): the smallest block that suffices, and of equals the one at the lowest address.
/// Blocks are kept in size classes, each a tree by size and address, so that the choice is exact and the trees stay
/// small.

#include <array>

#include "gmlake/core/alignment.hpp"
#include "gmlake/split/size_classes.hpp"
#include "gmlake/split/split_policy.hpp"

namespace gmlake {

class best_fit {
 public:
  [[nodiscard]] static bytes round(bytes n, bytes) noexcept { return align_up(n, block_alignment); }

  void insert(block& b) noexcept { insert(b, size_classes::of(b.size)); }
  void erase(block& b) noexcept {
    unsigned const c = size_classes::of(b.size);
    erase(b, c, is_alone(trees_[c], b));
  }

  void resize(block& b, address begin, bytes size) noexcept {
    unsigned const c = size_classes::of(b.size);
    unsigned const then = size_classes::of(size);
    bool const alone = is_alone(trees_[c], b);
    bool const moves = c != then || !(alone || stays(trees_[c], b, {size, begin}));
    if (moves) erase(b, c, alone);
    b.begin = begin;
    b.size = size;
    if (moves) insert(b, then);
  }

  [[nodiscard]] block* find(bytes n) const noexcept {
    unsigned const c = size_classes::of(n);
    if (auto const fit = trees_[c].lower_bound(n, by_size{}); fit != trees_[c].end()) return node(fit);
    return first(used_.at_or_above(c + 1));
  }

  [[nodiscard]] block* next_fit(block& b, bytes) const noexcept {
    unsigned const c = size_classes::of(b.size);
    auto after = tree::s_iterator_to(static_cast<block const&>(b));
    if (++after != trees_[c].end()) return node(after);
    return first(used_.at_or_above(c + 1));
  }

  [[nodiscard]] block* largest() const noexcept { return last(used_.below(size_classes::count)); }

  [[nodiscard]] block* smaller(block& b) const noexcept {
    unsigned const c = size_classes::of(b.size);
    auto at = tree::s_iterator_to(static_cast<block const&>(b));
    if (at != trees_[c].begin()) return node(--at);
    return last(used_.below(c));
  }

 private:
  /// What blocks are ordered by.
  struct rank {
    bytes size;
    address begin;
    [[nodiscard]] bool operator<(rank const& o) const noexcept {
      return size != o.size ? size < o.size : begin < o.begin;
    }
  };
  [[nodiscard]] static rank rank_of(block const& b) noexcept { return {b.size, b.begin}; }

  struct by_size {
    [[nodiscard]] bool operator()(block const& a, block const& b) const noexcept { return rank_of(a) < rank_of(b); }
    [[nodiscard]] bool operator()(block const& a, bytes n) const noexcept { return a.size < n; }
    [[nodiscard]] bool operator()(bytes n, block const& b) const noexcept { return n < b.size; }
  };
  using tree = hooked_set<block, &block::by_size, by_size>;

  void insert(block& b, unsigned c) noexcept {
    tree& t = trees_[c];
    if (used_.has(c)) t.insert(b);
    else t.insert_before(t.end(), b);
    used_.set(c);
  }
  void erase(block& b, unsigned c, bool alone) noexcept {
    if (alone) {
      trees_[c].clear();  // nothing to rebalance
      used_.clear(c);
    } else {
      trees_[c].erase(tree::s_iterator_to(b));
    }
  }
  /// As most blocks are in their class.
  [[nodiscard]] static bool is_alone(tree const& in, block const& b) noexcept {
    return &*in.begin() == &b && &*in.rbegin() == &b;
  }

  [[nodiscard]] static block* node(tree::const_iterator const& i) noexcept { return const_cast<block*>(&*i); }
  [[nodiscard]] block* first(unsigned c) const noexcept {
    return c == size_classes::none ? nullptr : node(trees_[c].begin());
  }
  [[nodiscard]] block* last(unsigned c) const noexcept {
    return c == size_classes::none ? nullptr : node(--trees_[c].end());
  }

  /// Whether b would keep its place between its neighbours in the tree.
  [[nodiscard]] static bool stays(tree const& in, block const& b, rank moved) noexcept {
    auto const at = tree::s_iterator_to(b);
    if (at != in.begin() && !(rank_of(*std::prev(at)) < moved)) return false;
    auto const after = std::next(at);
    return after == in.end() || moved < rank_of(*after);
  }

  std::array<tree, size_classes::count> trees_;
  size_classes used_;
};
static_assert(SplitPolicy<best_fit>);

}  // namespace gmlake
