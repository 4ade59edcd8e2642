#pragma once
/// Copier where device memory is the host's own, as `memfd`'s: copies are done when the call returns.

#include <cstring>

#include "gmlake/swap/copier.hpp"

namespace gmlake::swap {

struct host_copier {
  [[nodiscard]] stream stream_out() const noexcept { return {}; }
  [[nodiscard]] stream stream_in() const noexcept { return {}; }
  [[nodiscard]] result<void> copy_out(address host, address device, bytes n) noexcept {
    std::memcpy(to_pointer(host), to_pointer(device), n);
    return {};
  }
  [[nodiscard]] result<void> copy_in(address device, address host, bytes n) noexcept {
    std::memcpy(to_pointer(device), to_pointer(host), n);
    return {};
  }
};
static_assert(Copier<host_copier>);

}  // namespace gmlake::swap
