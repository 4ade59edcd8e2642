#pragma once
/// When mappings that have no memory now, and are kept for blocks that come again, want their chunks. It is learnt from
/// all stitches when somebody asks after something has changed: that is linear in what they map.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gmlake/lake/stitch.hpp"

namespace gmlake {

class wanted_chunks {
 public:
  /// What is foreseen of a stitch has changed, or will.
  void note(stitch const& s) noexcept { changed_ = changed_ || s.foreseen.as != 0; }

  /// Whether a stitch is kept for a block that is foreseen to need what is mapped there.
  [[nodiscard]] static bool is_kept(stitch const& s, std::uint64_t now) noexcept {
    bool const has_none = s.serves == nullptr || s.vacated;
    return s.foreseen.as != 0 && has_none && s.foreseen.again != foresight::never && s.foreseen.again > now;
  }

  /// Of all stitches of a pool. Called before what follows.
  template <class Stitches>
  void learn(Stitches& all, std::uint64_t now) noexcept {
    if (!std::exchange(changed_, false)) return;
    ++looks_;
    for (stitch& s : all) {
      if (!is_kept(s, now)) continue;
      for (std::size_t i = 0; i < s.count; ++i) {
        chunk& c = *s.chunks[i];
        c.wanted = c.looked == looks_ ? std::min(c.wanted, s.foreseen.again) : s.foreseen.again;
        c.looked = looks_;
      }
    }
  }
  /// When it is wanted first; `foresight::never`: as far as is known.
  [[nodiscard]] std::uint64_t first(chunk const& c, std::uint64_t now) const noexcept {
    return c.looked == looks_ && c.wanted > now ? c.wanted : foresight::never;
  }

 private:
  std::uint32_t looks_ = 0;
  bool changed_ = false;
};

}  // namespace gmlake
