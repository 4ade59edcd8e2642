#pragma once
/// What `--swap` and its companions ask for, and how they are written.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmlake/swap/machine.hpp"
#include "gmlake/swap/scores.hpp"

namespace gmlake::tools {

/// A way to decide what to swap and when.
struct scheduler {
  enum class kind : std::uint8_t { lowest_peak, least_stall, score, mix };

  std::string_view name;
  std::string_view what;  ///< for --help
  kind is = kind::score;
  swap::score_weights weights = {};  ///< of a score

  [[nodiscard]] constexpr bool finds_peak() const noexcept { return is != kind::least_stall; }
  [[nodiscard]] constexpr bool keeps_limit() const noexcept { return is != kind::lowest_peak; }
};

inline constexpr std::array schedulers = {
    scheduler{"lowest-peak", "the lowest peak without a stall, by search", scheduler::kind::lowest_peak},
    scheduler{"least-stall", "the shortest step under the limit, by search", scheduler::kind::least_stall},
    scheduler{"doa", "AutoSwap by duration of absence", scheduler::kind::score, {.doa = 1}},
    scheduler{"aoa", "AutoSwap by area of absence", scheduler::kind::score, {.aoa = 1}},
    scheduler{
        "wdoa", "AutoSwap by duration weighted with the load over the limit", scheduler::kind::score, {.wdoa = 1}},
    scheduler{"swdoa", "the same of the load that earlier choices leave", scheduler::kind::score, {.swdoa = 1}},
    scheduler{"mix", "AutoSwap by the mix of these that replays best", scheduler::kind::mix},
};

/// As much of a step's peak, or so many bytes.
struct swap_limit {
  double share = 0.65;
  std::optional<bytes> size;

  [[nodiscard]] bytes of(bytes peak) const noexcept {
    return size ? *size : static_cast<bytes>(share * static_cast<double>(peak));
  }
};

struct swap_options {
  std::vector<scheduler> schedulers;  ///< each once; empty: no swapping is asked for
  swap_limit limit;
  swap::machine on;
};

/// The schedulers of that name, which is one's or "all"; none where it is neither.
[[nodiscard]] std::vector<scheduler> schedulers_named(std::string_view name);

/// "12GB/s", "500MB/s", "2.5GiB/s": bytes a second, from 1 MB/s to 1 PB/s.
[[nodiscard]] std::optional<std::uint64_t> parse_rate(std::string_view text) noexcept;
/// "10us", "1.5ms", "800ns": from none to a second.
[[nodiscard]] std::optional<swap::time> parse_latency(std::string_view text) noexcept;
/// "0.65", "65%", "20GiB". A share is more than 0 and at most 1; bytes have a unit or are more.
[[nodiscard]] std::optional<swap_limit> parse_swap_limit(std::string_view text) noexcept;

}  // namespace gmlake::tools
