#include "tests/host_memory/scarcity.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

struct state {
  gmlake::test::shortage planned;
  std::uint64_t counted = 0;
  std::uint64_t refused = 0;
  bool scarce = false;
};
thread_local constinit state here;
constinit std::atomic<std::int64_t> not_freed = 0;

[[nodiscard]] bool refused() noexcept {
  if (!here.scarce) return false;
  std::uint64_t const index = here.counted++;
  if (index < here.planned.first || index - here.planned.first >= here.planned.count) return false;
  ++here.refused;
  return true;
}
[[nodiscard]] void* taken(std::size_t n) noexcept {
  void* const p = refused() ? nullptr : std::malloc(n > 0 ? n : 1);
  if (p != nullptr) ++not_freed;
  return p;
}
[[nodiscard]] void* taken_or_thrown(std::size_t n) {
  void* const p = taken(n);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void given(void* p) noexcept {
  if (p != nullptr) --not_freed;
  std::free(p);
}

}  // namespace

// All of them, since a sanitizer's own would not go with those here.
void* operator new(std::size_t n) { return taken_or_thrown(n); }
void* operator new[](std::size_t n) { return taken_or_thrown(n); }
void* operator new(std::size_t n, std::nothrow_t const&) noexcept { return taken(n); }
void* operator new[](std::size_t n, std::nothrow_t const&) noexcept { return taken(n); }
void operator delete(void* p) noexcept { given(p); }
void operator delete[](void* p) noexcept { given(p); }
void operator delete(void* p, std::size_t) noexcept { given(p); }
void operator delete[](void* p, std::size_t) noexcept { given(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { given(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { given(p); }

namespace gmlake::test {

void run_short(shortage const& s) noexcept {
  here.planned = s;
  here.counted = 0;
}
std::uint64_t refusals() noexcept { return here.refused; }
std::int64_t unfreed() noexcept { return not_freed; }

scarce::scarce(bool now) noexcept : before_(std::exchange(here.scarce, now)) {}
scarce::~scarce() { here.scarce = before_; }

}  // namespace gmlake::test
