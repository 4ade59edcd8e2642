#pragma once
/// The block whose next use is farthest leaves first, as far as a schedule tells (Belady, IBM Systems Journal 5, 1966);
/// before those, blocks of which none is known, the least recently used first.

#include <tuple>

#include "gmlake/swap/victim_policy.hpp"

namespace gmlake::swap {

class farthest_use {
 public:
  void insert(page& p) noexcept { all_.insert(p); }
  void erase(page& p) noexcept { all_.erase(set::s_iterator_to(p)); }
  [[nodiscard]] page* next() const noexcept { return all_.empty() ? nullptr : const_cast<page*>(&*all_.begin()); }

 private:
  struct sooner {
    bool operator()(page const& a, page const& b) const noexcept {
      return std::tuple(a.priority, b.next_use, a.last_use, a.serial) <
             std::tuple(b.priority, a.next_use, b.last_use, b.serial);
    }
  };
  using set = hooked_set<page, &page::by_next_use, sooner>;
  set all_;
};
static_assert(VictimPolicy<farthest_use>);

}  // namespace gmlake::swap
