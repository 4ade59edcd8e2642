#pragma once
/// A page that shows plans in space and time. One HTML file without outside resources: the figures of every plan, and a
/// picture of each, which script draws from the numbers that stand in the page.

#include <cstddef>
#include <string>
#include <vector>

#include "record.hpp"

namespace gmlake::tools {

[[nodiscard]] std::string render(std::vector<plan_record> const& records);

/// One plan's picture, a `<figure>`: of its buffers the `most` that take the most room and time.
[[nodiscard]] std::string render_picture(plan_record const& r, std::size_t most);

}  // namespace gmlake::tools
