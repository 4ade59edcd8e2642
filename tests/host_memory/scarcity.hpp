#pragma once
/// Host memory that runs out on demand. This program's `operator new` fails where it is told to, on the thread that
/// told it and only inside of `scarce`, so that the tests' own books are never short of memory.

#include <cstdint>
#include <limits>

namespace gmlake::test {

struct shortage {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t first = never;  ///< allocations that succeed first, of those that count
  std::uint64_t count = 1;      ///< allocations that fail then, in a row; `endless`
};

/// Puts `s` in the place of the one before; it counts from now.
void run_short(shortage const& s) noexcept;
/// Allocations made to fail so far.
[[nodiscard]] std::uint64_t refusals() noexcept;
/// Allocations of the whole program that have not been freed.
[[nodiscard]] std::int64_t unfreed() noexcept;

/// While one lives, allocations count and may fail: of two, the younger one decides.
class scarce {
 public:
  explicit scarce(bool here = true) noexcept;
  scarce(scarce const&) = delete;
  scarce& operator=(scarce const&) = delete;
  ~scarce();

 private:
  bool before_;
};

/// Calls `f` with memory to spare: a device's own books are not what is tested.
template <class F>
decltype(auto) with_plenty(F&& f) noexcept {
  scarce const plenty(false);
  return f();
}

}  // namespace gmlake::test
