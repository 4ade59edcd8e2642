#pragma once
/// What a test takes for granted: the value of a result, or the test ends, naming the call that failed.

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "gmlake/core/result.hpp"

namespace gmlake::test {

inline std::string describe(error const& e) {
  return std::string(e.call) + ": " + to_string(e.code) + " (" + std::to_string(e.native) + ")";
}

template <class T>
T must(result<T> r) {
  REQUIRE_MESSAGE(r.has_value(), describe(r.error()));
  return *std::move(r);
}
inline void must(result<void> r) { REQUIRE_MESSAGE(r.has_value(), describe(r.error())); }

/// Checks that a call failed, and how.
template <class T>
void fails_with(result<T> const& r, errc code) {
  REQUIRE_FALSE(r.has_value());
  CHECK_MESSAGE(r.error().code == code, describe(r.error()));
}
template <class T>
void fails_with(result<T> const& r, errc code, std::string const& call) {
  fails_with(r, code);
  CHECK(std::string(r.error().call) == call);
}

}  // namespace gmlake::test
