#include "table.hpp"

#include "format.hpp"
#include "text_table.hpp"

namespace gmlake::tools {

std::string to_table(std::vector<plan_record> const& records) {
  std::vector<text_row> rows = {{"input", "plan", "packer", "times", "requests", "placed", "bound, bytes",
                                 "height, bytes", "height / bound", "ms"}};
  constexpr std::size_t names = 3;
  for (plan_record const& r : records) {
    bool const again = rows.size() > 1 && records[rows.size() - 2].input == r.input;
    rows.push_back({again ? "" : r.input, r.title() + (r.ok() ? "" : " (failed)"), r.packer, grouped(r.times),
                    grouped(r.requests), grouped(r.problem.buffers.size()), grouped(r.bound),
                    r.solution.offsets.empty() ? "-" : grouped(r.solution.height),
                    r.solution.offsets.empty() ? "-" : fixed(r.ratio(), 5), fixed(r.ms, 0)});
  }
  return text_table(rows, names);
}

}  // namespace gmlake::tools
