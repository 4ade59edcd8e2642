#pragma once
/// A tool run as its users run it: its files, its output, how it ends.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <zlib.h>

namespace gmlake::tests {
using nlohmann::json;

inline std::string const scratch = GMLAKE_SCRATCH;
inline std::string const traces = GMLAKE_TRACES;
inline std::string const small = traces + "/resnet50-fixed.csv.gz";

inline std::string contents(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of that name with that text; its path.
inline std::string file(std::string const& name, std::string const& text) {
  std::filesystem::create_directories(scratch);
  std::string const path = scratch + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline std::string gzip(std::string const& text) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  REQUIRE(deflateEnd(&z) == Z_OK);
  return out;
}

struct ended {
  int status;
  std::string out, err;
};

/// Runs `GMLAKE_TOOL` with arguments as a shell reads them.
inline ended run(std::string const& arguments) {
  std::filesystem::create_directories(scratch);
  std::string const out = scratch + "/out", err = scratch + "/err";
  std::string const command = std::string(GMLAKE_TOOL) + " " + arguments + " >" + out + " 2>" + err;
  int const status = std::system(command.c_str());
  CAPTURE(command);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

inline std::vector<json> lines(std::string const& text) {
  std::vector<json> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = text.find('\n', at);
    out.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

inline std::set<std::string> keys(json const& object) {
  std::set<std::string> out;
  for (auto const& [key, value] : object.items()) out.insert(key);
  return out;
}

inline bool contains(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

}  // namespace gmlake::tests
