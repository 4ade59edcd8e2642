// The exact search on MiniMalloc's inputs: every <name>.<capacity>.csv in a folder is fitted into its capacity, then
// (with --minimise) lowered as far as the time goes. Every solution is validated.
//
//     gmlake-bench-minimalloc [--minimise] [--seconds=N] [FOLDER]        default: 30 s each, the inputs that come with
//     the project

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/command_line.hpp"
#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/exact.hpp"
#include "gmlake/plan/minimalloc_csv.hpp"
#include "gmlake/plan/validate.hpp"

namespace {

namespace fs = std::filesystem;
using namespace gmlake;

/// `A.1048576.csv`: 1048576. The bound where the name has none.
bytes capacity_of(fs::path const& path, plan::problem const& p) {
  std::string const number = path.stem().extension().string();
  bytes capacity = 0;
  if (number.size() < 2) return plan::lower_bound(p);
  auto const [end, code] = std::from_chars(number.data() + 1, number.data() + number.size(), capacity);
  return code == std::errc{} && end == number.data() + number.size() ? capacity : plan::lower_bound(p);
}

std::string text_of(fs::path const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = fs::path(__FILE__).parent_path() / "minimalloc";
  bool minimise = false;
  double seconds = 30;
  CLI::App app{"The exact search on MiniMalloc's inputs.", "gmlake-bench-minimalloc"};
  bench::takes_folder(app, folder, "Of <name>.<capacity>.csv. Default: those that come with the project");
  app.add_flag("--minimise", minimise, "Lowers what fits as far as the time goes");
  app.add_option("--seconds", seconds, "For each. Default: 30")->type_name("N")->check(bench::between(0, 1e6));
  if (auto const status = bench::status_of(app, argc, argv)) return *status;
  std::vector<fs::path> paths;
  for (fs::directory_entry const& e : fs::directory_iterator(folder)) {
    if (e.path().extension() == ".csv") paths.push_back(e.path());
  }
  std::ranges::sort(paths);
  auto const limit = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));

  std::printf("%-18s %7s %10s %10s %10s %6s %10s %8s\n", "input", "buffers", "capacity", "bound", "height", "proven",
              "nodes", "seconds");
  bool failed = false;
  for (fs::path const& path : paths) {
    auto const read = plan::read_minimalloc_problem(text_of(path));
    if (!read) {
      std::fprintf(stderr, "%s:%llu: %s\n", path.c_str(), static_cast<unsigned long long>(read.line),
                   read.message.c_str());
      return 1;
    }
    plan::problem const& p = read.value.value;
    bytes const capacity = capacity_of(path, p);
    auto const started = std::chrono::steady_clock::now();
    plan::exact_search search(p, {.time_limit = limit});
    plan::exact_result const r = minimise ? search.minimise() : search.fit(capacity);
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - started;
    bool const found = r.outcome == plan::exact_outcome::found;
    if (found && plan::validate(p, r.best)) return std::fprintf(stderr, "%s: not valid\n", path.c_str()), 1;
    failed = failed || !found || r.best.height > capacity;
    std::printf("%-18s %7zu %10zu %10zu %10zu %6s %10llu %8.2f\n", path.filename().c_str(), p.buffers.size(), capacity,
                r.bound, r.best.height, r.proven ? "yes" : "no", static_cast<unsigned long long>(r.nodes),
                took.count());
    std::fflush(stdout);
  }
  return failed ? 1 : 0;
}
