#pragma once
/// Improves a packing by changing the order (squeaky wheel optimisation: Joslin & Clements, JAIR 10, 1999): packs
/// lowest offset first under a ceiling just below the best height, and the first buffer that does not fit beneath it
/// gets a higher priority for the next try. Several orders take turns under the common ceiling. A try ends at the first
/// buffer that does not fit, so that most cost a fraction of a packing.
///
/// Deterministic: its random numbers are its own. Never returns anything higher than it was given.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/lowest_offset.hpp"
#include "gmlake/plan/packer.hpp"
#include "gmlake/plan/packing.hpp"

namespace gmlake::plan {

struct priority_search_options {
  std::uint64_t work = 200'000'000;  ///< entries looked at, about 2 ns each
  bytes enough = 0;                  ///< a height to stop at, for instance the lower bound
  unsigned turns = 64;               ///< slices that the work is cut into, over which the orders take turns
};

class priority_search {
 public:
  explicit priority_search(priority_search_options const& options = {}) noexcept : options_(options) {}
  [[nodiscard]] static std::string_view name() noexcept { return "priority_search"; }

  /// As much as the work allows, of which the packings by lowest_offset are a part.
  [[nodiscard]] solution pack(problem const& p) const {
    packing now(p);
    budget left(options_.work);
    solution best = lowest_offset::sized(now, left, placed_set::unbounded);
    lowest_offset::improve(now, left, options_.enough, best);
    improve(now, left, options_.enough, best);
    return best;
  }

  /// Improves `best`, a valid solution, with all that is left.
  void improve(packing& now, budget& left, bytes enough, solution& best) const {
    now.restart();
    enough = std::max(enough, now.height());  // the fixed ones end there
    std::array<buffer_order, priorities.size()> orders;
    for (std::size_t k = 0; k < orders.size(); ++k) orders[k] = ordered(now.of(), now.lives(), priorities[k]);
    numbers random;
    std::uint64_t const slice = left.left() / options_.turns + 1;
    for (std::size_t turn = 0; !left.spent() && best.height > enough; ++turn) {
      budget part = left.part(slice);
      search(orders[turn % orders.size()], now, part, random, enough, best);
      left.take(slice - part.left());
    }
  }

 private:
  /// Percent of the tries: much changes. Else the buffer goes just before one in its way, which keeps what is good
  /// about the order.
  static constexpr std::uint64_t to_the_front = 30;
  static constexpr std::size_t positions_as_one_entry = 2;  // reading an order against walking gaps

  /// Numbers without order, always the same ones (splitmix64: Steele, Lea & Flood, OOPSLA 2014).
  struct numbers {
    std::uint64_t state = 0;
    [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept {
      std::uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      return (z ^ (z >> 31)) % n;
    }
  };

  static void search(buffer_order& in, packing& now, budget& part, numbers& random, bytes enough, solution& best) {
    while (!part.spent() && best.height > enough) {
      now.restart();
      std::size_t const placed = now.place_all(in, part, best.height - 1);
      if (placed == in.size()) {
        best = now.result();
      } else if (!part.spent()) {
        std::size_t const to = random.below(100) < to_the_front ? 0 : rival(in, placed, now.lives(), random);
        part.take(placed / positions_as_one_entry);
        auto const at = [&](std::size_t k) { return in.begin() + static_cast<std::ptrdiff_t>(k); };
        std::rotate(at(to), at(placed), at(placed + 1));
      }
    }
  }

  /// The position of any buffer before that one which it conflicts with; 0 where there is none. O(position).
  [[nodiscard]] static std::size_t rival(buffer_order const& in, std::size_t of, lifespans const& lives,
                                         numbers& random) {
    std::size_t chosen = 0;
    std::uint64_t rivals = 0;
    for (std::size_t k = 0; k < of; ++k) {
      if (lifespans::meet(lives.wide(in[of]), lives.own(in[k])) && random.below(++rivals) == 0) chosen = k;
    }
    return chosen;
  }

  priority_search_options options_;
};
static_assert(Packer<priority_search>);

}  // namespace gmlake::plan
