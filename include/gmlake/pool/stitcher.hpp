#pragma once
/// Serves blocks from stitches: an idle one whose memory is free, or a new one from what the stitch policy chooses.

#include <algorithm>
#include <span>
#include <utility>

#include "gmlake/pool/stitch_maker.hpp"

namespace gmlake {

template <PoolConfig Config>
class stitcher : private stitch_maker<Config> {
  using base = stitch_maker<Config>;
  using base::p_;

 public:
  using base::base;

  /// A block of n bytes on an idle stitch; null where none has all the memory it needs free.
  [[nodiscard]] result<block*> reuse(stream_index user, bytes n, bytes alignment) noexcept {
    stitch* const s = p_->stitches.find(n, [&](stitch& idle) noexcept {
      return p_->stitch.reuses(idle.capacity(), n) && is_aligned(idle.begin + idle.base, alignment) &&
             usable(user, idle, n);
    });
    if (s == nullptr) return nullptr;
    if (!base::prepare(*s, n)) return failure(errc::out_of_host_memory, "stitch");
    return &wake(user, *s, n);
  }

  /// A block of n bytes at `at`, on the idle stitch that serves blocks there; null where there is none, or its memory
  /// is not all free; where `ordered`, at once for the user, else in whatever order it was used.
  [[nodiscard]] result<block*> reuse_at(address at, stream_index user, bytes n, bool ordered) noexcept {
    for (stitch& s : p_->stitches.all()) {
      if (s.begin + s.base != at || s.serves != nullptr || s.capacity() < n) continue;
      bool const free =
          ordered ? usable(user, s, n) : base::each_run(s, n, [&](chunk& c, address begin, bytes size) noexcept {
            return p_->space.is_free(c, begin, size);
          });
      if (!free) return nullptr;
      if (!base::prepare(s, n)) return failure(errc::out_of_host_memory, "stitch");
      return &wake(user, s, n);
    }
    return nullptr;
  }

  /// A block of n bytes on a new stitch of free memory, or the shortfall. Errors: the driver's, and
  /// `out_of_host_memory`; then nothing has changed.
  [[nodiscard]] result<stitched> make(stream_index user, bytes n, bytes alignment) noexcept {
    if (!base::collect({user, user})) return failure(errc::out_of_host_memory, "stitch");
    if (alignment > block_alignment) base::tails_.clear();
    stitch_choice const choice = base::choose(base::whole_, n);
    if (choice.shortfall > 0) return stitched{nullptr, choice.shortfall};
    return base::on_new(user, n, base::chosen(choice), alignment, 0);
  }

  /// The block of a stitch has been freed: its memory goes back to the lake, the mapping into the cache; where nothing
  /// is mapped any more, the addresses go back to the device. The block's node is released.
  void end(block& b, stream_index on, tick stamp) noexcept {
    base::give_back_taken(b, on, stamp);
    stitch& s = *b.view;
    // What was handed on may still be read there, and the stamp of a stream that is gone is an old one.
    if (s.count == 0) p_->stitches.discard(s);
    else p_->stitches.rest(s, s.vacated ? std::max(stamp, s.behind_stamp) : stamp);
    p_->space.home().release_block(b);
  }

 private:
  /// Whether the user may have the memory beneath an idle stitch's first n bytes at once.
  [[nodiscard]] bool usable(stream_index user, stitch& s, bytes n) noexcept {
    return base::each_run(
        s, n, [&](chunk& c, address begin, bytes size) noexcept { return p_->space.usable(user, c, begin, size); });
  }

  /// A block of n bytes on an idle stitch. Precondition: nodes prepared.
  [[nodiscard]] block& wake(stream_index user, stitch& s, bytes n) noexcept {
    p_->stitches.wake(s);
    p_->observer.reused({s.begin, s.size, s.count});
    return base::serve(user, s, n);
  }
};

}  // namespace gmlake
