#pragma once
/// The ways to choose that a search takes in turn: first the plain ones, then some at random around them, always the
/// same ones. How many follows from the program's size, so that a search takes about a second for any.

#include <algorithm>
#include <cstdint>

#include "gmlake/swap/cover.hpp"
#include "gmlake/swap/numbers.hpp"
#include "gmlake/swap/setting.hpp"

namespace gmlake::swap {

class ways {
 public:
  explicit ways(setting const& at)
      : even_(static_cast<bytes>(static_cast<double>(at.channel().out.latency.count()) *
                                 static_cast<double>(at.channel().out.bytes_per_second) / 1e9)),
        left_(std::clamp<std::uint64_t>(work / (at.size() + 2 * at.absences().size() + 1), plain, most)) {}

  [[nodiscard]] bool over() const noexcept { return taken_ >= left_; }

  [[nodiscard]] cover_options next() {
    static constexpr double weights[] = {1.0, 0.5, 0.0, 0.75, 0.25};
    std::uint64_t const k = taken_++;
    if (k < plain) return {.farthest = weights[k / 2], .backwards = k % 2 == 1};
    static constexpr double shuffles[] = {0.01, 0.03, 0.1, 0.4};
    static constexpr bytes sizes[] = {0, 1, 4, 16};
    return {.farthest = random_.share(),
            .backwards = random_.below(2) == 1,
            .least_size = sizes[random_.below(4)] * even_,
            .shuffle = shuffles[random_.below(4)],
            .seed = random_.next()};
  }

 private:
  static constexpr std::uint64_t work = 4'000'000;  // operations and absences looked at, up to 0.1 µs each as a rule
  static constexpr std::uint64_t plain = 10;
  static constexpr std::uint64_t most = 3'000;

  bytes even_;  ///< takes as long to cross as the latency
  std::uint64_t left_;
  std::uint64_t taken_ = 0;
  numbers random_;
};

}  // namespace gmlake::swap
