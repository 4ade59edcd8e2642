#pragma once
/// How full a pool was over a replay: at most so many buckets of events, each with the highest values it saw, so that
/// peaks are exact however long the trace. A hook for `replay`; reading a pool's statistics at every event costs more
/// than the event, so this belongs in a pass that nobody times.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gmlake/observe/snapshot.hpp"
#include "gmlake/trace/replay.hpp"

namespace gmlake::trace {

struct time_series {
  struct sample {
    bytes requested = 0;
    bytes live = 0;
    bytes reserved = 0;
  };
  std::size_t events = 0;             ///< of the whole trace
  std::size_t events_per_sample = 1;  ///< the last sample may have fewer
  std::vector<sample> samples;        ///< those of a replay that failed end with the failure
};

/// Samples `pool` after every event, and takes its snapshot, where it can tell, after the one at `peak_event`.
template <Pool P>
class sampler : public no_hooks {
 public:
  /// Preconditions: `buckets` is not 0; `pool` outlives the sampler.
  sampler(P const& pool, std::size_t events, std::size_t peak_event, std::size_t buckets = 2000)
      : pool_(pool), peak_event_(peak_event) {
    series_.events = events;
    series_.events_per_sample = std::max<std::size_t>(1, (events + buckets - 1) / buckets);
  }

  void passed(std::size_t index) {
    pool_stats const s = pool_.stats();
    if (index / series_.events_per_sample == series_.samples.size()) series_.samples.emplace_back();
    time_series::sample& highest = series_.samples.back();
    highest.requested = std::max(highest.requested, s.requested.now);
    highest.live = std::max(highest.live, s.live.now);
    highest.reserved = std::max(highest.reserved, s.reserved.now);
    if constexpr (SnapshotPool<P>) {
      if (index == peak_event_) peak_ = pool_.snapshot();
    }
  }

  [[nodiscard]] time_series& series() noexcept { return series_; }
  [[nodiscard]] std::optional<pool_snapshot>& peak() noexcept { return peak_; }

 private:
  P const& pool_;
  std::size_t peak_event_;
  time_series series_;
  std::optional<pool_snapshot> peak_;
};

}  // namespace gmlake::trace
