#pragma once
/// A swappable block, as the mover keeps it: a movable block of the pool's, and where its contents are.

#include <cstdint>
#include <optional>
#include <vector>

#include "gmlake/core/intrusive.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/backing_store.hpp"
#include "gmlake/swap/remapping.hpp"
#include "gmlake/swap/residency.hpp"
#include "gmlake/swap/tag.hpp"

namespace gmlake::swap {

template <class Fence>
struct swappable {
  address begin{};
  bytes size = 0;
  stream on{};                ///< whose work it was allocated for
  std::vector<stream> users;  ///< that use it besides
  tag group{};
  residency state = residency::mapped;
  bool read_only = false;          ///< nobody writes it any more: its host copy stays good
  vacating way = vacating::unmap;  ///< leaving: what becomes of its mapping
  bool contents = true;            ///< absent: the host has them, else they are gone
  std::uint32_t pins = 0;          ///< it stays mapped while there are any
  std::uint64_t generation = 0;    ///< how often other memory has come under it
  address copy{};                  ///< host memory of its size, where it has any
  std::optional<slot> filed;       ///< its copy in the file below, where it has been written there
  bool outdated = false;           ///< arriving: it may have been written since, before it was read only
  bool in_place = false;           ///< absent: its copy is mapped at its address
  bool paused = false;             ///< leaving, absent: because its group was
  bool kept = false;               ///< absent: among those whose copies may be written to the file
  watchers watched;                ///< who is told when its memory goes and comes
  bool told = false;               ///< that it goes, and not yet that other memory has come
  Fence moved{};                   ///< leaving, arriving: behind the copy
  list_hook in_all;
  list_hook in_motion;
  list_hook in_kept;
};

}  // namespace gmlake::swap
