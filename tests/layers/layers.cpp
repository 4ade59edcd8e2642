/// The headers keep to the layers: each folder includes only itself and those before it. Reads their text.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;

std::vector<std::string> const layers = {"core",   "backend", "stream",  "plan", "lake", "split", "grow",
                                         "stitch", "evict",   "observe", "pool", "swap", "trace", "adapter"};
constexpr std::size_t longest = 600;  // lines

struct header {
  std::string path;   ///< as it is included: "gmlake/core/types.hpp"
  std::string layer;  ///< its folder; empty at the top
  std::vector<std::string> includes;
  std::size_t lines = 0;
};

std::vector<header> read_headers() {
  fs::path const root = fs::path(__FILE__).parent_path().parent_path().parent_path() / "include";
  std::vector<header> all;
  for (fs::directory_entry const& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".hpp") continue;
    header h;
    h.path = fs::relative(entry.path(), root).generic_string();
    std::string const beneath = h.path.substr(h.path.find('/') + 1);
    if (beneath.find('/') != std::string::npos) h.layer = beneath.substr(0, beneath.find('/'));
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line); ++h.lines) {
      if (!line.starts_with("#include ")) continue;
      std::size_t const open = line.find_first_of("<\"");
      std::size_t const close = line.find_first_of(">\"", open + 1);
      REQUIRE_MESSAGE((open != std::string::npos && close != std::string::npos), h.path << ": " << line);
      h.includes.push_back(line.substr(open + 1, close - open - 1));
    }
    all.push_back(std::move(h));
  }
  return all;
}

std::vector<header> const& headers() {
  static std::vector<header> const all = read_headers();
  return all;
}

std::ptrdiff_t rank(std::string const& layer) {
  return std::find(layers.begin(), layers.end(), layer) - layers.begin();
}

std::string file_name(std::string const& path) { return path.substr(path.rfind('/') + 1); }

TEST_CASE("there are headers in every layer that has been built") {
  CHECK(headers().size() > 50);
  for (char const* layer :
       {"core", "backend", "stream", "plan", "lake", "split", "grow", "stitch", "evict", "observe", "pool"}) {
    CAPTURE(layer);
    CHECK(std::ranges::count(headers(), layer, &header::layer) > 0);
  }
}

TEST_CASE("every folder is a layer, and includes only those before it") {
  for (header const& h : headers()) {
    CAPTURE(h.path);
    if (h.layer.empty()) continue;  // the top gathers what lies beneath
    REQUIRE(std::ranges::count(layers, h.layer) == 1);
    for (std::string const& included : h.includes) {
      if (!included.starts_with("gmlake/")) continue;
      CAPTURE(included);
      std::string const below = included.substr(7);
      bool const folder = below.find('/') != std::string::npos;
      REQUIRE((folder || below == "version.hpp"));
      if (folder) CHECK(rank(below.substr(0, below.find('/'))) <= rank(h.layer));
    }
  }
}

TEST_CASE("no header includes itself by a detour") {
  std::map<std::string, header const*> by_path;
  for (header const& h : headers()) by_path[h.path] = &h;
  std::map<std::string, int> state;  // 1: being visited, 2: done
  auto const visit = [&](auto const& self, std::string const& path) -> void {
    auto const known = by_path.find(path);
    if (known == by_path.end() || state[path] == 2) return;
    CAPTURE(path);
    REQUIRE(state[path] != 1);
    state[path] = 1;
    for (std::string const& included : known->second->includes) self(self, included);
    state[path] = 2;
  };
  for (header const& h : headers()) visit(visit, h.path);
}

TEST_CASE("only core/intrusive.hpp includes Boost") {
  for (header const& h : headers()) {
    CAPTURE(h.path);
    if (h.path == "gmlake/core/intrusive.hpp") continue;
    CHECK(std::ranges::none_of(h.includes, [](std::string const& i) { return i.starts_with("boost/"); }));
  }
}

TEST_CASE("what a vendor ships is included only under its name, or by its adapter") {
  for (header const& h : headers()) {
    CAPTURE(h.path);
    if (h.layer == "adapter" || file_name(h.path).starts_with("cuda_")) continue;
    for (std::string const& included : h.includes) {
      CAPTURE(included);
      bool const vendors = std::ranges::any_of(
          std::vector<std::string_view>{"cuda", "cu", "nccl", "nv", "hip", "torch", "c10", "rmm", "ATen"},
          [&](std::string_view v) {
            std::string_view const name = included;
            return name.starts_with(v) && (name.size() == v.size() || name.substr(v.size()).find_first_of("./_") == 0);
          });
      CHECK_FALSE(vendors);
      CHECK_FALSE(file_name(included).starts_with("cuda_"));
    }
  }
}

TEST_CASE("a header is included by its whole path") {
  for (header const& h : headers()) {
    CAPTURE(h.path);
    for (std::string const& included : h.includes) {
      CAPTURE(included);
      CHECK(included.find("..") == std::string::npos);
      // A quoted path is the library's own and whole; everything else is the compiler's or Boost's.
      if (included.ends_with(".hpp") && !included.starts_with("boost/")) CHECK(included.starts_with("gmlake/"));
    }
  }
}

TEST_CASE("no header is longer than fits the head") {
  for (header const& h : headers()) {
    CAPTURE(h.path);
    CHECK(h.lines <= longest);
  }
}

TEST_CASE("every header but the vendors' is part of gmlake.hpp") {
  std::map<std::string, header const*> by_path;
  for (header const& h : headers()) by_path[h.path] = &h;
  std::map<std::string, bool> reached;
  auto const visit = [&](auto const& self, std::string const& path) -> void {
    if (!by_path.count(path) || reached[path]) return;
    reached[path] = true;
    for (std::string const& included : by_path[path]->includes) self(self, included);
  };
  REQUIRE(by_path.count("gmlake/gmlake.hpp") == 1);
  visit(visit, "gmlake/gmlake.hpp");
  for (header const& h : headers()) {
    CAPTURE(h.path);
    bool const vendors = h.layer == "adapter" || file_name(h.path).starts_with("cuda_");
    CHECK(reached[h.path] == !vendors);
  }
}

}  // namespace
