/// Lets a fuzzer choose what a pool is asked, and which calls of its driver fail, with the tests' naive model beside
/// it: the first byte chooses between the default lake and GMLake's algorithm, the second how many streams there are.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "tests/pool/walk.hpp"

namespace {
using namespace gmlake;
using namespace gmlake::test;

/// Choices from bytes, as many as each needs; 0 once they are used up.
class choices {
 public:
  choices(std::uint8_t const* data, std::size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool empty() const { return at_ == end_; }
  [[nodiscard]] std::size_t operator()(std::size_t n) {
    std::size_t number = 0;
    for (std::size_t range = 1; range < n && at_ != end_; range <<= 8) number = number << 8 | *at_++;
    return number % n;
  }

 private:
  std::uint8_t const* at_;
  std::uint8_t const* end_;
};

template <PoolConfig Config>
void run(choices from) {
  walk_options options;
  options.faults = true;
  options.callback = true;
  options.validate_every = 4;
  options.streams = 1 + from(4);
  walk<Config> w(options, [&from](std::size_t n) { return from(n); });
  while (!from.empty() && w.fault().empty()) w.step();
  if (w.fault().empty()) w.finish();
  if (w.fault().empty()) return;
  std::fprintf(stderr, "%s\n", w.fault().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  choices from(data, size);
  if (from(2) == 0) run<lake_config<borrowed_device, simulated_streams>>(from);
  else run<gmlake_config<borrowed_device, simulated_streams>>(from);
  return 0;
}
