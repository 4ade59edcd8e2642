#pragma once
/// The order of a pool's frees against its streams' work: which stamps each stream has passed, as far as the host knows
/// and as far as other streams have been made to wait.
///
/// Every free takes a stamp, a tick of one clock for all streams. A stamp of stream s is *passed* once a fence recorded
/// on s at or after it is reached; it is *ordered* before stream t's next work if t = s, if it is passed, or if t has
/// waited for such a fence. Fences are recorded only when a second stream is there to ask, and then once for many
/// frees; a program with one stream records none until memory must leave the device.

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "gmlake/stream/stream_policy.hpp"
#include "gmlake/stream/tick.hpp"

namespace gmlake {

template <StreamPolicy Streams>
class timeline {
 public:
  explicit timeline(Streams streams) noexcept : streams_(std::move(streams)) {}
  timeline(timeline&&) = delete;
  ~timeline() {
    for (lane& l : lanes_) {
      for (mark& m : l.marks) streams_.release(m.point);
    }
  }

  [[nodiscard]] Streams& streams() noexcept { return streams_; }
  /// Whether one stream's memory may have to be kept from another.
  [[nodiscard]] bool shared() const noexcept { return lanes_.size() > 2; }
  /// Places in the table, `nobody`'s included: streams have those from nobody + 1 on.
  [[nodiscard]] stream_index lanes() const noexcept { return static_cast<stream_index>(lanes_.size()); }
  [[nodiscard]] stream name(stream_index i) const noexcept { return lanes_[i].name; }
  [[nodiscard]] std::uint64_t device_waits() const noexcept { return device_waits_; }
  [[nodiscard]] std::uint64_t host_waits() const noexcept { return host_waits_; }

  /// The stream's place in the table if it was named last, as it mostly was; otherwise `nobody`.
  [[nodiscard]] stream_index if_last(stream s) const noexcept {
    return last_ != none && lanes_[last_].name == s ? last_ : nobody;
  }

  /// The stream's place in the table, entered at its first mention. Error: `out_of_host_memory`.
  [[nodiscard, gnu::cold]] result<stream_index> index_of(stream s) noexcept {
    for (stream_index i = first; i < lanes_.size(); ++i) {
      if (lanes_[i].name == s && !lanes_[i].retired) return last_ = i;
    }
    for (stream_index i = first; i < lanes_.size(); ++i) {
      if (lanes_[i].retired && lanes_[i].now <= lanes_[i].passed) return last_ = revive(i, s);
    }
    try {
      if (lanes_.empty()) lanes_.emplace_back();
      lanes_.emplace_back();
      for (lane& l : lanes_) l.ordered.resize(lanes_.size());
    } catch (std::bad_alloc const&) {
      if (lanes_.size() > first && lanes_.back().ordered.size() < lanes_.size()) lanes_.pop_back();
      return failure(errc::out_of_host_memory, "stream table");
    }
    lanes_.back().name = s;
    return last_ = static_cast<stream_index>(lanes_.size() - 1);
  }

  /// Takes back the entry that `index_of` has just made.
  void forget_last() noexcept {
    lanes_.pop_back();
    for (lane& l : lanes_) l.ordered.resize(lanes_.size());
    last_ = none;
  }

  /// The stamp of a free on stream i. Where everything runs in host order, it is passed already.
  [[nodiscard]] tick stamp(stream_index i) noexcept {
    if (!streams_.concurrent()) return 0;
    lane& l = lanes_[i];
    if (l.retired) [[unlikely]]
      return l.now;
    ++clock_;
    if (l.unfenced++ == 0) l.unfenced_from = clock_;
    return l.now = clock_;
  }

  /// The last stamp given out for stream i.
  [[nodiscard]] tick latest(stream_index i) const noexcept { return lanes_[i].now; }
  /// Whether work queued on i up to `t` is known to the host to be done.
  [[nodiscard]] bool passed(stream_index i, tick t) const noexcept { return i == nobody || t <= lanes_[i].passed; }
  /// Whether what is queued next on `user` comes after the work on i up to t.
  [[nodiscard]] bool ordered(stream_index user, stream_index i, tick t) const noexcept {
    return user == i || passed(i, t) || t <= lanes_[user].ordered[i];
  }
  /// Whether everything freed up to t, on whatever stream, is known to be done with.
  [[nodiscard]] bool all_passed(tick t) const noexcept {
    return std::ranges::all_of(lanes_, [t](lane const& l) {
      if (std::min(t, l.now) <= l.passed) return true;
      return t < (l.marks.empty() ? l.unfenced_from : l.marks.front().from);
    });
  }

  /// Whether everything freed so far is.
  [[nodiscard]] bool quiet() const noexcept {
    return std::ranges::all_of(lanes_, [](lane const& l) { return l.now <= l.passed; });
  }
  /// A stream that is still there; `nobody` where none is.
  [[nodiscard]] stream_index someone() const noexcept {
    for (stream_index i = first; i < lanes_.size(); ++i) {
      if (!lanes_[i].retired) return i;
    }
    return nobody;
  }

  /// Learns what stream i has passed and records a fence, where enough was freed since the last one and not too many
  /// are under way already; for streams whose memory others may want.
  [[nodiscard]] result<void> note_free(stream_index i) noexcept {
    if (lanes_[i].unfenced < frees_a_fence) return {};
    if (result<bool> news = poll(lanes_[i]); !news) return failure(news.error());
    return lanes_[i].marks.size() < most_fences ? fence_off(i) : result<void>{};
  }

  /// Learns which fences have been reached. Returns whether any was.
  [[nodiscard]] result<bool> poll() noexcept {
    bool news = false;
    for (lane& l : lanes_) {
      result<bool> const more = poll(l);
      if (!more) return failure(more.error());
      news = news || *more;
    }
    return news;
  }

  /// Makes sure that fences cover all frees up to t, on whatever stream, so that a later `poll` can tell; foreign
  /// streams are left out.
  [[nodiscard]] result<void> fence_all(tick t) noexcept {
    for (stream_index i = first; i < lanes_.size(); ++i) {
      lane const& l = lanes_[i];
      tick const covered = l.marks.empty() ? l.passed : l.marks.back().upto;
      if (std::min(t, l.now) <= covered) continue;
      if (foreign(l.name)) continue;
      if (result<void> done = fence_off(i); !done) return done;
    }
    return {};
  }

  /// The same as `all_passed`, after asking. Where it still isn't known, it will be soon: fences cover it.
  [[nodiscard]] result<bool> learn_all_passed(tick t) noexcept {
    if (all_passed(t)) return true;
    if (result<void> fenced = fence_all(t); !fenced) return failure(fenced.error());
    if (result<bool> news = poll(); !news) return failure(news.error());
    return all_passed(t);
  }

  /// `user` waits on the device for the work on i up to t.
  [[nodiscard]] result<void> wait(stream_index user, stream_index i, tick t) noexcept {
    if (ordered(user, i, t)) return {};
    if (lanes_[i].marks.empty() || lanes_[i].marks.back().upto < t) {
      if (result<void> done = fence_off(i); !done) return done;
      if (ordered(user, i, t)) return {};
    }
    auto const covering = std::ranges::find_if(lanes_[i].marks, [t](mark const& m) { return m.upto >= t; });
    if (result<void> done = streams_.wait(lanes_[user].name, covering->point); !done) return done;
    lanes_[user].ordered[i] = covering->upto;
    ++device_waits_;
    return {};
  }

  /// The host waits until all work freed so far is done with. Returns whether anything had to be waited for.
  [[nodiscard]] result<bool> synchronize() noexcept {
    bool waited = false;
    for (stream_index i = first; i < lanes_.size(); ++i) {
      lane& l = lanes_[i];
      if (l.now <= l.passed) continue;
      if (foreign(l.name)) {
        if (result<void> done = all_done(); !done) return failure(done.error());
        return true;
      }
      if (result<void> done = fence_off(i); !done) return failure(done.error());
      if (l.marks.empty()) continue;
      if (result<void> done = streams_.synchronize(l.marks.back().point); !done) return failure(done.error());
      while (!l.marks.empty()) pass(l);
      ++host_waits_;
      waited = true;
    }
    return waited;
  }

  /// Stream i's frees so far are over, to whoever waits for them, as soon as its work so far is: not when some more is.
  /// Blocks freed there under different stamps are kept apart until they are. Errors: the stream policy's, then they
  /// come under a later fence.
  [[nodiscard]] result<void> fence_apart(stream_index i) noexcept {
    lanes_[i].apart = true;
    return fence_off(i);
  }
  /// Whether they are: while there is one stream, nobody waits for it.
  [[nodiscard]] bool apart(stream_index i) const noexcept { return lanes_[i].apart && shared(); }

  /// The stream is about to be destroyed: a fence is set behind all its work while that can still be done, which then
  /// stands for whatever else is freed on it. Its name may come back as another stream's.
  [[nodiscard]] result<void> retire(stream s) noexcept {
    for (stream_index i = first; i < lanes_.size(); ++i) {
      if (lanes_[i].name != s || lanes_[i].retired) continue;
      (void)stamp(i);
      if (result<void> done = fence_off(i); !done) return done;
      lanes_[i].retired = true;
      last_ = none;
      return {};
    }
    return {};
  }

 private:
  struct mark {
    typename Streams::fence point;
    tick from = 0, upto = 0;  ///< the stamps that it covers
  };
  struct lane {
    stream name{};
    tick now = 0;                ///< the last stamp given out
    tick passed = 0;             ///< stamps up to here are known to be done
    std::uint64_t unfenced = 0;  ///< frees since the last fence
    tick unfenced_from = 0;      ///< the first of them
    std::vector<mark> marks;
    bool retired = false;       ///< its stream is gone; what it did is fenced
    bool apart = false;         ///< others wait for single frees of it
    std::vector<tick> ordered;  ///< for each other stream: what this one has waited for
  };
  static constexpr stream_index first = nobody + 1;
  static constexpr stream_index none = ~stream_index{0};
  /// Often enough to know early that memory is free, rarely enough that events cost nothing beside the frees.
  static constexpr std::uint64_t frees_a_fence = 32;
  /// A host that runs further ahead learns of its frees in coarser steps.
  static constexpr std::size_t most_fences = 256;

  /// A retired lane whose work is done takes up a new stream; its memory comes along.
  [[nodiscard]] stream_index revive(stream_index i, stream s) noexcept {
    lane& l = lanes_[i];
    l.name = s;
    l.retired = l.apart = false;
    std::ranges::fill(l.ordered, tick{0});
    return i;
  }

  [[nodiscard]] bool foreign(stream s) const noexcept {
    if constexpr (SelectiveStreamPolicy<Streams>) return streams_.foreign(s);
    else return false;
  }

  [[nodiscard]] result<bool> poll(lane& l) noexcept {
    bool news = false;
    while (!l.marks.empty()) {
      result<bool> const there = streams_.reached(l.marks.front().point);
      if (!there) return failure(there.error());
      if (!*there) break;
      pass(l);
      news = true;
    }
    return news;
  }

  [[nodiscard]] result<void> fence_off(stream_index i) noexcept {
    lane& l = lanes_[i];
    if (l.unfenced == 0) return {};
    try {
      if (l.marks.size() == l.marks.capacity()) l.marks.reserve(2 * l.marks.size() + 1);
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "record");
    }
    result<typename Streams::fence> point = streams_.record(l.name);
    if (!point) return lost(point.error());
    l.marks.push_back({std::move(*point), l.unfenced_from, l.now});
    l.unfenced = 0;
    return {};
  }

  /// A stream that can't record any more was destroyed: once the device is idle, all is done.
  [[nodiscard]] result<void> lost(error const& e) noexcept {
    return e.code == errc::driver_failure ? all_done() : result<void>(failure(e));
  }

  /// The host waits for the whole device.
  [[nodiscard]] result<void> all_done() noexcept {
    if (result<void> done = streams_.synchronize_device(); !done) return done;
    ++host_waits_;
    for (lane& l : lanes_) {
      while (!l.marks.empty()) pass(l);
      l.passed = l.now;
      l.unfenced = 0;
    }
    return {};
  }

  void pass(lane& l) noexcept {
    l.passed = std::max(l.passed, l.marks.front().upto);
    streams_.release(l.marks.front().point);
    l.marks.erase(l.marks.begin());
  }

  Streams streams_;
  std::vector<lane> lanes_;   ///< `nobody`'s first
  stream_index last_ = none;  ///< whom `index_of` was asked for last
  tick clock_ = 0;
  std::uint64_t device_waits_ = 0;
  std::uint64_t host_waits_ = 0;
};

}  // namespace gmlake
