#pragma once
/// What a GPU in emulated time is like, as command lines say it.

#include <cmath>
#include <cstdint>

#include "bench/command_line.hpp"
#include "bench/support/emulated_gpu.hpp"
#include "bench/support/emulated_program.hpp"

namespace gmlake::bench {

struct emulated_settings {
  double launch_us = 25;  ///< of the host, for an operation
  double call_us = 80;    ///< and for a driver call
  double link = 55;       ///< 10⁹ bytes a second each way
  bool ungated = false;   ///< copies out let no mapping in between
  emulated_habits habits{.jitter = 0.05};

  [[nodiscard]] emulated_costs costs() const {
    auto const in_ns = [](double us) { return swap::time(std::llround(1e3 * us)); };
    emulated_costs c;
    c.launch = in_ns(launch_us);
    c.driver_call = in_ns(call_us);
    if (ungated) c.piece = 0;
    c.link.out.bytes_per_second = c.link.in.bytes_per_second = static_cast<std::uint64_t>(link * 1e9);
    return c;
  }

  void add_to(CLI::App& app) {
    constexpr double a_second = 1e6;
    app.add_option("--launch-us", launch_us, "Host time of an operation's launch. Default: 25")
        ->type_name("T")
        ->check(between(0, a_second));
    app.add_option("--call-us", call_us, "Host time of a driver call, or of access to a chunk. Default: 80")
        ->type_name("T")
        ->check(between(0, a_second));
    app.add_flag("--ungated", ungated,
                 "Access to a chunk waits a millisecond beside copies out, not for a piece of one");
    app.add_option("--link", link,
                   "What the link carries each way, in GB/s; pagers think 55 until copies tell. Default: 55")
        ->type_name("X")
        ->check(between(1, 1000));
    app.add_option("--jitter", habits.jitter, "Kernels take up to this share longer or shorter. Default: 0.05")
        ->type_name("X")
        ->check(between(0, 0.99));
    app.add_option("--read", habits.reads, "The host waits for a step's operation of that number. Default: for none")
        ->type_name("N")
        ->check(CLI::Range(1U, 1'000'000U));
  }
};

}  // namespace gmlake::bench
