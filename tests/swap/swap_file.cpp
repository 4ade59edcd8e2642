/// A file below pinned memory: what is written there is read back, up to its capacity, and errors cost nothing.

#include "gmlake/swap/swap_file.hpp"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <sys/resource.h>

#include "tests/backend/must.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::slot;
using swap::swap_file;

namespace {

constexpr bytes kib = 1_KiB;

[[nodiscard]] swap_file open(bytes capacity) {
  return must(swap_file::open({.directory = "/tmp", .capacity = capacity}));
}

[[nodiscard]] std::vector<unsigned char> text(bytes n, unsigned char first) {
  std::vector<unsigned char> all(n);
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Files that this process writes end at a size, for a while.
class short_files {
 public:
  explicit short_files(bytes n) : heard_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const now{.rlim_cur = n, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  short_files(short_files const&) = delete;
  short_files& operator=(short_files const&) = delete;
  ~short_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, heard_);
  }

 private:
  rlimit before_{};
  void (*heard_)(int);
};

}  // namespace

TEST_CASE("what is written is read back, whole or in parts, and leaves no name in the directory") {
  auto const names = [] {
    auto const all = std::filesystem::directory_iterator("/tmp");
    return std::distance(begin(all), end(all));
  };
  auto const before = names();
  swap_file f = open(1_MiB);
  auto const one = text(300 * kib, 1);
  auto const two = text(100 * kib, 77);
  slot const a = must(f.write(to_address(one.data()), one.size()));
  slot const b = must(f.write(to_address(two.data()), two.size()));
  CHECK(f.used() == 400 * kib);
  std::vector<unsigned char> back(300 * kib);
  must(f.read(to_address(back.data()), a, 0, back.size()));
  CHECK(back == one);
  must(f.read(to_address(back.data()), b, 1000, 99 * kib));
  CHECK(std::memcmp(back.data(), two.data() + 1000, 99 * kib) == 0);
  CHECK(names() <= before);
}

TEST_CASE("what is released makes room for what fits there") {
  swap_file f = open(1_MiB);
  auto const some = text(512 * kib, 3);
  address const from = to_address(some.data());
  slot const a = must(f.write(from, 256 * kib));
  slot const b = must(f.write(from, 256 * kib));
  slot const c = must(f.write(from, 512 * kib));
  CHECK(f.write(from, kib).error().code == errc::out_of_memory);
  f.release(b, 256 * kib);
  CHECK(f.write(from, 257 * kib).error().code == errc::out_of_memory);
  CHECK(must(f.write(from, 200 * kib)) == b);
  f.release(a, 256 * kib);
  CHECK(must(f.write(from, 256 * kib)) == a);
  std::vector<unsigned char> back(512 * kib);
  must(f.read(to_address(back.data()), c, 0, back.size()));
  CHECK(back == some);
}

TEST_CASE("a disk that is full takes nothing, and what it has stays whole") {
  swap_file f = open(10_MiB);
  auto const some = text(512 * kib, 3);
  address const from = to_address(some.data());
  slot const a = must(f.write(from, 512 * kib));
  {
    short_files const limit(768 * kib);  // half of it is written before the end
    auto const full = f.write(from, 512 * kib);
    fails_with(full, errc::out_of_memory, "pwrite");
    CHECK(full.error().native == EFBIG);
  }
  CHECK(f.used() == 512 * kib);
  std::vector<unsigned char> back(512 * kib);
  must(f.read(to_address(back.data()), a, 0, back.size()));
  CHECK(back == some);
  CHECK(must(f.write(from, 512 * kib)) == slot{512 * kib});
}

TEST_CASE("a file that is shorter than it should be is an error, not zeros") {
  swap_file f = open(10_MiB);
  auto const some = text(64 * kib, 3);
  slot const a = must(f.write(to_address(some.data()), some.size()));
  std::vector<unsigned char> back(128 * kib);
  auto const missing = f.read(to_address(back.data()), a, 0, back.size());
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::driver_failure);
  CHECK(missing.error().native == EIO);
}

TEST_CASE("no file takes nothing, and no directory has no file") {
  swap_file none;
  CHECK(none.capacity() == 0);
  unsigned char byte = 1;
  CHECK(none.write(to_address(&byte), 1).error().code == errc::out_of_memory);
  auto const missing = swap_file::open({.directory = "/no/such/directory", .capacity = 1_MiB});
  CHECK(missing.error().code == errc::driver_failure);
  CHECK(missing.error().native == ENOENT);
  swap_file moved = open(1_MiB);
  none = std::move(moved);
  CHECK(none.capacity() == 1_MiB);
}
