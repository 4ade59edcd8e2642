#pragma once
/// A plan: the requests of one step in their order, when each is freed, and where each goes in a space of `height`
/// bytes. It says what a program is expected to do; whoever follows it must bear that the program does something else.
///
/// A plan fits a step by its shape: the sizes and streams of its requests in order, told by a fingerprint. Streams are
/// numbered by their first mention, so that a plan outlives the process that it was made in.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gmlake/core/types.hpp"
#include "gmlake/plan/problem.hpp"

namespace gmlake::plan {

/// One request of the step.
struct step_request {
  static constexpr instant stays = std::numeric_limits<instant>::max();
  static constexpr bytes nowhere = std::numeric_limits<bytes>::max();

  bytes size = 0;  ///< as placed: a multiple of 512
  std::uint32_t stream = 0;
  instant birth = 0;      ///< requests and frees of the step before it
  instant death = stays;  ///< the same for its free; beyond the period for one in the next step; `stays`: outlives both
  bytes offset = nowhere;  ///< `nowhere`: not planned; the pool's other means serve it
};

struct plan {
  std::vector<step_request> requests;  ///< by birth
  instant period = 0;                  ///< requests and frees of the step
  bool repeats = true;                 ///< false: what a program does once, before its steps
  bytes height = 0;                    ///< of the space that the offsets lie in
  bytes bound = 0;                     ///< no plan of these lifetimes could be lower
  std::uint32_t laps = 1;              ///< the steps that it consists of, on end and alike but for the places
};

/// Continues a fingerprint by one request. Order matters; births and deaths don't.
[[nodiscard]] constexpr std::uint64_t fingerprint(std::uint64_t so_far, bytes size, std::uint32_t stream) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads what differs in few bits
  std::uint64_t mixed = (size + odd * (stream + 1)) * 0xbf58476d1ce4e5b9;
  mixed ^= mixed >> 31;
  return so_far * odd + mixed;
}
[[nodiscard]] constexpr std::uint64_t fingerprint(std::span<step_request const> step) noexcept {
  std::uint64_t f = 0;
  for (step_request const& r : step) f = fingerprint(f, r.size, r.stream);
  return f;
}

/// The same for a step in whatever order, and so wherever its beginning is thought to be.
[[nodiscard]] constexpr std::uint64_t contents(std::span<step_request const> step) noexcept {
  std::uint64_t sum = 0;
  for (step_request const& r : step) sum += fingerprint(0, r.size, r.stream);
  return sum;
}

}  // namespace gmlake::plan
