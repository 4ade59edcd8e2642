#pragma once
/// The block whose next use is farthest leaves first, as far as a schedule tells (Belady, IBM Systems Journal 5, 1966);
/// before those, blocks of which none is known, the least recently used first.
///
/// Pages are put in order when somebody has to leave: where everything goes by schedule, nobody does.

#include <tuple>

#include "gmlake/swap/victim_policy.hpp"

namespace gmlake::swap {

class farthest_use {
 public:
  void insert(page& p) noexcept {
    p.ranked = false;
    fresh_.push_back(p);
  }
  void erase(page& p) noexcept {
    if (p.ranked) ranked_.erase(set::s_iterator_to(p));
    else fresh_.erase(list::s_iterator_to(p));
  }
  [[nodiscard]] page* next() noexcept {
    while (!fresh_.empty()) {
      page& p = fresh_.front();
      fresh_.pop_front();
      ranked_.insert(p);
      p.ranked = true;
    }
    return ranked_.empty() ? nullptr : &*ranked_.begin();
  }

 private:
  struct sooner {
    bool operator()(page const& a, page const& b) const noexcept {
      return std::tuple(a.priority, b.next_use, a.last_use, a.serial) <
             std::tuple(b.priority, a.next_use, b.last_use, b.serial);
    }
  };
  using set = hooked_set<page, &page::by_next_use, sooner>;
  using list = hooked_list<page, &page::by_use>;
  list fresh_;
  set ranked_;
};
static_assert(VictimPolicy<farthest_use>);

}  // namespace gmlake::swap
