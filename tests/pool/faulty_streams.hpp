#pragma once
/// Simulated streams whose calls fail on demand: with `driver_failure`, as after the stream was destroyed, or with
/// `not_supported`, as while it is captured into a graph. A call that is made to fail does nothing.

#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "gmlake/stream/simulated_streams.hpp"

namespace gmlake::test {

enum class stream_call : std::uint8_t { record, reached, wait, synchronize, synchronize_device };

struct stream_fault_plan {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t first = never;           ///< calls that succeed first, of those that count
  std::uint64_t count = 1;               ///< calls that fail then, in a row; `endless`
  std::optional<stream_call> only = {};  ///< only calls of this kind count and fail
  errc code = errc::driver_failure;
};

class faulty_streams {
 public:
  using fence = simulated_streams::fence;

  explicit faulty_streams(std::shared_ptr<simulated_timeline> timeline) noexcept : wrapped_(std::move(timeline)) {}

  /// Puts `plan` in the place of the one before; it counts from now.
  void arm(stream_fault_plan const& plan) noexcept {
    plan_ = plan;
    counted_ = 0;
  }
  void disarm() noexcept { arm({}); }
  /// Calls made to fail, since the beginning.
  [[nodiscard]] std::uint64_t faults() const noexcept { return faults_; }

  [[nodiscard]] bool concurrent() const noexcept { return true; }
  [[nodiscard]] result<fence> record(stream s) noexcept {
    if (fails(stream_call::record)) return failure(plan_.code, "record: injected");
    return wrapped_.record(s);
  }
  [[nodiscard]] result<bool> reached(fence& f) noexcept {
    if (fails(stream_call::reached)) return failure(plan_.code, "reached: injected");
    return wrapped_.reached(f);
  }
  [[nodiscard]] result<void> wait(stream s, fence& f) noexcept {
    if (fails(stream_call::wait)) return failure(plan_.code, "wait: injected");
    return wrapped_.wait(s, f);
  }
  [[nodiscard]] result<void> synchronize(fence& f) noexcept {
    if (fails(stream_call::synchronize)) return failure(plan_.code, "synchronize: injected");
    return wrapped_.synchronize(f);
  }
  [[nodiscard]] result<void> synchronize_device() noexcept {
    if (fails(stream_call::synchronize_device)) return failure(plan_.code, "synchronize_device: injected");
    return wrapped_.synchronize_device();
  }
  void release(fence& f) noexcept { wrapped_.release(f); }

 private:
  [[nodiscard]] bool fails(stream_call c) noexcept {
    if (plan_.only && *plan_.only != c) return false;
    std::uint64_t const index = counted_++;
    if (index < plan_.first || index - plan_.first >= plan_.count) return false;
    ++faults_;
    return true;
  }

  simulated_streams wrapped_;
  stream_fault_plan plan_;
  std::uint64_t counted_ = 0;
  std::uint64_t faults_ = 0;
};
static_assert(StreamPolicy<faulty_streams>);

}  // namespace gmlake::test
