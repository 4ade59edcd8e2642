#pragma once
/// Makes a host pool hold memory before it is wanted: pinning takes the driver long (about 5 GB/s on an H200's host).

#include "gmlake/pool/pool_concept.hpp"

namespace gmlake::swap {

/// Makes sure that the pool holds `n` bytes that are free, side by side. Give it the pool's whole limit when it is
/// fresh. Errors: the pool's; then it may hold some of that.
template <Pool Host>
[[nodiscard]] result<void> pin_ahead(Host& host, bytes n) noexcept {
  result<address> const all = host.allocate(n, stream{});
  return all ? host.deallocate(*all) : result<void>(failure(all.error()));
}

}  // namespace gmlake::swap
