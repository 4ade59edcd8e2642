#include "bench/traces.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "examples/replay/load.hpp"

namespace gmlake::bench {

trace::trace load(std::string const& path) {
  tools::loaded read = tools::load_trace(path);
  if (read.wrong.empty()) return std::move(read.value);
  (void)std::fprintf(stderr, "%s\n", read.wrong.c_str());
  std::exit(EXIT_FAILURE);
}

char const* shipped_traces() noexcept { return GMLAKE_BENCH_TRACES; }

std::vector<std::string> trace_paths(char const* folder) {
  std::vector<std::string> paths;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    std::string path = entry.path().string();
    if (path.ends_with(".csv") || path.ends_with(".csv.gz")) paths.push_back(std::move(path));
  }
  std::ranges::sort(paths);
  return paths;
}

std::string name_of(std::string const& path) { return tools::trace_name(path); }

}  // namespace gmlake::bench
