#pragma once
/// How the tool ends, and how it complains.

#include <cstdio>
#include <string>

namespace gmlake::tools {

inline constexpr int succeeded = 0;
inline constexpr int replay_failed = 1;
inline constexpr int bad_input = 2;

inline void say(std::string const& message) { (void)std::fprintf(stderr, "gmlake-replay: %s\n", message.c_str()); }

}  // namespace gmlake::tools
