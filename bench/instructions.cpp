/// What callgrind counts, for bench/callgrind.sh: hot pairs or a trace's operations, alone in a function of their own
/// so that nothing else is counted. Prints how many there were.
///
///     gmlake-bench-instructions gap|cut|mixed lake|tlsf|gmlake|pytorch|expandable <live blocks>
///     gmlake-bench-instructions replay        lake|tlsf|gmlake|pytorch|expandable <trace>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "bench/loaded_pool.hpp"
#include "bench/presets.hpp"
#include "bench/traces.hpp"
#include "gmlake/trace/replay.hpp"

namespace gmlake::bench {
namespace {

constexpr int pairs = 10'000;

}  // namespace
}  // namespace gmlake::bench

/// Callgrind is told this name, and counts while the function runs.
extern "C" [[gnu::noinline]] void gmlake_counted_region(void (*work)(void*), void* with) { work(with); }

namespace gmlake::bench {
namespace {

template <class F>
void counted(F work) {
  gmlake_counted_region([](void* with) { (*static_cast<F*>(with))(); }, &work);
}

template <Pool P>
void count_hot(loaded_pool<P>& with, bool cut) {
  P& pool = with.pool();
  address hot = cut ? allocate_from(pool, hot_size) : with.hot(0);
  auto const pair = [&] {
    expect(pool.deallocate(hot).has_value(), "a block can't be freed");
    hot = allocate_from(pool, hot_size);
  };
  pair();  // the first one may find its tables too small
  counted([&] {
    for (int i = 0; i < pairs; ++i) pair();
  });
  if (cut) expect(pool.deallocate(hot).has_value(), "a block can't be freed");
  else with.hot(0) = hot;
}

template <Pool P>
void count_mixed(loaded_pool<P>& with) {
  quick_random random(1);
  counted([&] {
    for (std::size_t i = 0; i < pairs; ++i) with.replace(random.below(with.live()), i);
  });
}

template <class Make, class Preset>
int count(std::string_view what, char const* argument) {
  if (what == "replay") {
    trace::trace const events = load(argument);
    trace::replay_result done;
    Preset::with_pool(
        [&](auto& pool, auto& timeline) { counted([&] { done = trace::replay(events, pool, timeline); }); });
    expect(done.ok(), "the replay failed");
    std::printf("%llu\n", static_cast<unsigned long long>(done.operations));
    return EXIT_SUCCESS;
  }
  std::int64_t live = 0;
  std::string_view const number = argument;
  bool const read = std::from_chars(number.data(), number.data() + number.size(), live).ec == std::errc{};
  expect(read && live >= 100, "expected how many live blocks, 100 or more");
  auto& with = loaded(Make{}, live, {.settled = what == "mixed"});
  if (what == "mixed") count_mixed(with);
  else count_hot(with, what == "cut");
  std::printf("%d\n", pairs);
  return EXIT_SUCCESS;
}

int run(std::string_view what, std::string_view preset, char const* argument) {
  if (preset == "lake") return count<make_lake, of_lake>(what, argument);
  if (preset == "tlsf") return count<make_lake_tlsf, of_lake_tlsf>(what, argument);
  if (preset == "gmlake") return count<make_gmlake, of_gmlake>(what, argument);
  if (preset == "pytorch") return count<make_pytorch, of_pytorch>(what, argument);
  if (preset == "expandable") return count<make_expandable, of_expandable>(what, argument);
  expect(false, "unknown preset");
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace gmlake::bench

int main(int argc, char** argv) {
  gmlake::bench::expect(argc == 4, "expected gap|cut|mixed|replay, a preset, and how many live blocks or which trace");
  return gmlake::bench::run(argv[1], argv[2], argv[3]);
}
