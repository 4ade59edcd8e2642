/// How near the schedulers come to the bounds, on programs shaped like training steps, and AutoSwap beside them. Prints
/// its figures: gmlake-tests --source-file=*swap/figures* --success

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/swap/autoswap.hpp"
#include "gmlake/swap/least_stall.hpp"
#include "gmlake/swap/lowest_peak.hpp"
#include "gmlake/swap/peak_bound.hpp"
#include "gmlake/swap/time_bound.hpp"
#include "tests/swap/programs.hpp"

namespace gmlake::swap::figures_test {
namespace {

struct named_program {
  std::string name;
  swap::program program;
};

/// Convolutional networks: one like ResNet-50, others flatter, deeper, rougher.
std::vector<named_program> convolutional() {
  std::vector<named_program> all;
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    std::string const s = " #" + std::to_string(seed);
    all.push_back({"resnet" + s, programs::cnn(seed)});
    all.push_back(
        {"vgg" + s, programs::cnn(seed, {.stages = 5, .blocks = 1, .layers = 9, .step_ns = 150e6, .peak = 9e9})});
    all.push_back({"deep" + s, programs::cnn(seed, {.blocks = 8, .step_ns = 130e6, .peak = 15e9})});
    all.push_back({"rough" + s, programs::cnn(seed, {.jitter = 1.5})});
  }
  return all;
}

std::vector<named_program> all_programs() {
  std::vector<named_program> all = convolutional();
  for (std::uint32_t seed = 1; seed <= 2; ++seed) {
    std::string const s = " #" + std::to_string(seed);
    all.push_back({"gpt2" + s, programs::transformer(seed, programs::gpt2())});
    all.push_back({"opt-1.3b" + s, programs::transformer(seed, programs::opt_1_3b())});
    all.push_back({"lora-7b" + s, programs::transformer(seed, programs::lora_7b())});
  }
  return all;
}

/// In percent of the peak.
double saved(setting const& at, bytes peak) {
  return 100 * static_cast<double>(at.peak() - peak) / static_cast<double>(at.peak());
}

TEST_CASE("on a channel of ten times the relative speed no score saves as much as the search, without stalls") {
  channel slow;
  slow.out.bytes_per_second = slow.in.bytes_per_second = 12'000'000'000;
  double sum = 0, allowed = 0;
  std::vector<named_program> const all = convolutional();
  for (named_program const& n : all) {
    program const p = slowed(n.program, 10);
    setting const at(p, slow);
    double const most = saved(at, peak_bound(at));
    double const found = saved(at, lowest_peak(at).find().outcome.peak);
    std::string scored;
    double best = 0;
    for (score_weights const& w : {score_weights{.doa = 1}, score_weights{.aoa = 1}, score_weights{.wdoa = 1},
                                   score_weights{.swdoa = 1}, score_weights{.doa = 0.25, .swdoa = 0.75}}) {
      double const by = saved(at, autoswap(at, w).lowest_peak(24).outcome.peak);
      scored += " " + std::to_string(by);
      best = std::max(best, by);
    }
    MESSAGE(n.name, ": % saved: ", found, ", at most ", most, "; by DOA, AOA, WDOA, SWDOA, a mix:", scored);
    CHECK(found >= best);
    CHECK(found <= most);
    sum += found;
    allowed += most;
  }
  MESSAGE("mean: ", sum / static_cast<double>(all.size()), " of ", allowed / static_cast<double>(all.size()));
  CHECK(sum >= 0.95 * allowed);
}

TEST_CASE("at an H200's ratio nine tenths of what can be saved without stalls are") {
  for (named_program const& n : all_programs()) {
    setting const at(n.program, {});
    bytes const bound = peak_bound(at);
    solution const found = lowest_peak(at).find();
    CHECK(find_fault(n.program, found.schedule) == nullptr);
    CHECK(found.outcome.without_stall());
    CHECK(found.outcome.peak >= bound);
    MESSAGE(n.name, ": % saved: ", saved(at, found.outcome.peak), ", at most ", saved(at, bound));
    CHECK(saved(at, found.outcome.peak) >= 0.9 * saved(at, bound));
  }
}

TEST_CASE("at two thirds of the peak a step takes a twentieth longer than it must, at most") {
  for (named_program const& n : all_programs()) {
    setting const at(n.program, {});
    bytes const limit = at.peak() / 100 * 65;
    time const bound = time_bound(at, limit);
    auto const found = least_stall(at, limit).find();
    REQUIRE(found);
    CHECK(find_fault(n.program, found->schedule) == nullptr);
    CHECK(found->outcome.peak <= limit);
    CHECK(found->outcome.total >= bound);
    double const ratio = static_cast<double>(found->outcome.total.count()) / static_cast<double>(bound.count());
    MESSAGE(n.name, ": ", static_cast<double>(found->outcome.total.count()) / 1e6, " ms, no less than ",
            static_cast<double>(bound.count()) / 1e6, ": ", ratio, "; without a limit ",
            static_cast<double>(at.step_time().count()) / 1e6);
    CHECK(ratio <= 1.05);
  }
}

}  // namespace
}  // namespace gmlake::swap::figures_test
