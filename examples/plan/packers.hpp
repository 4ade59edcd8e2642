#pragma once
/// The packers that the tool knows, by name, each with the budget that it can be given. What they return is checked
/// by the validator, which shares no code with them.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/plan/problem.hpp"

namespace gmlake::tools {

struct packer_name {
  std::string_view name;
  std::string_view what;  ///< for --help
  bool takes_seconds;
  bool takes_work;
};

inline constexpr std::array packers = {
    packer_name{"portfolio", "all of them in turn, until one reaches the bound", true, true},
    packer_name{"lifetime_sweep", "in order of birth into the smallest gap", false, false},
    packer_name{"lowest_offset", "in several orders, each at the lowest offset", false, true},
    packer_name{"best_fit_decreasing", "the largest first, into the smallest gap", false, true},
    packer_name{"grouped", "groups alike in time and size, in layers", false, true},
    packer_name{"large_first", "the large by search, the small into the gaps", false, true},
    packer_name{"priority_search", "what didn't fit comes earlier in the next try", false, true},
    packer_name{"exact", "a search with proof, of up to 4,096 buffers", true, true},
};

struct packing_request {
  std::string packer;   ///< empty: the portfolio
  bool search = false;  ///< where no packer was named and the portfolio falls short, go on with the exact search
  std::optional<double> seconds;
  std::optional<std::uint64_t> work;
  std::optional<bytes> capacity;
  std::vector<plan::instant> boundaries;  ///< where phases begin, for `grouped`
};

struct packing_outcome {
  plan::solution solution;
  bytes bound = 0;
  bool proven = false;
  std::string packer;
  double ms = 0;
  std::string failure;  ///< why there is no solution, or none that may be used; empty: there is
};

/// Precondition: `p` is valid but for the sharing of its fixed buffers; a known packer.
[[nodiscard]] packing_outcome pack(plan::problem const& p, packing_request const& r);

}  // namespace gmlake::tools
