#pragma once
/// Two-level segregated fit (Masmano, Ripoll, Crespo, Real: "TLSF", ECRTS 2004): a list a size class, the last freed
/// first. Every operation takes constant time; the block found may be a class larger than the best, so that up to 1/16
/// of it can be lost where `find` has to round up.

#include <array>

#include "gmlake/core/alignment.hpp"
#include "gmlake/split/size_classes.hpp"
#include "gmlake/split/split_policy.hpp"

namespace gmlake {

class tlsf {
 public:
  [[nodiscard]] static bytes round(bytes n, bytes) noexcept { return align_up(n, block_alignment); }

  void insert(block& b) noexcept {
    unsigned const c = size_classes::of(b.size);
    lists_[c].push_front(b);
    used_.set(c);
  }

  void erase(block& b) noexcept {
    unsigned const c = size_classes::of(b.size);
    lists_[c].erase(list::s_iterator_to(b));
    if (lists_[c].empty()) used_.clear(c);
  }

  void resize(block& b, address begin, bytes size) noexcept {
    // One that has grown comes first, so that whoever made it grow finds it.
    bool const moves = size > b.size || size_classes::of(b.size) != size_classes::of(size);
    if (moves) erase(b);
    b.begin = begin;
    b.size = size;
    if (moves) insert(b);
  }

  /// The head of the first class that surely fits; failing that, of the request's own class, if it happens to.
  [[nodiscard]] block* find(bytes n) const noexcept {
    if (block* const fit = first(used_.at_or_above(size_classes::all_fit(n)))) return fit;
    list const& own = lists_[size_classes::of(n)];
    return own.empty() || own.front().size < n ? nullptr : const_cast<block*>(&own.front());
  }

  [[nodiscard]] block* next_fit(block& b, bytes n) const noexcept {
    unsigned const c = size_classes::of(b.size);
    auto after = list::s_iterator_to(static_cast<block const&>(b));
    while (++after != lists_[c].end()) {
      if (after->size >= n) return const_cast<block*>(&*after);
    }
    return c < size_classes::all_fit(n) ? nullptr : first(used_.at_or_above(c + 1));
  }

  [[nodiscard]] block* largest() const noexcept { return first(used_.below(size_classes::count)); }

  [[nodiscard]] block* smaller(block& b) const noexcept {
    unsigned const c = size_classes::of(b.size);
    auto after = list::s_iterator_to(static_cast<block const&>(b));
    if (++after != lists_[c].end()) return const_cast<block*>(&*after);
    return first(used_.below(c));
  }

 private:
  using list = hooked_list<block, &block::in_list>;

  [[nodiscard]] block* first(unsigned c) const noexcept {
    return c == size_classes::none ? nullptr : const_cast<block*>(&lists_[c].front());
  }

  std::array<list, size_classes::count> lists_;
  size_classes used_;
};
static_assert(SplitPolicy<tlsf>);

}  // namespace gmlake
