#pragma once
/// The blocks in an arena that keep to no plan: those that nobody planned, those not freed when they should have been,
/// and memory that another stream still uses. By address; a block is told from another by where it begins.

#include <algorithm>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/slab.hpp"
#include "gmlake/lake/block.hpp"

namespace gmlake {

struct stray {
  address at{};
  bytes size = 0;
  bytes requested = 0;
  stream_index on = 0;
  bool live = true;          ///< false: freed, but what is in `stamp` and `recorded` may still use it
  std::uint64_t number = 0;  ///< that whoever follows a plan has given it
  tick stamp = 0;            ///< of its free, on `on`
  use* recorded = nullptr;   ///< other streams' uses
  set_hook by_address;

  [[nodiscard]] address end() const noexcept { return at + size; }
};

class strays {
 public:
  strays() noexcept = default;
  strays(strays const&) = delete;
  strays& operator=(strays const&) = delete;
  ~strays() { clear(); }
  void clear() noexcept {
    while (!all_.empty()) erase(*all_.begin());
  }

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] bool reserve_one() noexcept { return nodes_.reserve(1); }
  [[nodiscard]] bool reserve_use() noexcept { return uses_.reserve(1); }

  /// Precondition: reserved; nothing overlaps.
  stray& insert(address at, bytes size, bytes requested, stream_index on) noexcept {
    stray& s = nodes_.acquire();
    s.at = at;
    s.size = size;
    s.requested = requested;
    s.on = on;
    all_.insert(s);
    return s;
  }

  void erase(stray& s) noexcept {
    while (use* const u = s.recorded) {
      s.recorded = u->next;
      uses_.release(*u);
    }
    all_.erase(index::s_iterator_to(s));
    nodes_.release(s);
  }

  [[nodiscard]] stray* find(address at) noexcept {
    auto const found = all_.find(at, by_begin{});
    return found != all_.end() ? &*found : nullptr;
  }

  [[nodiscard]] stray const* find(address at) const noexcept {
    auto const found = all_.find(at, by_begin{});
    return found != all_.end() ? &*found : nullptr;
  }

  /// The first that overlaps [at, at + n); null where none does.
  [[nodiscard]] stray* overlapping(address at, bytes n) noexcept {
    auto next = all_.upper_bound(at, by_begin{});
    if (next != all_.begin()) {
      auto const before = std::prev(next);
      if (before->end() > at) return &*before;
    }
    return next != all_.end() && next->at < at + n ? &*next : nullptr;
  }

  /// Another stream uses it too. Precondition: `reserve_use`.
  void record(stray& s, stream_index on) noexcept {
    for (use const* u = s.recorded; u != nullptr; u = u->next) {
      if (u->on == on) return;
    }
    use& u = uses_.acquire();
    u.on = on;
    u.next = s.recorded;
    s.recorded = &u;
  }

  /// Calls `f(stray&)` for each, by address; `f` may erase the one that it is given.
  template <class F>
  void for_each(F&& f) {
    for (auto i = all_.begin(); i != all_.end();) f(*i++);
  }
  template <class F>
  void for_each(F&& f) const {
    for (stray const& s : all_) f(s);
  }

 private:
  struct by_begin {
    [[nodiscard]] bool operator()(stray const& a, stray const& b) const noexcept { return a.at < b.at; }
    [[nodiscard]] bool operator()(stray const& a, address b) const noexcept { return a.at < b; }
    [[nodiscard]] bool operator()(address a, stray const& b) const noexcept { return a < b.at; }
  };
  using index = hooked_set<stray, &stray::by_address, by_begin>;

  slab<stray> nodes_;
  slab<use> uses_;
  index all_;
};

}  // namespace gmlake
