/// What the Python package asks of either library, as C functions. It binds them in gmlake/library.py, and says there
/// what each is for; both sides name the version of this interface.

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "export.hpp"
#include "gmlake/adapter/torch_process.hpp"
#include "gmlake/adapter/torch_text.hpp"
#include "report.hpp"

namespace gmlake {
namespace {

using torch_c::attempt;
using torch_c::keep;

torch_device& used(int device) {
  if (torch_process::get().forked()) throw torch_failure("gmlake: CUDA can't be used in a forked process");
  torch_device* const d = torch_process::get().opened(device);
  if (d == nullptr) throw torch_failure("gmlake: no memory has been allocated on device " + std::to_string(device));
  return *d;
}

tools::report live_report() {
  tools::report page{.live = true, .backend = "CUDA", .scale = 1, .sections = {}, .swaps = {}};
  torch_process& process = torch_process::get();
  process.each_device([&](torch_device& d) {
    torch_recording const* const recorded = process.recording(d.ordinal());
    torch_recording::picture const seen = recorded != nullptr ? recorded->look() : torch_recording::picture{};
    tools::report_run run{.name = "gmlake, live", .failure = {}, .series = seen.series, .peak = seen.peak};
    pool_stats const s = d.stats();
    run.requested_peak = s.requested.peak;
    run.reserved_peak = s.reserved.peak;
    run.driver_calls = s.driver.total().calls;
    run.driver_ms = static_cast<double>(s.driver.total().time.count()) / 1e6;
    run.stitches = s.stitches_made;
    run.stitch_hits = s.stitch_hits;
    if (!run.peak) run.peak = d.main().snapshot();
    page.sections.push_back({.name = "GPU " + std::to_string(d.ordinal()),
                             .events = seen.events,
                             .allocations = recorded != nullptr ? seen.allocations : s.allocations,
                             .steps = seen.steps,
                             .requested_peak = run.requested_peak,
                             .peak_event = seen.peak_event,
                             .runs = {run}});
  });
  return page;
}

}  // namespace
}  // namespace gmlake

using namespace gmlake;

extern "C" {

GMLAKE_EXPORT int gmlake_abi_version() { return 6; }

GMLAKE_EXPORT char const* gmlake_configure(char const* text) {
  return attempt([&] {
    std::string const wrong = torch_process::get().configure(text != nullptr ? text : "");
    if (!wrong.empty()) throw torch_failure(wrong);
  });
}
GMLAKE_EXPORT char const* gmlake_settings() {
  char const* text = nullptr;
  char const* const wrong = attempt([&] { text = keep(torch_process::get().settings_text()); });
  return wrong != nullptr ? wrong : text;
}
GMLAKE_EXPORT char const* gmlake_notes() {
  char const* text = nullptr;
  char const* const wrong = attempt([&] { text = keep(torch_process::get().notes()); });
  return wrong != nullptr ? wrong : text;
}

GMLAKE_EXPORT int gmlake_device_count() { return torch_process::get().device_count(); }
GMLAKE_EXPORT char const* gmlake_stats(int device) {
  char const* text = nullptr;
  char const* const wrong = attempt([&] { text = keep(stats_text(used(device))); });
  return wrong != nullptr ? nullptr : text;
}
GMLAKE_EXPORT char const* gmlake_snapshot(int device) {
  char const* text = nullptr;
  char const* const wrong = attempt([&] { text = keep(snapshot_text(used(device))); });
  return wrong != nullptr ? nullptr : text;
}
GMLAKE_EXPORT int gmlake_note_update() {
  if (torch_process::get().forked()) return 0;
  torch_process::get().each_device([](torch_device& d) { d.main().note_update(); });
  return 0;
}
GMLAKE_EXPORT char const* gmlake_save_plans(int device, char const* path) {
  return attempt([&] {
    std::vector<plan::plan> const known = used(device).main().plans();
    if (known.empty())
      throw torch_failure("gmlake: there is no plan for device " + std::to_string(device) + " to save");
    std::ofstream out(path, std::ios::binary);
    out << plan::write_plans(known);
    if (!out.flush()) throw torch_failure(std::string("gmlake: can't write ") + path);
  });
}
GMLAKE_EXPORT char const* gmlake_trim(int device) {
  return attempt([&] { used(device).trim(); });
}
GMLAKE_EXPORT char const* gmlake_set_limit(int device, unsigned long long bytes) {
  return attempt([&] { torch_process::get().device(device).limit().set(bytes); });
}
GMLAKE_EXPORT char const* gmlake_retire_stream(int device, void* gone) {
  return attempt([&] {
    auto const s = static_cast<stream>(reinterpret_cast<std::uintptr_t>(gone));
    auto const done = torch_process::get().retire_stream(used(device), s);
    if (!done) throw torch_failure(describe(done.error()));
  });
}
GMLAKE_EXPORT int gmlake_placement(int p) {
  placement const before = torch_process::where();
  if (p >= 0 && p <= static_cast<int>(placement::movable)) torch_process::where() = static_cast<placement>(p);
  return static_cast<int>(before);
}

GMLAKE_EXPORT char const* gmlake_record_start() {
  return attempt([] { torch_process::get().record(); });
}
GMLAKE_EXPORT char const* gmlake_record_mark(char const* label) {
  return attempt([&] { torch_process::get().mark(label); });
}
GMLAKE_EXPORT char const* gmlake_note_access(void* block, int reads, int writes) {
  return attempt([&] { torch_process::get().note_access(block, reads != 0, writes != 0); });
}
GMLAKE_EXPORT long long gmlake_note_operation() {
  long long number = torch_operations::none;
  char const* const wrong = attempt([&] { number = torch_process::get().note_operation(); });
  return wrong != nullptr ? torch_operations::none : number;
}
GMLAKE_EXPORT char const* gmlake_operation_took(long long number, long long nanoseconds) {
  return attempt([&] {
    if (nanoseconds < 0) throw torch_failure("gmlake: an operation takes no negative time");
    torch_process::get().operation_took(number, std::chrono::nanoseconds(nanoseconds));
  });
}
GMLAKE_EXPORT char const* gmlake_note_host_copy(void* block) {
  return attempt([&] { torch_process::get().note_host_copy(block); });
}
GMLAKE_EXPORT char const* gmlake_record_stop() {
  return attempt([] { torch_process::get().stop_recording(); });
}
GMLAKE_EXPORT char const* gmlake_record_text(int device, std::size_t* length) {
  char const* text = nullptr;
  char const* const wrong = attempt([&] {
    torch_recording const* const r = torch_process::get().recording(device);
    if (r == nullptr) return;
    std::string all = r->text();
    if (length != nullptr) *length = all.size();
    text = keep(std::move(all));
  });
  return wrong != nullptr ? nullptr : text;
}
GMLAKE_EXPORT char const* gmlake_report(char const* path) {
  return attempt([&] {
    std::string const page = tools::render(live_report());
    std::ofstream out(path, std::ios::binary);
    out << page;
    if (!out.flush()) throw torch_failure(std::string("gmlake: can't write ") + path);
  });
}

}  // extern "C"
