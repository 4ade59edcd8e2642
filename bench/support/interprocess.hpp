#pragma once
/// Boost.Interprocess's `rbtree_best_fit`, unlocked, in one mapping large enough for the benchmarks, whose pages come
/// when touched. Apart from gmlake's headers, whose names lint confuses with those that Boost declares.

#include <cstddef>

namespace gmlake::bench {

class interprocess {
 public:
  /// Ends the program where there are no addresses.
  interprocess() noexcept;
  interprocess(interprocess const&) = delete;
  interprocess& operator=(interprocess const&) = delete;
  ~interprocess();

  [[nodiscard]] void* allocate(std::size_t n) noexcept;
  void deallocate(void* p) noexcept;
  /// Bytes up to the highest that was ever handed out.
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  void* segment_;
  std::size_t held_ = 0;
};

}  // namespace gmlake::bench
