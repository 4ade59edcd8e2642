#pragma once
/// The block that was accessed least recently leaves first, whatever a schedule says.

#include <array>
#include <cstddef>

#include "gmlake/swap/victim_policy.hpp"

namespace gmlake::swap {

class least_recent {
 public:
  /// Higher priorities count as the highest.
  static constexpr std::size_t priorities = 8;

  void insert(page& p) noexcept { of(p).push_back(p); }
  void erase(page& p) noexcept { of(p).erase(list::s_iterator_to(p)); }
  [[nodiscard]] page* next() noexcept {
    for (list& l : by_priority_) {
      if (!l.empty()) return &l.front();
    }
    return nullptr;
  }

 private:
  using list = hooked_list<page, &page::by_use>;
  [[nodiscard]] list& of(page const& p) noexcept {
    return by_priority_[p.priority < priorities ? p.priority : priorities - 1];
  }

  std::array<list, priorities> by_priority_;
};
static_assert(VictimPolicy<least_recent>);

}  // namespace gmlake::swap
