#pragma once
/// Values on disjoint intervals of the integers: what tests keep their own account of memory in.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace gmlake::test {

template <class T>
class interval_map {
 public:
  using point = std::uint64_t;

  [[nodiscard]] bool overlaps(point begin, point end) const {
    auto const i = first(begin);
    return i != values_.end() && i->first < end;
  }

  /// Precondition: no overlap; begin < end.
  void insert(point begin, point end, T value) { values_.emplace(begin, entry{end, std::move(value)}); }

  /// Takes [begin, end) out; what reaches beyond on either side stays there.
  void cut(point begin, point end) {
    for (auto i = first(begin); i != values_.end() && i->first < end;) {
      point const b = i->first;
      entry e = std::move(i->second);
      i = values_.erase(i);
      if (b < begin) values_.emplace(b, entry{begin, e.value});
      if (e.end > end) values_.emplace(end, entry{e.end, std::move(e.value)});
    }
  }

  /// Calls f(value) for each interval that touches [begin, end).
  template <class F>
  void visit(point begin, point end, F&& f) const {
    for (auto i = first(begin); i != values_.end() && i->first < end; ++i) f(i->second.value);
  }

  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  struct entry {
    point end;
    T value;
  };

  /// The first interval that ends beyond `begin`.
  [[nodiscard]] auto first(point begin) const {
    auto i = values_.upper_bound(begin);
    if (i != values_.begin() && std::prev(i)->second.end > begin) --i;
    return i;
  }
  [[nodiscard]] auto first(point begin) {
    auto i = values_.upper_bound(begin);
    if (i != values_.begin() && std::prev(i)->second.end > begin) --i;
    return i;
  }

  std::map<point, entry> values_;
};

}  // namespace gmlake::test
