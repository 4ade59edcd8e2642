#pragma once
/// Where a swappable block's memory is.
///
///     mapped ──leave──▸ leaving ──copy whole, unmapped──▸ absent ──refilled──▸ arriving ──copy whole──▸ mapped
///        ▴                 │                                 ▴                    │
///        └─── called back ─┘                                 └──── it failed ─────┘
///
/// What stays mapped (`vacating::leave`) is absent as soon as its copy is queued: others may have the memory then,
/// behind the copy, and so may its own way back.

#include <cstdint>

namespace gmlake::swap {

enum class residency : std::uint8_t {
  mapped,    ///< memory and contents are there
  leaving,   ///< both are there still, while they are copied to the host
  absent,    ///< an address without memory; the contents are on the host or on their way there, or gone
  arriving,  ///< memory is there, and the contents are for streams that wait for them
};

[[nodiscard]] constexpr char const* to_string(residency r) noexcept {
  switch (r) {
    case residency::mapped: return "mapped";
    case residency::leaving: return "leaving";
    case residency::absent: return "absent";
    case residency::arriving: return "arriving";
  }
  return "unknown residency";
}

}  // namespace gmlake::swap
