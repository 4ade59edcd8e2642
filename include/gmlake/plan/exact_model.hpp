#pragma once
/// A problem as the exact search works on it: lengths in units (the greatest that all sizes and offsets are multiples
/// of), time as sections, conflicts as lists. Immutable; offsets mean nothing here.
///
/// A section is a set of buffers that live at one instant; those that are part of another section are left out. A
/// buffer lives in one range of sections, or in two where it wraps.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "gmlake/plan/lifespans.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

class exact_model {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// Conflicts are kept in pairs: 64 MiB of them at most.
  static constexpr std::size_t most_buffers = 4096;
  /// In units. Sums of two lengths stay representable.
  static constexpr bytes most_units = bytes{1} << 30;

  struct item {
    std::uint32_t size = 0;
    std::uint32_t alignment = 1;
    std::uint32_t fixed = none;
    std::array<span, 2> sections{};  ///< the second is empty for all that don't wrap
    /// The sections that it joins: those from its first to the last that conflicts with it.
    std::array<span, 2> reach{};
  };

  /// Of a valid problem (validate.hpp) with at most `most_buffers`. O(n²).
  explicit exact_model(problem const& p) : lives_(p) {
    for (buffer const& b : p.buffers) {
      unit_ = std::gcd(unit_, b.size);
      if (b.alignment > 1) unit_ = std::gcd(unit_, b.alignment);
      if (b.fixed) unit_ = std::gcd(unit_, *b.fixed);
    }
    unit_ = std::max<bytes>(unit_, 1);
    find_sections();
    items_.reserve(p.buffers.size());
    for (std::size_t i = 0; i < p.buffers.size(); ++i) items_.push_back(of(p, i));
    ring_ = p.period != 0 && lives_.streams_matter();
    loads_.assign(sections_.size(), 0);
    for (item const& x : items_) {
      for (span const s : x.sections) {
        for (std::uint32_t k = s.lower; k < s.upper; ++k) loads_[k] += x.size;
      }
    }
    find_conflicts(p);
  }

  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bytes unit() const noexcept { return unit_; }
  [[nodiscard]] item const& operator[](std::size_t i) const noexcept { return items_[i]; }
  [[nodiscard]] std::uint32_t sections() const noexcept { return static_cast<std::uint32_t>(sections_.size()); }
  /// Whether conflicts reach around the end of the period, so that no cut between sections parts buffers.
  [[nodiscard]] bool ring() const noexcept { return ring_; }
  /// What lives in section k, in units.
  [[nodiscard]] std::uint64_t load(std::uint32_t k) const noexcept { return loads_[k]; }
  [[nodiscard]] std::span<std::uint32_t const> conflicts(std::size_t i) const noexcept {
    return {conflicts_.data() + from_[i], from_[i + 1] - from_[i]};
  }
  /// Whether exchanging the two in a solution gives another.
  [[nodiscard]] bool twins(problem const& p, std::size_t i, std::size_t j) const {
    item const& a = items_[i];
    item const& b = items_[j];
    bool const alike = a.size == b.size && a.alignment == b.alignment && a.fixed == none && b.fixed == none;
    return alike && p.buffers[i].lower == p.buffers[j].lower && p.buffers[i].upper == p.buffers[j].upper &&
           p.buffers[i].stream == p.buffers[j].stream;
  }

 private:
  /// A set is no part of another where a life began since the last such, and another ends after it.
  void find_sections() {
    std::vector<bool> begins(lives_.end() + 1u);
    std::vector<bool> ends(lives_.end() + 1u);
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      for (span const s : lives_.own(i)) {
        if (!s.empty()) begins[s.lower] = ends[s.upper] = true;
      }
    }
    bool grown = false;
    for (std::uint32_t r = 0; r < lives_.end(); ++r) {
      grown = grown || begins[r];
      if (!grown || !ends[r + 1]) continue;
      sections_.push_back(r);
      grown = false;
    }
  }

  [[nodiscard]] std::uint32_t section_from(std::uint32_t rank) const noexcept {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(sections_, rank) - sections_.begin());
  }

  [[nodiscard]] item of(problem const& p, std::size_t i) const {
    buffer const& b = p.buffers[i];
    auto const in_units = [this](bytes n) { return static_cast<std::uint32_t>(std::min(n / unit_, most_units)); };
    item x{.size = in_units(b.size)};
    if (b.alignment > 1) x.alignment = in_units(b.alignment);
    if (b.fixed) x.fixed = in_units(*b.fixed);
    for (std::size_t k = 0; k < 2; ++k) {
      span const own = lives_.own(i)[k];
      if (own.empty()) continue;
      x.sections[k] = x.reach[k] = {section_from(own.lower), section_from(own.upper)};
    }
    if (span const wide = lives_.wide(i)[0]; p.period == 0 && lives_.streams_matter()) {
      // Whom it conflicts with later is first found in the section at the wide span's last rank, or in the next.
      x.reach[0].upper = std::max(x.reach[0].upper, std::min(section_from(wide.upper - 1) + 1, sections()));
    }
    return x;
  }

  void find_conflicts(problem const& p) {
    from_.reserve(size() + 1);
    from_.push_back(0);
    for (std::size_t i = 0; i < size(); ++i) {
      for (std::size_t j = 0; j < size(); ++j) {
        bool const own = p.buffers[i].stream == p.buffers[j].stream;
        if (i != j && lifespans::meet(own ? lives_.own(i) : lives_.wide(i), lives_.own(j))) {
          conflicts_.push_back(static_cast<std::uint32_t>(j));
        }
      }
      from_.push_back(conflicts_.size());
    }
  }

  lifespans lives_;
  bytes unit_ = 0;
  std::vector<std::uint32_t> sections_;  ///< a rank in each
  std::vector<item> items_;
  bool ring_ = false;
  std::vector<std::uint64_t> loads_;
  std::vector<std::uint32_t> conflicts_;
  std::vector<std::size_t> from_;  ///< by buffer: the first of its conflicts
};

}  // namespace gmlake::plan
