#pragma once
/// The process's CUDA devices under PyTorch: their settings, opened when first used, and everything that the adapters
/// of both levels do alike.
///
/// It is made when its library is loaded, and never destroyed: tensors may outlive every destructor, and when the
/// process ends the driver takes all. In a forked child, where CUDA does not work, nothing touches the driver and
/// blocks are just forgotten.

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <pthread.h>
#include <unistd.h>

#include "gmlake/adapter/claimed.hpp"
#include "gmlake/adapter/torch_cuda_swapping.hpp"
#include "gmlake/adapter/torch_device.hpp"
#include "gmlake/adapter/torch_errors.hpp"
#include "gmlake/adapter/torch_operations.hpp"
#include "gmlake/adapter/torch_recording.hpp"
#include "gmlake/adapter/torch_streams.hpp"
#include "gmlake/backend/cuda_vmm.hpp"
#include "gmlake/plan/plan_file.hpp"
#include "gmlake/stream/cuda_events.hpp"

namespace gmlake {

class torch_process {
 public:
  static constexpr int most_devices = 64;

  [[nodiscard]] static torch_process& get() noexcept { return *one_; }

  // ---- settings

  /// `key=value` lines over the environment's. Returns what is wrong, or nothing.
  [[nodiscard]] std::string configure(std::string_view text) {
    std::scoped_lock const lock(opening_);
    torch_settings_reader fresh;
    if (std::string wrong = fresh.read_environment(environ); !wrong.empty()) return wrong;
    while (!text.empty()) {
      std::string_view const line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (line.empty()) continue;
      std::size_t const equals = line.find('=');
      if (equals == std::string_view::npos) return "gmlake: '" + std::string(line) + "' is no key=value";
      std::string wrong = fresh.set(line.substr(0, equals), line.substr(equals + 1));
      if (!wrong.empty()) return wrong;
    }
    try {
      if (fresh.settings().plan == torch_settings::saved_plan) (void)read_plan_file(fresh.settings().plan_file);
    } catch (torch_failure const& wrong) {
      return wrong.what();
    }
    for (auto const& d : devices_) {
      if (d.load() != nullptr && fresh.text() != settings_.text()) {
        return "gmlake: memory has been allocated already; settings can't be changed any more";
      }
    }
    settings_ = std::move(fresh);
    configured_ = true;
    return {};
  }
  [[nodiscard]] std::string settings_text() {
    std::scoped_lock const lock(opening_);
    return settings_.text();
  }
  [[nodiscard]] std::string notes() {
    std::scoped_lock const lock(opening_);
    std::string all;
    for (std::string const& n : settings_.notes()) (all += n) += '\n';
    return all;
  }

  // ---- devices

  /// The device, opened at its first mention. Throws `torch_failure` and `std::bad_alloc`.
  [[nodiscard]] torch_device& device(int ordinal) {
    if (ordinal >= 0 && ordinal < most_devices) {
      if (torch_device* const d = devices_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire)) {
        return *d;
      }
    }
    return open(ordinal);
  }
  /// The device if it has been used; null otherwise.
  [[nodiscard]] torch_device* opened(int ordinal) const noexcept {
    return ordinal >= 0 && ordinal < most_devices
               ? devices_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire)
               : nullptr;
  }
  template <class F>
  void each_device(F&& f) {
    for (auto const& d : devices_) {
      if (torch_device* const open = d.load(std::memory_order_acquire)) f(*open);
    }
  }
  [[nodiscard]] int device_count() const noexcept {
    int count = 0;
    for (int i = 0; i < most_devices; ++i) count = opened(i) != nullptr ? i + 1 : count;
    return count;
  }

  /// Makes pools of the device over what `open` returns, a backend. Throws what `open` throws, and `torch_failure`.
  template <std::invocable F>
  [[nodiscard]] torch_runtime::maker maker_over(int ordinal, F open) {
    return [this, ordinal, open = std::move(open)](torch_making with) {
      auto events = cuda_events::open({.device = ordinal});
      if (!events) throw torch_failure(describe(events.error()));
      torch_settings const& s = settings_.settings();
      if (with.plans && s.plan == torch_settings::saved_plan) with.known = read_plan_file(s.plan_file);
      return make_torch_pool(s, claimed(open(), registry_.owners(), with.number),
                             torch_streams<cuda_events>(std::move(*events), with.pauses, foreign_), with);
    };
  }

  // ---- blocks

  /// Whether this is a forked child of the process that has the GPU.
  [[nodiscard]] bool forked() const noexcept { return forked_.load(std::memory_order_relaxed); }

  [[nodiscard]] torch_registry::owner owner(void const* p) const noexcept { return registry_.find(to_address(p)); }

  [[nodiscard]] result<void> deallocate(void* p) noexcept {
    if (forked()) return {};
    torch_registry::owner const o = owner(p);
    if (o.pool == nullptr) return failure(errc::unknown_pointer, "deallocate");
    return o.device->deallocate(*o.pool, to_address(p));
  }
  [[nodiscard]] result<void> record_stream(void* p, stream on) noexcept {
    if (forked()) return {};
    torch_registry::owner const o = owner(p);
    if (o.pool == nullptr) return failure(errc::unknown_pointer, "record_stream");
    return o.device->record_stream(*o.pool, to_address(p), on);
  }

  /// The stream is about to be destroyed.
  [[nodiscard]] result<void> retire_stream(torch_device& d, stream gone) {
    bool const foreign = foreign_.contains(gone);
    foreign_.remove(gone);
    result<void> done;
    d.each_pool([&](torch_pool_id, torch_pool& p) {
      if (done) done = p.retire_stream(gone);
    });
    if (!done && foreign) foreign_.add(gone);
    return done;
  }

  /// Streams of which PyTorch is not the owner.
  [[nodiscard]] torch_foreign_streams& foreign() noexcept { return foreign_; }

  /// How this thread's blocks are to be made from now on.
  [[nodiscard]] static placement& where() noexcept { return where_; }
  /// In which group they are swapped, where they are movable.
  [[nodiscard]] static swap::tag& group() noexcept { return group_; }

  /// Why there is no memory, as PyTorch says it, with the pool's account.
  [[nodiscard]] static std::string out_of_memory_text(torch_device& d, bytes n, error const& e) {
    memory_account const& a = e.account;
    bytes const total = d.total();
    std::string text = "CUDA out of memory. Tried to allocate " + in_units(n) + ". GPU " + std::to_string(d.ordinal()) +
                       " has a total capacity of " + in_units(total) + " and gmlake may use " +
                       in_units(std::min(total, d.limit().limit())) + " of it (limit). It has reserved " +
                       in_units(d.limit().held()) + "; in the pool that was asked " + in_units(a.live) + " of " +
                       in_units(a.reserved) + " are live and " + in_units(a.free) + " free, at most " +
                       in_units(a.largest_contiguous) + " side by side. ";
    text += a.fragmented() ? "Enough is free, but other streams still use it or it can't be stitched ("
                           : "Memory is exhausted (";
    return text + e.call + (e.native != 0 ? ", code " + std::to_string(e.native) : std::string{}) +
           "). Idle stitches were evicted and free chunks released before this; " +
           (d.paused() ? "streams could not be waited for, as a graph may be being captured."
                       : "all streams waited for.");
  }

  // ---- looking inside

  /// Recording begins, on open devices and those to come. Throws `std::bad_alloc`.
  void record() {
    std::scoped_lock const lock(opening_);
    recording_ = true;
    each_device([this](torch_device& d) { start_recording(d); });
  }
  void stop_recording() noexcept {
    std::scoped_lock const lock(opening_);
    recording_ = false;
    each_device([](torch_device& d) { d.listen(torch_audience::recording, nullptr); });
  }
  void mark(std::string_view label) {
    if (!recording_.load(std::memory_order_relaxed) || forked()) return;
    for (auto const& r : recordings_) {
      if (torch_recording* const one = r.load(std::memory_order_acquire)) one->mark(label);
    }
  }
  /// This thread's operation reads or writes the block that begins at `p`. Does nothing for what is no pool's, and
  /// where nothing is recorded. Throws `std::bad_alloc`.
  void note_access(void const* p, bool reads, bool writes) {
    if (torch_recording* const r = recording_of(p)) operations_.access(*r, to_address(p), reads, writes);
  }
  /// Ends this thread's operation. Returns its number, or `torch_operations::none`. Throws `std::bad_alloc`.
  [[nodiscard]] std::int64_t note_operation() { return operations_.end(); }
  /// How long that operation took; not negative.
  void operation_took(std::int64_t number, std::chrono::nanoseconds time) noexcept {
    for (auto const& r : recordings_) {
      if (torch_recording* const one = r.load(std::memory_order_acquire)) one->took(number, time);
    }
  }
  /// The host has a copy of the block that begins at `p`, which nobody writes from here on.
  void note_host_copy(void const* p) noexcept {
    if (torch_recording* const r = recording_of(p)) r->host_copy(to_address(p));
  }
  /// Null where nothing was recorded.
  [[nodiscard]] torch_recording* recording(int ordinal) const noexcept {
    return ordinal >= 0 && ordinal < most_devices
               ? recordings_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire)
               : nullptr;
  }

 private:
  /// Who records the block's device now; null for nobody.
  [[nodiscard]] torch_recording* recording_of(void const* p) const noexcept {
    if (!recording_.load(std::memory_order_relaxed) || forked()) return nullptr;
    torch_registry::owner const o = owner(p);
    return o.pool != nullptr ? recording(o.device->ordinal()) : nullptr;
  }

  /// Throws `torch_failure` where the file can't be read or isn't one of plans.
  [[nodiscard]] static std::vector<plan::plan> read_plan_file(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text;
    try {
      text.assign(std::istreambuf_iterator<char>(in), {});
    } catch (std::ios_base::failure const&) {  // as where it is a folder
      in.setstate(std::ios_base::failbit);
    }
    if (!in) throw torch_failure("gmlake: can't read the plan file '" + path + "'");
    plan::plans_read read = plan::read_plans(text);
    if (!read.error.empty()) throw torch_failure("gmlake: the plan file '" + path + "': " + read.error);
    return std::move(read.value);
  }

  torch_process() {
    // A process that forks before it uses a GPU leaves its child free to.
    ::pthread_atfork(nullptr, nullptr, [] { get().forked_.store(get().device_count() > 0); });
  }

  [[gnu::cold]] torch_device& open(int ordinal) {
    if (forked()) throw torch_failure("gmlake: CUDA can't be used in a forked process; use the 'spawn' start method");
    if (ordinal < 0 || ordinal >= most_devices) {
      throw torch_failure("gmlake: there is no device " + std::to_string(ordinal));
    }
    std::scoped_lock const lock(opening_);
    std::size_t const i = static_cast<std::size_t>(ordinal);
    if (torch_device* const d = devices_[i].load()) return *d;
    if (!configured_) {
      std::string const wrong = settings_.read_environment(environ);
      if (!wrong.empty()) throw torch_failure(wrong);
      configured_ = true;
    }
    auto opened = std::make_unique<torch_device>(ordinal, settings_.settings(), runtime(ordinal), registry_);
    if (recording_) start_recording(*opened);
    devices_[i].store(opened.get(), std::memory_order_release);
    return *opened.release();
  }

  /// Precondition: `opening_` is held.
  void start_recording(torch_device& d) {
    auto& slot = recordings_[static_cast<std::size_t>(d.ordinal())];
    if (slot.load() == nullptr) slot.store(new torch_recording, std::memory_order_release);
    d.listen(torch_audience::recording, nullptr);
    slot.load()->start(d);
  }

  [[nodiscard]] torch_runtime runtime(int ordinal) {
    cuda_vmm_options options{.device = ordinal,
                             .shareable = cuda_vmm_options::sharing::posix_fd,
                             .gpu_direct_rdma = settings_.settings().rdma};
    auto probe = cuda_vmm::open(options);
    if (!probe) throw torch_failure(describe(probe.error()));
    result<device_memory> const memory = probe->memory_info();
    if (!memory) throw torch_failure(describe(memory.error()));
    torch_runtime made;
    made.total = memory->total;
    made.make = maker_over(ordinal, [options] {
      auto opened = cuda_vmm::open(options);
      if (!opened) throw torch_failure(describe(opened.error()));
      return std::move(*opened);
    });
    made.make_swapper = [this, ordinal](torch_pool& main, shared_limit& limit, auto const& pauses) {
      return open_cuda_swapper(ordinal, settings_.settings(), torch_movable(main, limit), pauses, foreign_);
    };
    made.captured = [](stream s) { return cuda_events::captured(s); };
    return made;
  }

  std::mutex opening_;
  torch_settings_reader settings_;
  bool configured_ = false;
  std::atomic<bool> recording_{false};
  torch_operations operations_;
  torch_registry registry_;
  torch_foreign_streams foreign_;
  std::array<std::atomic<torch_device*>, most_devices> devices_{};
  std::array<std::atomic<torch_recording*>, most_devices> recordings_{};
  std::atomic<bool> forked_{false};

  static torch_process* const one_;
  // Without the look-up that a shared library's thread-local variables take: it is on the way of every request.
  [[gnu::tls_model("initial-exec")]] static inline thread_local placement where_ = placement::anywhere;
  [[gnu::tls_model("initial-exec")]] static inline thread_local swap::tag group_{};
};
inline torch_process* const torch_process::one_ = new torch_process;

}  // namespace gmlake
