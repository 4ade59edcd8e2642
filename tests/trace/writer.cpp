#include "gmlake/trace/writer.hpp"

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

TEST_CASE("events are written one a line, behind what is there already") {
  std::string out = "m,step\n";
  trace::writer w(out);
  w.allocate(4294967295, 18446744073709551615u, 7);
  w.deallocate(0);
  w.mark("backward");
  w.host_copy(1);
  w.read(1);
  w.wrote(4294967295);
  w.operation(std::chrono::nanoseconds::max());
  CHECK(out ==
        "m,step\na,4294967295,18446744073709551615,7\nf,0\nm,backward\nh,1\nr,1\nw,4294967295\n"
        "o,9223372036854775807\n");
}

}  // namespace
