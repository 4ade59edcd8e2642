#pragma once
/// The driver's rules, kept and checked: which handles exist, which addresses are reserved, what is mapped where.
///
/// Backends without a driver keep one. Each change has two halves: `check_*` says whether the rules allow it, and
/// acquires what recording it takes; the function without the prefix records it, can't fail, and may be called only
/// straight after its check succeeded. Between the two, the backend acts.
///
/// A broken rule is `invalid_argument`, and the error's `call` names the rule. Four rules are stricter than CUDA's, and
/// catch what can only be a mistake: a mapped handle is not released, no mapping crosses from one reservation into the
/// next, access is not set across a hole, and an unmap has something to unmap. Addresses resolve through a table of one
/// entry a granule for each reservation, in pages made when first mapped: O(1) a lookup, however long the range.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "gmlake/core/alignment.hpp"
#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"

namespace gmlake {

class mapping_ledger {
 public:
  /// A mapping as its range holds it.
  struct mapping {
    address at{};
    bytes size = 0;
    access allowed = access::none;
  };

  /// `granule` is a power of two.
  explicit mapping_ledger(bytes granule) noexcept : granule_(granule), shift_(std::countr_zero(granule)) {}

  [[nodiscard]] bytes granule() const noexcept { return granule_; }
  [[nodiscard]] bytes live_handles() const noexcept { return live_handles_; }
  [[nodiscard]] bytes created() const noexcept { return created_; }  ///< bytes of all handles together
  [[nodiscard]] bytes reservations() const noexcept { return ranges_.size(); }
  [[nodiscard]] bytes reserved() const noexcept { return reserved_; }  ///< bytes of addresses
  [[nodiscard]] bytes mappings() const noexcept { return mappings_; }
  [[nodiscard]] bool idle() const noexcept { return live_handles_ == 0 && ranges_.empty(); }

  [[nodiscard]] result<void> check_size(bytes n, char const* call) const noexcept {
    if (n == 0 || !is_aligned(n, granule_)) return failure(errc::invalid_argument, call);
    return {};
  }

  /// A new handle of n bytes; `note` is the backend's own. Errors: `invalid_argument`, `out_of_host_memory`.
  [[nodiscard]] result<handle> create(bytes n, std::uint64_t note = 0) noexcept {
    if (auto ok = check_size(n, "create: size"); !ok) return failure(ok.error());
    if (free_slot_ == no_slot) {
      try {
        slots_.emplace_back();
      } catch (std::bad_alloc const&) {
        return failure(errc::out_of_host_memory, "create");
      }
      free_slot_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }
    std::uint32_t const index = free_slot_;
    slot& s = slots_[index];
    free_slot_ = s.next_free;
    s = {.size = n, .note = note, .generation = s.generation + 1, .mappings = 0, .next_free = no_slot, .live = true};
    ++live_handles_;
    created_ += n;
    return static_cast<handle>(std::uint64_t{s.generation} << 32 | (index + 1));
  }

  [[nodiscard]] result<void> check_release(handle h) const noexcept {
    slot const* const s = find(h);
    if (s == nullptr) return failure(errc::invalid_argument, "release: unknown handle");
    if (s->mappings != 0) return failure(errc::invalid_argument, "release: still mapped");
    return {};
  }
  void release(handle h) noexcept {
    slot& s = slots_[index_of(h)];
    s.live = false;
    s.next_free = free_slot_;
    free_slot_ = index_of(h);
    --live_handles_;
    created_ -= s.size;
  }

  /// Precondition: h is live.
  [[nodiscard]] bytes size_of(handle h) const noexcept { return slots_[index_of(h)].size; }
  [[nodiscard]] std::uint64_t note_of(handle h) const noexcept { return slots_[index_of(h)].note; }

  [[nodiscard]] result<void> check_reserve(bytes n, bytes alignment) const noexcept {
    if (alignment != 0 && !std::has_single_bit(alignment)) {
      return failure(errc::invalid_argument, "reserve: alignment");
    }
    return check_size(n, "reserve: size");
  }
  /// Records a range that overlaps no other. Errors: `out_of_host_memory`.
  [[nodiscard]] result<void> reserve(address base, bytes n) noexcept {
    try {
      range r{.base = base, .size = n, .pages = {}};
      r.pages.resize((granules(n) + page_granules - 1) / page_granules);
      ranges_.emplace(base, std::move(r));
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "reserve");
    }
    reserved_ += n;
    return {};
  }

  [[nodiscard]] result<void> check_unreserve(address base, bytes n) const noexcept {
    auto const it = ranges_.find(base);
    if (it == ranges_.end()) return failure(errc::invalid_argument, "unreserve: not reserved");
    if (it->second.size != n) return failure(errc::invalid_argument, "unreserve: not the whole range");
    if (it->second.mappings != 0) return failure(errc::invalid_argument, "unreserve: still mapped");
    return {};
  }
  void unreserve(address base, bytes n) noexcept {
    last_ = nullptr;
    ranges_.erase(base);
    reserved_ -= n;
  }

  /// Errors: `invalid_argument`, `out_of_host_memory`.
  [[nodiscard]] result<void> check_map(address va, bytes n, handle h) noexcept;
  void map(address va, bytes n, handle h) noexcept;

  [[nodiscard]] result<void> check_unmap(address va, bytes n) const noexcept {
    static constexpr range_rules rules{.reserved = "unmap: not reserved",
                                       .uncut = "unmap: part of a mapping",
                                       .mapped = "unmap: nothing mapped",
                                       .holes = true};
    return check_whole(va, n, rules);
  }
  void unmap(address va, bytes n) noexcept;

  [[nodiscard]] result<void> check_set_access(address va, bytes n) const noexcept {
    static constexpr range_rules rules{.reserved = "set_access: not reserved",
                                       .uncut = "set_access: part of a mapping",
                                       .mapped = "set_access: a hole",
                                       .holes = false};
    return check_whole(va, n, rules);
  }
  void set_access(address va, bytes n, access a) noexcept {
    visit_range(*find(va, n), va, n, [&](bytes, entry& e) { e.allowed = a; });
  }

  /// Whether all n bytes from va, granules or not, lie in mappings that allow `a`.
  [[nodiscard]] result<void> check_copy(address va, bytes n, access a, char const* call) const noexcept;

  /// Calls visit(mapping) for each mapping of a range that `check_unmap` accepts, in order of address.
  template <std::invocable<mapping> Visit>
  void for_each_mapping(address va, bytes n, Visit visit) const noexcept {
    range& r = *find(va, n);
    visit_range(r, va, n, [&](bytes i, entry& e) {
      visit(mapping{.at = r.base + (i << shift_), .size = slots_[e.owner - 1].size, .allowed = e.allowed});
    });
  }

  template <std::invocable<address, bytes> Visit>
  void for_each_reservation(Visit visit) const noexcept {
    for (auto const& [base, r] : ranges_) visit(base, r.size);
  }

 private:
  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
  static constexpr bytes page_granules = 512;  ///< 1 GiB of 2 MiB granules, in 4 KiB

  struct slot {
    bytes size = 0;
    std::uint64_t note = 0;
    std::uint32_t generation = 0;  ///< tells a handle from the earlier ones of its slot
    std::uint32_t mappings = 0;
    std::uint32_t next_free = no_slot;
    bool live = false;
  };

  /// One granule of a range.
  struct entry {
    std::uint32_t owner = 0;  ///< the slot mapped here, plus one; 0: nothing is
    access allowed = access::none;
    bool first = false;  ///< its mapping begins here; only then does `allowed` count
  };

  struct range {
    address base{};
    bytes size = 0;
    bytes mappings = 0;
    std::vector<std::unique_ptr<entry[]>> pages;

    [[nodiscard]] entry& at(bytes i) noexcept { return pages[i / page_granules][i % page_granules]; }
    [[nodiscard]] entry const& at(bytes i) const noexcept { return pages[i / page_granules][i % page_granules]; }
    [[nodiscard]] entry get(bytes i) const noexcept { return pages[i / page_granules] == nullptr ? entry{} : at(i); }
  };

  /// What a range of whole mappings must be, each with what to say where it is not.
  struct range_rules {
    char const* reserved;
    char const* uncut;
    char const* mapped;
    bool holes;  ///< may lie between the mappings
  };

  [[nodiscard]] bytes granules(bytes n) const noexcept { return n >> shift_; }
  [[nodiscard]] static std::uint32_t index_of(handle h) noexcept {
    return static_cast<std::uint32_t>(to_integer(h)) - 1;
  }
  [[nodiscard]] slot const* find(handle h) const noexcept {
    std::uint32_t const index = index_of(h);
    if (index >= slots_.size()) return nullptr;
    slot const& s = slots_[index];
    return s.live && s.generation == to_integer(h) >> 32 ? &s : nullptr;
  }

  /// The reservation that holds all of [va, va + n). Calls come in runs over one range, hence the memory of the last.
  [[nodiscard]] range* find(address va, bytes n) const noexcept {
    auto const holds = [&](range const& r) {
      return va >= r.base && va - r.base < r.size && n <= r.size - (va - r.base);
    };
    if (last_ != nullptr && holds(*last_)) return last_;
    auto it = ranges_.upper_bound(va);
    if (it == ranges_.begin()) return nullptr;
    --it;
    if (!holds(it->second)) return nullptr;
    last_ = &it->second;
    return last_;
  }

  /// Calls visit(i, entry) for the first granule of each mapping that begins in the range.
  template <std::invocable<bytes, entry&> Visit>
  void visit_range(range& r, address va, bytes n, Visit visit) const noexcept {
    for (bytes i = granules(va - r.base), end = i + granules(n); i < end;) {
      if (r.pages[i / page_granules] == nullptr) {
        i = next_page(i);
      } else if (entry& e = r.at(i); e.owner == 0) {
        ++i;
      } else {
        bytes const covered = granules(slots_[e.owner - 1].size);
        visit(i, e);
        i += covered;
      }
    }
  }
  [[nodiscard]] static constexpr bytes next_page(bytes i) noexcept { return (i / page_granules + 1) * page_granules; }

  [[nodiscard]] result<void> check_whole(address va, bytes n, range_rules const& rules) const noexcept;

  bytes granule_;
  int shift_;
  bytes live_handles_ = 0;
  bytes created_ = 0;
  bytes reserved_ = 0;
  bytes mappings_ = 0;
  std::uint32_t free_slot_ = no_slot;
  std::vector<slot> slots_;
  mutable std::map<address, range> ranges_;  ///< by base
  mutable range* last_ = nullptr;
};

inline result<void> mapping_ledger::check_map(address va, bytes n, handle h) noexcept {
  slot const* const s = find(h);
  if (s == nullptr) return failure(errc::invalid_argument, "map: unknown handle");
  if (s->size != n) return failure(errc::invalid_argument, "map: not the whole handle");
  range* const r = find(va, n);
  if (r == nullptr) return failure(errc::invalid_argument, "map: not reserved");
  if (!is_aligned(va - r->base, granule_)) return failure(errc::invalid_argument, "map: alignment");

  for (bytes i = granules(va - r->base), end = i + granules(n); i != end; ++i) {
    auto& page = r->pages[i / page_granules];
    if (page == nullptr) {
      bytes const first = i / page_granules * page_granules;
      page.reset(new (std::nothrow) entry[std::min(page_granules, granules(r->size) - first)]);
      if (page == nullptr) return failure(errc::out_of_host_memory, "map");
    }
    if (r->at(i).owner != 0) return failure(errc::invalid_argument, "map: overlaps a mapping");
  }
  return {};
}

inline void mapping_ledger::map(address va, bytes n, handle h) noexcept {
  range& r = *find(va, n);
  bytes const first = granules(va - r.base);
  for (bytes i = first, end = first + granules(n); i != end; ++i) {
    r.at(i) = {.owner = index_of(h) + 1, .allowed = access::none, .first = i == first};
  }
  ++slots_[index_of(h)].mappings;
  ++r.mappings;
  ++mappings_;
}

inline void mapping_ledger::unmap(address va, bytes n) noexcept {
  range& r = *find(va, n);
  visit_range(r, va, n, [&](bytes first, entry& e) {
    slot& s = slots_[e.owner - 1];
    --s.mappings;
    --r.mappings;
    --mappings_;
    for (bytes i = first, end = first + granules(s.size); i != end; ++i) r.at(i) = {};
  });
}

inline result<void> mapping_ledger::check_whole(address va, bytes n, range_rules const& rules) const noexcept {
  if (n == 0 || !is_aligned(n, granule_)) return failure(errc::invalid_argument, rules.uncut);
  range const* const r = find(va, n);
  if (r == nullptr) return failure(errc::invalid_argument, rules.reserved);
  if (!is_aligned(va - r->base, granule_)) return failure(errc::invalid_argument, rules.uncut);

  bytes i = granules(va - r->base);
  bytes const end = i + granules(n);
  bool mapped = false;
  while (i < end) {
    bool const hole = r->get(i).owner == 0;
    if (hole && !rules.holes) return failure(errc::invalid_argument, rules.mapped);
    if (hole) {
      i = r->pages[i / page_granules] == nullptr ? std::min(next_page(i), end) : i + 1;
      continue;
    }
    entry const& e = r->at(i);
    if (!e.first) return failure(errc::invalid_argument, rules.uncut);
    mapped = true;
    i += granules(slots_[e.owner - 1].size);
  }
  if (i != end) return failure(errc::invalid_argument, rules.uncut);
  if (!mapped) return failure(errc::invalid_argument, rules.mapped);
  return {};
}

inline result<void> mapping_ledger::check_copy(address va, bytes n, access a, char const* call) const noexcept {
  if (n == 0) return {};
  range const* const r = find(va, n);
  if (r == nullptr) return failure(errc::invalid_argument, call);
  access allowed = access::none;
  bytes i = granules(va - r->base);
  bytes const last = granules(va - r->base + n - 1);
  while (i > 0 && r->get(i).owner != 0 && !r->at(i).first) --i;
  for (; i <= last; ++i) {
    entry const e = r->get(i);
    if (e.owner == 0) return failure(errc::invalid_argument, call);
    if (e.first) allowed = e.allowed;
    if (allowed < a) return failure(errc::invalid_argument, call);
  }
  return {};
}

}  // namespace gmlake
