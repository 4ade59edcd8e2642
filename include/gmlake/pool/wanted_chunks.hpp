#pragma once
/// When mappings that have no memory now, and are kept for blocks that come again, want their chunks. A chunk remembers
/// the answer until something of what maps it has changed.

#include <algorithm>
#include <cstdint>

#include "gmlake/lake/stitch.hpp"

namespace gmlake {

/// Whether a stitch is kept for a block that comes again, be it later than foreseen.
[[nodiscard]] inline bool is_kept(stitch const& s) noexcept {
  bool const has_none = s.serves == nullptr || s.vacated;
  return s.foreseen.as != 0 && has_none && s.foreseen.again != foresight::never;
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
    if (is_kept(*m->by) && m->by->foreseen.again > now) c.wanted = std::min(c.wanted, m->by->foreseen.again);
  }
  c.looked_at = true;
  return c.wanted;
}

}  // namespace gmlake
