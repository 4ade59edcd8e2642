#pragma once
/// A CUDA device's swapper: pinned host memory of the driver's, mapped where it can be, plain where it can't.

#include <atomic>
#include <memory>
#include <utility>

#include "gmlake/adapter/torch_errors.hpp"
#include "gmlake/adapter/torch_streams.hpp"
#include "gmlake/adapter/torch_swapping.hpp"
#include "gmlake/backend/cuda_pinned.hpp"
#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/backend/host_memory_info.hpp"
#include "gmlake/backend/placed_memory.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stream/cuda_events.hpp"
#include "gmlake/swap/cuda_copier.hpp"

namespace gmlake {

namespace detail {

/// Throws `torch_failure` with what a result says.
template <class T>
[[nodiscard]] T opened(result<T> r) {
  if (!r) throw torch_failure(describe(r.error()));
  return *std::move(r);
}

}  // namespace detail

/// Host memory is taken as it is needed, at most what the settings allow, or else half of the machine's. Throws
/// `torch_failure`, `std::system_error` and `std::bad_alloc`.
[[nodiscard]] inline std::unique_ptr<torch_swapper> open_cuda_swapper(
    int device, torch_settings const& s, torch_movable main, std::shared_ptr<std::atomic<int> const> const& pauses,
    torch_foreign_streams const& foreign) {
  using streams = torch_streams<cuda_events>;
  using copying = torch_copying<streams, swap::cuda_copier>;
  auto const copies = [&](bool gated) {
    return copying{streams(detail::opened(cuda_events::open({.device = device})), pauses, foreign),
                   detail::opened(swap::cuda_copier::open({.device = device, .gated = gated}))};
  };
  pool_options limited;
  limited.limit = s.host ? *s.host : detail::opened(host_memory_info()).total / 2;
  swap::swap_file below;
  if (!s.swap_folder.empty()) {
    below = detail::opened(swap::swap_file::open({.directory = s.swap_folder.c_str(), .capacity = s.swap_file}));
  }
  auto const make = [&]<class Host>(std::unique_ptr<Host> host) -> std::unique_ptr<torch_swapper> {
    return std::make_unique<torch_swapping<Host, streams, swap::cuda_copier>>(
        main, std::move(host), copies(true), copies(false), std::move(below), s.in_place, s.leave_mapped,
        s.chunk.has_value());
  };
  auto mapped = cuda_vmm::open({.device = device, .lies_on = cuda_vmm_options::location::host});
  if (mapped) return make(std::make_unique<lake_pool<cuda_vmm>>(*std::move(mapped), limited));
  using plain = placed_memory<cuda_pinned>;
  return make(
      std::make_unique<lake_pool<plain>>(plain(detail::opened(cuda_pinned::open({.device = device}))), limited));
}

}  // namespace gmlake
