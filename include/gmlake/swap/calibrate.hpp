#pragma once
/// Measures an idle channel (`observed_channel` follows it at work): what a transfer costs beside its bytes, and the
/// bytes' rate, each way by itself. A few milliseconds at an H200's 55 GB/s.
///
/// Small copies queued back to back give the latency, a large one the rate; the best of several rounds counts, since
/// whatever disturbs a copy makes it longer (a `cuda_copier` for it had better not be gated). Both ways at once may be
/// slower than each alone.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <utility>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/copier.hpp"

namespace gmlake::swap {

struct calibrate_options {
  bytes small = 64_KiB;   ///< a copy whose time is mostly latency
  int small_copies = 16;  ///< queued one behind the other; at least one
  bytes large = 64_MiB;   ///< a copy whose time is mostly its bytes'; more than `small`
  int rounds = 3;         ///< at least one
};

namespace detail {

/// The time of `copies` copies in a row, from the host's first call to when it has seen the last done. Errors: the
/// copier's, the policy's.
template <StreamPolicy Streams, std::invocable Copy>
[[nodiscard]] result<time> time_copies(Streams& streams, stream on, int copies, Copy copy) noexcept {
  auto const began = std::chrono::steady_clock::now();
  for (int i = 0; i < copies; ++i) {
    if (result<void> done = copy(); !done) return failure(done.error());
  }
  result<typename Streams::fence> f = streams.record(on);
  if (!f) return failure(f.error());
  result<void> const done = streams.synchronize(*f);
  auto const took = std::chrono::steady_clock::now() - began;
  streams.release(*f);
  if (!done) return failure(done.error());
  return std::chrono::duration_cast<time>(took);
}

/// `copy(n)` queues a copy of n bytes on `on`.
template <StreamPolicy Streams, std::invocable<bytes> Copy>
[[nodiscard]] result<lane> measure_lane(Streams& streams, stream on, calibrate_options const& o, Copy copy) noexcept {
  time small = time::max();
  time large = time::max();
  for (int round = -1; round < o.rounds; ++round) {  // the first wakes the link up
    result<time> const a = time_copies(streams, on, o.small_copies, [&]() noexcept { return copy(o.small); });
    if (!a) return failure(a.error());
    result<time> const b = time_copies(streams, on, 1, [&]() noexcept { return copy(o.large); });
    if (!b) return failure(b.error());
    if (round < 0) continue;
    small = std::min(small, *a / o.small_copies);
    large = std::min(large, *b);
  }
  // Two equations: a time is the latency and the bytes at the rate.
  auto const span = std::max<time::rep>(1, (large - small).count());
  double const nanoseconds_a_byte = static_cast<double>(span) / static_cast<double>(o.large - o.small);
  auto const of_small = static_cast<time::rep>(nanoseconds_a_byte * static_cast<double>(o.small));
  return lane{.latency = std::max(time(0), small - time(of_small)),
              .bytes_per_second = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(1e9 / nanoseconds_a_byte))};
}

}  // namespace detail

/// Between a device pool's memory and a host pool's, of which it borrows `o.large` each. Errors: the pools', the
/// copier's, the policy's.
template <Pool Device, Pool Host, StreamPolicy Streams, Copier Copies>
[[nodiscard]] result<channel> calibrate(Device& device, Host& host, Streams& streams, Copies& copies,
                                        calibrate_options const& o = {}) noexcept {
  result<address> const there = device.allocate(o.large, copies.stream_in());
  if (!there) return failure(there.error());
  result<address> const here = host.allocate(o.large, stream{});
  result<channel> measured = failure(here ? error{} : here.error());
  if (here) {
    auto const in = detail::measure_lane(streams, copies.stream_in(), o,
                                         [&](bytes n) noexcept { return copies.copy_in(*there, *here, n); });
    auto const out = detail::measure_lane(streams, copies.stream_out(), o,
                                          [&](bytes n) noexcept { return copies.copy_out(*here, *there, n); });
    if (in && out) measured = channel{.out = *out, .in = *in};
    else measured = failure(in ? out.error() : in.error());
    if (!measured) (void)streams.synchronize_device();  // a copy may be under way
    (void)host.deallocate(*here);
  }
  (void)device.deallocate(*there);
  return measured;
}

}  // namespace gmlake::swap
