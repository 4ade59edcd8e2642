#pragma once
/// Has contents that were discarded made again, by their jobs' callbacks, for whoever wants them: one thread for each
/// block at a time, without the pager's lock; others that want the block wait for it on the host.
///
/// What holds: a page that is being made again is held, so that it stays, and is neither freed nor given another
/// callback meanwhile.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "gmlake/swap/pager_job.hpp"
#include "gmlake/swap/pager_options.hpp"

namespace gmlake::swap {

/// `Pages` is a `resident_set`. Every call is made under the pager's lock, which it may give up while it waits.
template <class Pages>
class remaker {
 public:
  using held_lock = std::unique_lock<std::mutex>;

  remaker(Pages& pages, std::vector<std::unique_ptr<pager_job>>& jobs, pager_stats& seen) noexcept
      : pages_(&pages), jobs_(&jobs), seen_(&seen) {}

  /// The page, once no other thread is making it again; null where there is none.
  [[nodiscard]] page* find(held_lock& lock, address at) noexcept {
    for (;;) {
      page* const p = pages_->find(at);
      if (p == nullptr || p->recomputed_by == std::thread::id{} || is_own(*p)) return p;
      made_.wait(lock);
    }
  }
  /// Whether this thread is making it again.
  [[nodiscard]] static bool is_own(page const& p) noexcept { return p.recomputed_by == std::this_thread::get_id(); }

  /// Makes a page's contents again that this thread's operation holds; what the callback uses, it holds too. Error: the
  /// callback's, then it is to be tried again.
  [[nodiscard]] result<void> make(held_lock& lock, pager_job& j, page& p, stream on) noexcept {
    recomputation const& of = *p.recompute;
    address const at = p.begin;
    bytes const n = p.size;
    p.recomputed_by = std::this_thread::get_id();
    page* const outer = std::exchange(j.mine()->recomputing, &p);
    lock.unlock();
    result<void> done = of.how(at, n, on);
    lock.lock();
    j.mine()->recomputing = outer;
    p.recomputed_by = {};
    made_.notify_all();
    if (!done) return done;
    // A copy that was made meanwhile is not of these contents.
    if (p.read_only) done = pages_->pool().set_read_only(at, false);
    if (p.read_only && done) done = pages_->pool().set_read_only(at, true);
    if (!done) return done;
    p.discarded = false;
    ++seen_->recomputed;
    return done;
  }

  /// The same outside of operations: what the callback uses may leave again when it has returned. Precondition: the
  /// page is on the device. Errors: the callback's, `out_of_host_memory`.
  [[nodiscard]] result<void> make_apart(held_lock& lock, page& p, stream on) noexcept {
    pager_job& j = *(*jobs_)[p.job];
    running* r = j.mine();
    if (r == nullptr || !r->room_to_hold()) return failure(errc::out_of_host_memory, "pager");
    std::size_t const held = r->holds.size();
    pages_->hold(p);
    r->holds.push_back({&p});
    result<void> done = make(lock, j, p, on);
    for (r = j.mine(); r->holds.size() > held; r->holds.pop_back()) pages_->let_go(*r->holds.back().of);
    return done;
  }

  /// Whatever is on the device without its contents. Returns the first error; the others are made then.
  [[nodiscard]] result<void> make_all(held_lock& lock) noexcept {
    std::vector<address> blank;
    try {
      pages_->each([&](page& p) {
        if (p.discarded && p.where == page::place::here) blank.push_back(p.begin);
      });
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "pager");
    }
    result<void> first;
    for (address const at : blank) {
      page* const p = find(lock, at);
      if (p == nullptr || !p->discarded || p->where != page::place::here || is_own(*p)) continue;
      result<void> done = make_apart(lock, *p, p->last);
      if (!done && first) first = done;
    }
    return first;
  }

 private:
  Pages* pages_;
  std::vector<std::unique_ptr<pager_job>>* jobs_;
  pager_stats* seen_;
  std::condition_variable made_;
};

}  // namespace gmlake::swap
