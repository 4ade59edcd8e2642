#pragma once
/// What can go wrong, as a value. An error names the call that failed and, where memory ran out, the pool's account
/// of where it all is, so that a caller can tell exhaustion from fragmentation without asking again.

#include <cstdint>

#include "gmlake/core/types.hpp"

namespace gmlake {

enum class errc : std::uint8_t {
  invalid_argument,    ///< a size, alignment or option that can't be honoured
  unknown_pointer,     ///< not the start of a block of this pool
  double_free,         ///< a block of this pool that is free already
  out_of_memory,       ///< no physical memory: the device's, or the pool's byte limit
  out_of_addresses,    ///< no address range to map at
  out_of_host_memory,  ///< the allocator's own bookkeeping could not grow
  not_supported,       ///< the backend can't do this
  no_driver,           ///< no device driver, or one too old
  driver_failure,      ///< any other failure that the driver reported; see `native`
};

[[nodiscard]] constexpr char const* to_string(errc c) noexcept {
  switch (c) {
    case errc::invalid_argument: return "invalid argument";
    case errc::unknown_pointer: return "unknown pointer";
    case errc::double_free: return "double free";
    case errc::out_of_memory: return "out of memory";
    case errc::out_of_addresses: return "out of addresses";
    case errc::out_of_host_memory: return "out of host memory";
    case errc::not_supported: return "not supported";
    case errc::no_driver: return "no driver";
    case errc::driver_failure: return "driver failure";
  }
  return "unknown error";
}

/// Where a pool's memory was when a request failed; all in bytes.
struct memory_account {
  bytes requested = 0;           ///< the size that was asked for
  bytes reserved = 0;            ///< physical memory that the pool holds
  bytes live = 0;                ///< in blocks handed out
  bytes free = 0;                ///< reserved and not live
  bytes largest_contiguous = 0;  ///< the largest free block
  bytes limit = 0;               ///< the pool's byte limit; the maximum where there is none
  /// Enough was free, but not in a shape that could serve the request; otherwise memory was exhausted.
  [[nodiscard]] constexpr bool fragmented() const noexcept { return free >= requested; }
};

struct error {
  errc code = errc::invalid_argument;
  char const* call = "";   ///< the operation that failed: a string literal
  int native = 0;          ///< the backend's own code: a `CUresult`, an `errno`; 0 where there is none
  memory_account account;  ///< filled in by a pool for `out_of_memory`
};

}  // namespace gmlake
