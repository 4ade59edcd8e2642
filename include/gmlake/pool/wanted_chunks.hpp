#pragma once
/// When mappings that have no memory now, and are kept for blocks that come again, want their chunks. A chunk remembers
/// the answer until something of what maps it has changed.

#include <algorithm>
#include <cstdint>

#include "gmlake/lake/stitch.hpp"

namespace gmlake {

/// How late a block may come that finds its mapping still kept, by how far ahead it was foreseen: other jobs' steps may
/// have come between, and it may never come.
inline constexpr std::uint64_t patience = 3;

/// Whether a stitch is kept at `now` for a block that comes again.
[[nodiscard]] inline bool is_kept(stitch const& s, std::uint64_t now) noexcept {
  foresight const& f = s.foreseen;
  bool const has_none = s.serves == nullptr || s.vacated;
  if (f.as == 0 || !has_none || f.again == foresight::never) return false;
  return f.again > now || (now - f.again) / patience <= f.again - f.now;
}

/// Called when that may have changed, but for the time's passing.
inline void note_wants(stitch const& s) noexcept {
  for (mapped_chunk const& c : s.mapped()) c->looked_at = false;
}

/// When a chunk is wanted first after `now`; `foresight::never`: as far as is known. Linear in the stitches that map
/// it.
[[nodiscard]] inline std::uint64_t first_wanted(chunk& c, std::uint64_t now) noexcept {
  if (c.looked_at && c.wanted > now) return c.wanted;
  c.wanted = foresight::never;
  for (mapped_chunk const* m = c.mappings; m != nullptr; m = m->next) {
    std::uint64_t const again = m->by->foreseen.again;
    if (is_kept(*m->by, now) && again > now) c.wanted = std::min(c.wanted, again);
  }
  c.looked_at = true;
  return c.wanted;
}

}  // namespace gmlake
