#pragma once
/// A chunk as one stitch maps it. A chunk lists all that map it, so that what they want of it is found without asking
/// every stitch there is.

#include "gmlake/lake/chunk.hpp"

namespace gmlake {

struct stitch;

/// Stays where it is while it is listed.
struct mapped_chunk {
  chunk* of = nullptr;
  stitch* by = nullptr;
  mapped_chunk* next = nullptr;   ///< of the chunk's others
  mapped_chunk** here = nullptr;  ///< what points to this one

  [[nodiscard]] chunk& operator*() const noexcept { return *of; }
  [[nodiscard]] chunk* operator->() const noexcept { return of; }

  /// `s` maps it from now on.
  void list(stitch& s) noexcept {
    by = &s;
    next = of->mappings;
    here = &of->mappings;
    if (next != nullptr) next->here = &next;
    of->mappings = this;
    ++of->stitches;
    of->looked_at = false;
  }
  /// It doesn't any more.
  void unlist() noexcept {
    *here = next;
    if (next != nullptr) next->here = here;
    --of->stitches;
    of->looked_at = false;
    next = nullptr;
    here = nullptr;
  }
};

}  // namespace gmlake
