// How low packers pack, and how long they take: generated problems, and a step of every trace in a folder. Prints the
// height as a multiple of the lower bound, and milliseconds. What outlives the step ends with it.
//
//     gmlake-bench-plan [FOLDER]        default: the traces that come with the project

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/command_line.hpp"
#include "bench/traces.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/portfolio.hpp"

namespace {

using namespace gmlake;

struct named_problem {
  std::string name;
  plan::problem problem;
};

constexpr std::size_t step = 2;                     // the first are warm-up
constexpr bytes request_alignment = 512;            // what plans round to
constexpr std::uint64_t most_work = 1'000'000'000;  // a packer; a few seconds

plan::problem step_of(trace::trace const& t) {
  plan::problem p;
  std::unordered_map<std::uint32_t, std::size_t> born;
  plan::instant now = 0;
  std::size_t marks = 0;
  for (trace::event const& e : t.events) {
    switch (e.kind) {
      case trace::event_kind::mark:
        if (t.labels[e.id] == trace::step_label) ++marks;
        break;
      case trace::event_kind::allocate:
        if (marks != step + 1) break;
        born[e.id] = p.buffers.size();
        p.buffers.push_back({.lower = now++,
                             .upper = 0,
                             .size = std::max(align_up(e.size, request_alignment), request_alignment),
                             .stream = e.stream,
                             .fixed = {}});
        break;
      case trace::event_kind::deallocate:
        if (marks != step + 1) break;
        if (auto const b = born.find(e.id); b != born.end()) p.buffers[b->second].upper = now;
        ++now;
        break;
      case trace::event_kind::read:
      case trace::event_kind::write:
      case trace::event_kind::operation:
      case trace::event_kind::host_copy: break;
    }
  }
  for (plan::buffer& b : p.buffers) {
    if (b.upper == 0) b.upper = now;
  }
  return p;
}

/// Lifetimes about so many births long, log-normal or even; sizes likewise.
plan::problem generated(std::size_t buffers, double lifetime, bool log_normal) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  auto const uniform = [&] { return static_cast<double>(random() % 1000 + 1) / 500; };
  auto const factor = [&](double spread) { return log_normal ? std::exp(spread * normal(random)) : uniform(); };
  plan::problem p;
  for (std::size_t i = 0; i < buffers; ++i) {
    auto const lives = static_cast<plan::instant>(std::min(1 + lifetime * factor(2), static_cast<double>(buffers)));
    auto const units = static_cast<bytes>(std::min(1 + 1000 * factor(3), 1e6));
    plan::instant const birth = random() % buffers;
    p.buffers.push_back({.lower = birth, .upper = birth + lives, .size = units * 512, .fixed = {}});
  }
  return p;
}

template <class Pack>
void row(plan::problem const& p, bytes bound, Pack&& pack) {
  auto const begin = std::chrono::steady_clock::now();
  plan::solution const s = pack(p);
  std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
  std::printf("  %8.5f %6.0f", static_cast<double>(s.height) / static_cast<double>(bound), took.count());
  (void)std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = bench::shipped_traces();
  CLI::App app{"How low packers pack, and how long they take.", "gmlake-bench-plan"};
  bench::takes_folder(app, folder, "Of traces. Default: those that come with the project");
  if (auto const status = bench::status_of(app, argc, argv)) return *status;
  std::vector<named_problem> problems;
  for (auto const& path : bench::trace_paths(folder.c_str())) {
    problems.push_back({bench::name_of(path), step_of(bench::load(path))});
  }
  problems.push_back({"even, 10^3", generated(1000, 100, false)});
  problems.push_back({"even, 10^5", generated(100'000, 100, false)});
  problems.push_back({"even, 10^5, long", generated(100'000, 10'000, false)});
  problems.push_back({"log-normal, 10^5", generated(100'000, 100, true)});
  problems.push_back({"log-normal, 10^6", generated(1'000'000, 100, true)});

  std::printf("%-18s %8s %9s %16s %16s %16s %16s %16s\n", "problem", "buffers", "bound MiB", "lifetime_sweep",
              "lowest_offset", "best_fit_decr.", "grouped", "portfolio");
  for (auto const& [name, p] : problems) {
    bytes const bound = std::max<bytes>(plan::lower_bound(p), 1);
    std::printf("%-18s %8zu %9.0f", name.c_str(), p.buffers.size(), static_cast<double>(bound) / (1 << 20));
    row(p, bound, [](auto const& of) { return plan::lifetime_sweep{}.pack(of); });
    row(p, bound, [](auto const& of) { return plan::lowest_offset{{.work = most_work}}.pack(of); });
    row(p, bound, [](auto const& of) { return plan::best_fit_decreasing{{.work = most_work}}.pack(of); });
    row(p, bound, [](auto const& of) { return plan::grouped{{.work = most_work}}.pack(of); });
    std::string_view best;
    row(p, bound, [&](auto const& of) {
      plan::packed found = plan::portfolio{}.pack(of);
      best = found.packer;
      return std::move(found.solution);
    });
    std::printf("  %.*s\n", static_cast<int>(best.size()), best.data());
  }
}
