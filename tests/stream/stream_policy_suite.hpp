#pragma once
/// What every StreamPolicy must do. To hold one to it, specialise `make_streams` and invoke the suite:
///
///     template <> std::optional<one_stream> gmlake::test::make_streams() { return one_stream{}; }
///     TEST_CASE_TEMPLATE_INVOKE(stream_policy, gmlake::one_stream);

#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "gmlake/stream/stream_policy.hpp"
#include "tests/backend/must.hpp"

namespace gmlake::test {

/// A fresh policy; or none, having said why in a message.
template <class S>
std::optional<S> make_streams();

inline constexpr stream first_stream{};
inline constexpr stream second_stream{2};  ///< CUDA's default stream of the calling thread

TEST_CASE_TEMPLATE_DEFINE("a stream policy keeps its contract", S, stream_policy) {
  std::optional<S> made = make_streams<S>();
  if (!made) return;
  S& s = *made;
  using fence = typename S::fence;

  SUBCASE("a fence is reached once the host waited for it, and stays so") {
    fence f = must(s.record(first_stream));
    must(s.synchronize(f));
    CHECK(must(s.reached(f)));
    CHECK(must(s.reached(f)));
    s.release(f);
  }

  SUBCASE("waiting for a fence reaches the earlier ones of its stream") {
    fence early = must(s.record(first_stream));
    fence late = must(s.record(first_stream));
    must(s.synchronize(late));
    CHECK(must(s.reached(early)));
    s.release(early);
    s.release(late);
  }

  SUBCASE("waiting for the device reaches every fence") {
    fence f = must(s.record(first_stream));
    fence g = must(s.record(second_stream));
    must(s.synchronize_device());
    CHECK(must(s.reached(f)));
    CHECK(must(s.reached(g)));
    s.release(f);
    s.release(g);
  }

  SUBCASE("waiting for a stream that waited for another reaches the other's fence") {
    fence f = must(s.record(first_stream));
    must(s.wait(second_stream, f));
    fence g = must(s.record(second_stream));
    must(s.synchronize(g));
    CHECK(must(s.reached(f)));
    s.release(f);
    s.release(g);
  }

  SUBCASE("a stream may wait for itself") {
    fence f = must(s.record(first_stream));
    must(s.wait(first_stream, f));
    must(s.synchronize(f));
    CHECK(must(s.reached(f)));
    s.release(f);
  }

  SUBCASE("fences are released in any order, reached or not, and recorded again") {
    for (int round = 0; round != 3; ++round) {
      std::vector<fence> fences;
      for (int i = 0; i != 200; ++i) fences.push_back(must(s.record(i % 2 == 0 ? first_stream : second_stream)));
      for (std::size_t i = 0; i < fences.size(); i += 2) s.release(fences[i]);
      must(s.synchronize(fences.back()));
      for (std::size_t i = 1; i < fences.size(); i += 2) {
        CHECK(must(s.reached(fences[i])));
        s.release(fences[i]);
      }
    }
  }

  SUBCASE("a moved policy keeps its fences") {
    fence f = must(s.record(first_stream));
    S moved = std::move(s);
    must(moved.synchronize(f));
    CHECK(must(moved.reached(f)));
    moved.release(f);
    s = std::move(moved);
    fence g = must(s.record(second_stream));
    must(s.synchronize(g));
    s.release(g);
  }

  SUBCASE("where nothing runs concurrently, a fence is reached at once") {
    fence f = must(s.record(first_stream));
    if (!s.concurrent()) CHECK(must(s.reached(f)));
    must(s.synchronize(f));
    CHECK(must(s.reached(f)));
    s.release(f);
  }
}

}  // namespace gmlake::test
