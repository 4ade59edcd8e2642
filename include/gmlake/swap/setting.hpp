#pragma once
/// A program, the channel it swaps through, and what every scheduler and bound derives from them first. The program
/// outlives it, unchanged.

#include <cstdint>
#include <vector>

#include "gmlake/swap/absence.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/load.hpp"
#include "gmlake/swap/program.hpp"
#include "gmlake/swap/timing.hpp"

namespace gmlake::swap {

/// Smaller blocks are not worth moving: they would take a mapping's time, and the beginning of a chunk whose rest can't
/// be stitched then, for what is a percent or two of a training step's memory.
inline constexpr bytes smallest_worth_moving = 1_MiB;

/// Precondition: the program is well-formed (`find_fault`).
class setting {
 public:
  /// Schedulers leave blocks of less than `smallest` bytes alone. Bounds do not.
  setting(swap::program const& p, swap::channel const& c, bytes smallest = 0)
      : program_(&p),
        channel_(c),
        smallest_(smallest),
        starts_(starts_of(p)),
        loads_(loads_of(p)),
        absences_(absences_of(p)) {}

  setting(swap::program&&, swap::channel const&, bytes = 0) = delete;

  [[nodiscard]] swap::program const& program() const noexcept { return *program_; }
  [[nodiscard]] swap::channel const& channel() const noexcept { return channel_; }
  [[nodiscard]] bytes smallest() const noexcept { return smallest_; }
  [[nodiscard]] std::vector<bytes> const& loads() const noexcept { return loads_; }
  [[nodiscard]] std::vector<absence> const& absences() const noexcept { return absences_; }

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(loads_.size()); }
  /// Without stalls.
  [[nodiscard]] time step_time() const noexcept { return starts_.back(); }
  [[nodiscard]] std::vector<time> const& starts() const noexcept { return starts_; }
  /// The beginning of operation `i`, which may lie in the step before (negative) or after.
  [[nodiscard]] time start_of(std::int64_t i) const noexcept {
    std::int64_t const step = i >= 0 ? i / size() : -((size() - 1 - i) / size());
    return starts_[static_cast<std::size_t>(i - step * size())] + step * step_time();
  }
  [[nodiscard]] bytes peak() const noexcept { return peak_of(loads_); }

  [[nodiscard]] bytes size_of(absence const& a) const noexcept { return program_->variables[a.variable].size; }
  /// How long its way out takes; nothing where the host has a copy.
  [[nodiscard]] time out_time(absence const& a) const noexcept {
    variable const& v = program_->variables[a.variable];
    return v.has_copy ? time::zero() : channel_.out.time_of(v.size);
  }
  /// How long its way in takes; nothing where it has none.
  [[nodiscard]] time in_time(absence const& a) const noexcept {
    return comes_back(a) ? channel_.in.time_of(size_of(a)) : time::zero();
  }
  [[nodiscard]] bool comes_back(absence const& a) const noexcept { return swap::comes_back(*program_, a); }

 private:
  swap::program const* program_;
  swap::channel channel_;
  bytes smallest_;
  std::vector<time> starts_;
  std::vector<bytes> loads_;
  std::vector<absence> absences_;
};

}  // namespace gmlake::swap
