/// Swapping for the Python package, as C functions: see control.cpp.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "export.hpp"
#include "gmlake/adapter/torch_process.hpp"

namespace gmlake {
namespace {

using torch_c::attempt;

void check(result<void> const& done) {
  if (!done) throw torch_failure(describe(done.error()));
}

[[nodiscard]] stream to_stream(void* s) { return static_cast<stream>(reinterpret_cast<std::uintptr_t>(s)); }

/// The swapper of the block's device; null where there is none. Throws where the block is none of gmlake's.
[[nodiscard]] torch_swapper* swapper_there(void const* block) {
  torch_registry::owner const o = torch_process::get().owner(block);
  if (o.pool == nullptr) throw torch_failure("gmlake: the memory is not gmlake's");
  return o.device->swapper();
}
/// Throws where the block is not swappable, too.
[[nodiscard]] torch_swapper& swapper_of(void const* block) {
  torch_swapper* const s = swapper_there(block);
  if (s == nullptr || !s->knows(to_address(block))) {
    throw torch_failure("gmlake: the tensor was not made inside gmlake.swappable(), or has less than " +
                        in_units(torch_swapper::smallest));
  }
  return *s;
}

[[nodiscard]] torch_swapper* swapper_on(int device) noexcept {
  torch_device* const d = torch_process::get().opened(device);
  return d != nullptr ? d->swapper() : nullptr;
}

/// Throws where nothing was ever swappable.
[[nodiscard]] torch_swapper& swapper_to_pause(int device) {
  torch_swapper* const s = swapper_on(device);
  if (s == nullptr) throw torch_failure("gmlake: nothing was made swappable on device " + std::to_string(device));
  return *s;
}

[[nodiscard]] torch_swapper& made_swapper(int device) { return torch_process::get().device(device).make_swapper(); }

void tell(swap::pause_outcome const& o, unsigned long long* moved, char const* what) {
  if (moved != nullptr) *moved = o.moved;
  if (o.stayed == 0) return;
  throw torch_failure("gmlake: " + in_units(o.stayed) + " could not be " + what + ": " + describe(o.why));
}

}  // namespace
}  // namespace gmlake

using namespace gmlake;

extern "C" {

GMLAKE_EXPORT char const* gmlake_swap_open(int device) {
  return attempt([&] { (void)made_swapper(device); });
}
GMLAKE_EXPORT long long gmlake_swappable(long long group) {
  bool const was = torch_process::where() == placement::movable;
  long long const before = was ? static_cast<long long>(torch_process::group()) : -1;
  torch_process::where() = group < 0 ? placement::anywhere : placement::movable;
  torch_process::group() = static_cast<swap::tag>(group < 0 ? 0 : group);
  return before;
}
GMLAKE_EXPORT char const* gmlake_swap_out(void* block, void* last) {
  return attempt([&] { check(swapper_of(block).swap_out(to_address(block), to_stream(last))); });
}
GMLAKE_EXPORT char const* gmlake_swap_in(void* block, void* on) {
  return attempt([&] { check(swapper_of(block).swap_in(to_address(block), to_stream(on))); });
}
GMLAKE_EXPORT char const* gmlake_prefetch(void* block) {
  return attempt([&] { check(swapper_of(block).prefetch(to_address(block))); });
}
/// Says what is wrong with a block that can't leave.
GMLAKE_EXPORT char const* gmlake_swap_check(void* block) {
  return attempt([&] { (void)swapper_of(block); });
}
GMLAKE_EXPORT unsigned long long gmlake_swap_smallest() { return torch_swapper::smallest; }
GMLAKE_EXPORT char const* gmlake_pin(void* block, void* on) {
  return attempt([&] { check(swapper_of(block).pin(to_address(block), to_stream(on))); });
}
GMLAKE_EXPORT char const* gmlake_unpin(void* block) {
  return attempt([&] { check(swapper_of(block).unpin(to_address(block))); });
}
/// No effect on what is not swappable.
GMLAKE_EXPORT char const* gmlake_read_only(void* block, int value) {
  return attempt([&] {
    if (torch_swapper* const s = swapper_there(block)) check(s->set_read_only(to_address(block), value != 0));
  });
}
GMLAKE_EXPORT char const* gmlake_pause(int device, long long group, int keeping, unsigned long long* moved) {
  return attempt(
      [&] { tell(swapper_to_pause(device).pause(static_cast<swap::tag>(group), keeping != 0), moved, "paused"); });
}
GMLAKE_EXPORT char const* gmlake_resume(int device, long long group, unsigned long long* moved) {
  return attempt([&] { tell(swapper_to_pause(device).resume(static_cast<swap::tag>(group)), moved, "resumed"); });
}
GMLAKE_EXPORT char const* gmlake_pin_host(int device, unsigned long long n) {
  return attempt([&] { check(made_swapper(device).pin_ahead(n)); });
}

GMLAKE_EXPORT char const* gmlake_page_start(int device, unsigned long long limit) {
  return attempt([&] {
    if (!made_swapper(device).start(limit)) {
      throw torch_failure("gmlake: more memory than " + in_units(limit) + " is in use that is not swappable");
    }
  });
}
GMLAKE_EXPORT char const* gmlake_page_stop(int device, unsigned long long limit) {
  return attempt([&] {
    if (torch_swapper* const s = swapper_on(device)) tell(s->stop(limit), nullptr, "brought back");
  });
}
/// `uses`: of n blocks: 1 read, 2 written, 3 both; 4 besides: all are used still when the operation has ended.
GMLAKE_EXPORT char const* gmlake_page_access(int device, unsigned long long const* blocks, unsigned char const* uses,
                                             std::size_t n, void* on) {
  torch_swapper* const s = swapper_on(device);
  if (s == nullptr) return nullptr;
  return attempt([&] {
    std::vector<swap::block_use> all(n);
    bool lingers = false;
    for (std::size_t i = 0; i < n; ++i) {
      all[i] = {static_cast<address>(blocks[i]), (uses[i] & 1) != 0, (uses[i] & 2) != 0};
      lingers = lingers || (uses[i] & 4) != 0;
    }
    check(torch_process::get().device(device).use(*s, all, lingers, to_stream(on)));
  });
}
GMLAKE_EXPORT long long gmlake_page_operation(int device, void* on) {
  torch_swapper* const s = swapper_on(device);
  return s != nullptr ? s->end_operation(to_stream(on)) : -1;
}
GMLAKE_EXPORT void gmlake_page_took(int device, long long operation, long long nanoseconds) {
  torch_swapper* const s = swapper_on(device);
  if (s != nullptr && operation >= 0) s->took(operation, {std::chrono::nanoseconds(nanoseconds)});
}
GMLAKE_EXPORT void gmlake_page_step(int device, void* on, int timed) {
  if (torch_swapper* const s = swapper_on(device)) s->begin_step(to_stream(on), timed != 0);
}
GMLAKE_EXPORT char const* gmlake_job_begin(int device, void* on, unsigned priority) {
  return attempt([&] { check(made_swapper(device).begin_job(to_stream(on), priority)); });
}
GMLAKE_EXPORT char const* gmlake_job_end(int device, void* on) {
  return attempt([&] { check(made_swapper(device).end_job(to_stream(on))); });
}

}  // extern "C"
