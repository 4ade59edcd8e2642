#pragma once
/// Where a swappable block's memory is.
///
///     mapped ──leave──▸ leaving ──copy whole, unmapped──▸ absent ──refilled──▸ arriving ──copy whole──▸ mapped
///        ▴                 │                                 ▴                    │
///        └─── called back ─┘                                 └──── it failed ─────┘

#include <cstdint>

namespace gmlake::swap {

enum class residency : std::uint8_t {
  mapped,    ///< memory and contents are there
  leaving,   ///< both are there still, while they are copied to the host
  absent,    ///< an address without memory; the contents are on the host, or gone
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
