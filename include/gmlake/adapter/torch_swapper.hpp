#pragma once
/// Swapping on one device, as the adapter sees it: blocks that can leave for host memory, moved by hand or by a pager
/// that keeps the program within a limit.

#include <cstdint>
#include <optional>
#include <span>

#include "gmlake/core/result.hpp"
#include "gmlake/core/types.hpp"
#include "gmlake/pool/pool_options.hpp"
#include "gmlake/swap/block_use.hpp"
#include "gmlake/swap/channel.hpp"
#include "gmlake/swap/measured_time.hpp"
#include "gmlake/swap/pager_options.hpp"
#include "gmlake/swap/swap_stats.hpp"
#include "gmlake/swap/swappable.hpp"
#include "gmlake/swap/swapping_pool.hpp"

namespace gmlake {

struct torch_swap_figures {
  swap::swap_stats swaps;
  swap::pager_stats pages;
  std::optional<swap::forecast> expected;  ///< of the schedule in force
  swap::channel link;                      ///< as calibrated
  swap::channel link_now;                  ///< as copies have turned out to take
};

class torch_swapper {
 public:
  /// Requests below that are not swappable: a block that is owns whole granules, of 2 MiB.
  static constexpr bytes smallest = 4_MiB;

  virtual ~torch_swapper() = default;

  /// Whether this thread is in a swapper's call, which holds locks: to free a block then would be to wait for itself.
  [[nodiscard]] static bool& busy() noexcept {
    static thread_local bool one = false;
    return one;
  }

  // ---- blocks, of the main pool; swappable ones or not

  /// Swappable, in the group, if it is large enough: `smallest` where it is asked for, else as a pager likes it.
  [[nodiscard]] virtual result<address> allocate(bytes n, stream on, swap::tag group, bool asked) noexcept = 0;
  [[nodiscard]] virtual result<void> deallocate(address block) noexcept = 0;
  [[nodiscard]] virtual result<void> record_stream(address block, stream on) noexcept = 0;

  // ---- by hand; see `swap::swapping_pool`

  [[nodiscard]] virtual result<void> swap_out(address block, stream last) noexcept = 0;
  [[nodiscard]] virtual result<void> swap_in(address block, stream on) noexcept = 0;
  [[nodiscard]] virtual result<void> prefetch(address block) noexcept = 0;
  /// Whether the block can leave.
  [[nodiscard]] virtual bool knows(address block) const noexcept = 0;
  /// Brings a block back, where it stays until it is unpinned as often. No effect on what is not swappable.
  [[nodiscard]] virtual result<void> pin(address block, stream on) noexcept = 0;
  /// Error: `invalid_argument` where it isn't pinned. No effect on what is not swappable.
  [[nodiscard]] virtual result<void> unpin(address block) noexcept = 0;
  /// Whether nobody writes the block from now on: its host copy stays good then. No effect on what is not swappable.
  [[nodiscard]] virtual result<void> set_read_only(address block, bool read_only) noexcept = 0;
  [[nodiscard]] virtual swap::pause_outcome pause(swap::tag group, bool keeping) noexcept = 0;
  [[nodiscard]] virtual swap::pause_outcome resume(swap::tag group) noexcept = 0;
  /// Makes the host pool hold so much free memory, as pinning takes long. Errors: the host pool's.
  [[nodiscard]] virtual result<void> pin_ahead(bytes n) noexcept = 0;

  // ---- by a pager; see `swap::pager`

  /// The program is kept within so much device memory from now on, and all that it allocates is swappable. Whether all
  /// that is needed now has room there.
  [[nodiscard]] virtual bool start(bytes limit) noexcept = 0;
  /// Brings everything back, within another limit.
  [[nodiscard]] virtual swap::pause_outcome stop(bytes limit) noexcept = 0;
  /// Whether it has been started and not stopped.
  [[nodiscard]] virtual bool paging() const noexcept = 0;
  /// This thread's operation, about to be launched on `on`, uses these.
  [[nodiscard]] virtual result<void> access(std::span<swap::block_use const> uses, stream on) noexcept = 0;
  /// It has been launched. Its number, for `took`.
  [[nodiscard]] virtual std::int64_t end_operation(stream on) noexcept = 0;
  /// How long it ran; see `swap::measured_time` for what was guessed.
  virtual void took(std::int64_t operation, swap::measured_time time) noexcept = 0;
  /// The job's next step, whose operations are to be timed or not.
  virtual void begin_step(stream on, bool timed) noexcept = 0;
  /// Whether this thread's operations on `on` are to be; before their job's first step: they are.
  [[nodiscard]] virtual bool timed(stream on) noexcept = 0;
  /// What is queued on `on` from now on is a job of its own, with its own steps: see `swap::pager`. A thread's work on
  /// streams that are no job's counts to the job that it has worked for last. Errors: `invalid_argument` where the
  /// stream is a job's already, `out_of_host_memory`.
  [[nodiscard]] virtual result<void> begin_job(stream on, std::uint32_t priority) noexcept = 0;
  /// Precondition: none of its operations is running. Error: `invalid_argument` where the stream is no job's.
  [[nodiscard]] virtual result<void> end_job(stream on) noexcept = 0;

  [[nodiscard]] virtual torch_swap_figures figures() const noexcept = 0;
};

}  // namespace gmlake
