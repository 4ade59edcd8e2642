/// A class that lacks one requirement of the concepts, or gets one wrong, does not model them.

#include "gmlake/observe/observer.hpp"

#include "gmlake/observe/counters.hpp"

namespace gmlake {
namespace {

struct model {
  void allocated(block_event const&) noexcept;
  void deallocated(block_event const&) noexcept;
  void created(address, bytes) noexcept;
  void released(address, bytes) noexcept;
  void stitched(stitch_event const&) noexcept;
  void reused(stitch_event const&) noexcept;
  void evicted(stitch_event const&) noexcept;
  void failed(memory_account const&) noexcept;
  pool_stats const& seen() const noexcept;
};
static_assert(Observer<model> && CountingObserver<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!Observer<immovable>);

// Each of its calls: missing, throwing, answering.
struct no_allocated : model {
  void allocated(block_event const&) noexcept = delete;
};
struct throwing_allocated : model {
  void allocated(block_event const&);
};
struct answering_allocated : model {
  bool allocated(block_event const&) noexcept;
};
static_assert(!Observer<no_allocated> && !Observer<throwing_allocated> && !Observer<answering_allocated>);

struct no_deallocated : model {
  void deallocated(block_event const&) noexcept = delete;
};
struct throwing_deallocated : model {
  void deallocated(block_event const&);
};
struct answering_deallocated : model {
  bool deallocated(block_event const&) noexcept;
};
static_assert(!Observer<no_deallocated> && !Observer<throwing_deallocated> && !Observer<answering_deallocated>);

struct no_created : model {
  void created(address, bytes) noexcept = delete;
};
struct throwing_created : model {
  void created(address, bytes);
};
struct answering_created : model {
  bool created(address, bytes) noexcept;
};
static_assert(!Observer<no_created> && !Observer<throwing_created> && !Observer<answering_created>);

struct no_released : model {
  void released(address, bytes) noexcept = delete;
};
struct throwing_released : model {
  void released(address, bytes);
};
struct answering_released : model {
  bool released(address, bytes) noexcept;
};
static_assert(!Observer<no_released> && !Observer<throwing_released> && !Observer<answering_released>);

struct no_stitched : model {
  void stitched(stitch_event const&) noexcept = delete;
};
struct throwing_stitched : model {
  void stitched(stitch_event const&);
};
struct answering_stitched : model {
  bool stitched(stitch_event const&) noexcept;
};
static_assert(!Observer<no_stitched> && !Observer<throwing_stitched> && !Observer<answering_stitched>);

struct no_reused : model {
  void reused(stitch_event const&) noexcept = delete;
};
struct throwing_reused : model {
  void reused(stitch_event const&);
};
struct answering_reused : model {
  bool reused(stitch_event const&) noexcept;
};
static_assert(!Observer<no_reused> && !Observer<throwing_reused> && !Observer<answering_reused>);

struct no_evicted : model {
  void evicted(stitch_event const&) noexcept = delete;
};
struct throwing_evicted : model {
  void evicted(stitch_event const&);
};
struct answering_evicted : model {
  bool evicted(stitch_event const&) noexcept;
};
static_assert(!Observer<no_evicted> && !Observer<throwing_evicted> && !Observer<answering_evicted>);

struct no_failed : model {
  void failed(memory_account const&) noexcept = delete;
};
struct throwing_failed : model {
  void failed(memory_account const&);
};
struct answering_failed : model {
  bool failed(memory_account const&) noexcept;
};
static_assert(!Observer<no_failed> && !Observer<throwing_failed> && !Observer<answering_failed>);

// The refinement: without it, it is an observer still.
struct no_seen : model {
  pool_stats const& seen() const noexcept = delete;
};
struct throwing_seen : model {
  pool_stats const& seen() const;
};
struct copying_seen : model {
  pool_stats seen() const noexcept;
};
struct mutable_seen : model {
  pool_stats const& seen() noexcept;
};
static_assert(Observer<no_seen> && !CountingObserver<no_seen> && !CountingObserver<throwing_seen>);
static_assert(!CountingObserver<copying_seen> && !CountingObserver<mutable_seen>);

}  // namespace
}  // namespace gmlake
