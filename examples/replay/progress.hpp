#pragma once
/// Progress on standard error: one line that rewrites itself on a terminal, one line a replay elsewhere.

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include "format.hpp"

namespace gmlake::tools {

class progress {
 public:
  /// Something begins that takes a while.
  void begin(std::string what) {
    what_ = std::move(what);
    started_ = shown_ = clock::now();
  }
  /// How much of it is done, from 0 to 1.
  void update(std::string_view activity, double done) {
    auto const now = clock::now();
    if (!terminal_ || now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    (void)std::fprintf(stderr, "\r\x1b[K%s: %.*s, %s", what_.c_str(), static_cast<int>(activity.size()),
                       activity.data(), percent(done).c_str());
    (void)std::fflush(stderr);
  }
  void end() {
    if (terminal_) (void)std::fputs("\r\x1b[K", stderr);
    else (void)std::fprintf(stderr, "%s: %s s\n", what_.c_str(), fixed(seconds(clock::now() - started_), 2).c_str());
  }

 private:
  using clock = std::chrono::steady_clock;
  static double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string what_;
  clock::time_point started_, shown_;
};

}  // namespace gmlake::tools
