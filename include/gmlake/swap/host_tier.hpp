#pragma once
/// Where copies are: in the host pool's pinned memory, and in a file below it. When the pool is full, the copies that
/// have been there longest are written to the file, and their memory serves others.
///
/// What holds: a copy is in one of the two, whole; only copies that were given to `keep` are written to the file.
/// Writing takes the calling thread's time.

#include <utility>

#include "gmlake/pool/pool_concept.hpp"
#include "gmlake/swap/backing_store.hpp"
#include "gmlake/swap/in_place.hpp"
#include "gmlake/swap/swap_stats.hpp"
#include "gmlake/swap/swappable.hpp"

namespace gmlake::swap {

template <Pool Host, BackingStore Below, class Block>
class host_tier {
 public:
  /// `host` and `seen` outlive it. Of the host pool's memory it takes `stages` pieces of `stage_size`, through which
  /// what is in the file comes back; where it has no room for them, the file is not used.
  host_tier(Host& host, Below below, bytes stage_size, std::size_t stages, swap_stats& seen) noexcept
      : host_(&host), below_(std::move(below)), stage_size_(stage_size), seen_(&seen) {
    if (below_.capacity() == 0) return;
    if (result<address> const at = host_->allocate(stage_size * stages, stream{})) stages_ = *at;
  }
  host_tier(host_tier const&) = delete;
  host_tier& operator=(host_tier const&) = delete;
  ~host_tier() {
    if (stages_ != address{}) (void)host_->deallocate(stages_);
  }

  [[nodiscard]] Host& host() noexcept { return *host_; }
  /// Whether there is a file below.
  [[nodiscard]] bool files() const noexcept { return stages_ != address{}; }

  /// Pinned memory for a copy; where `showable`, on chunks that can be shown elsewhere. Errors: `out_of_host_memory`
  /// where neither the pool nor the file has room for more; the pool's.
  [[nodiscard]] result<address> take(bytes n, bool showable) noexcept {
    result<address> at = try_take(n, showable);
    while (!at && at.error().code == errc::out_of_memory && file_oldest()) at = try_take(n, showable);
    if (at) {
      seen_->on_host += n;
      return at;
    }
    error const& e = at.error();
    return failure(e.code == errc::out_of_memory ? errc::out_of_host_memory : e.code, "swap", e.native);
  }
  /// Precondition: no copy reads or writes it any more.
  void give_back(address copy, bytes n) noexcept {
    (void)host_->deallocate(copy);
    seen_->on_host -= n;
  }

  /// Whether the block has a copy at all.
  [[nodiscard]] static bool holds(Block const& b) noexcept { return b.copy != address{} || b.filed; }

  /// The block's copy may be written to the file from now on, after those kept before.
  void keep(Block& b) noexcept {
    if (b.copy == address{} || b.kept) return;
    kept_.push_back(b);
    b.kept = true;
  }
  void unkeep(Block& b) noexcept {
    if (!b.kept) return;
    kept_.erase(kept_list::s_iterator_to(b));
    b.kept = false;
  }

  /// The block's copy in the file is needed no more; no effect where it has none.
  void forget_filed(Block& b) noexcept {
    if (!b.filed) return;
    below_.release(*b.filed, b.size);
    b.filed.reset();
    seen_->on_file -= b.size;
  }
  /// Brings n bytes of a copy in the file to pinned memory. Error: the store's.
  [[nodiscard]] result<void> read(Block const& b, bytes offset, address to, bytes n) noexcept {
    return below_.read(to, *b.filed, offset, n);
  }

  [[nodiscard]] address stage(std::size_t i) const noexcept { return stages_ + i * stage_size_; }
  [[nodiscard]] bytes stage_size() const noexcept { return stage_size_; }

 private:
  using kept_list = hooked_list<Block, &Block::in_kept>;

  [[nodiscard]] result<address> try_take(bytes n, [[maybe_unused]] bool showable) noexcept {
    if constexpr (LendingPool<Host>) {
      if (showable) return host_->allocate(request{.size = n, .where = placement::movable});
    }
    return host_->allocate(n, stream{});
  }

  /// Whether some pinned memory has become free. A copy that the file has no room for is passed over; a file that fails
  /// otherwise is not asked further.
  [[nodiscard]] bool file_oldest() noexcept {
    if (!files()) return false;
    for (Block& b : kept_) {
      result<slot> const where = below_.write(b.copy, b.size);
      if (!where && where.error().code == errc::out_of_memory && where.error().native == 0) continue;
      if (!where) {
        ++seen_->failures;
        return false;
      }
      unkeep(b);
      b.filed = *where;
      give_back(std::exchange(b.copy, address{}), b.size);
      seen_->on_file += b.size;
      ++seen_->filed;
      return true;
    }
    return false;
  }

  Host* host_;
  Below below_;
  bytes stage_size_;
  address stages_{};
  kept_list kept_;  ///< absent blocks with copies in pinned memory, oldest first
  swap_stats* seen_;
};

}  // namespace gmlake::swap
