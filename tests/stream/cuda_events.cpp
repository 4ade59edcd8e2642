#if __has_include(<cuda.h>)

#include "gmlake/stream/cuda_events.hpp"

#include <cstdint>

#include <dlfcn.h>

#include "tests/stream/stream_policy_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<cuda_events> gmlake::test::make_streams() {
  auto opened = cuda_events::open();
  if (!opened) {
    MESSAGE("skipped: ", describe(opened.error()));
    return std::nullopt;
  }
  return *std::move(opened);
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(stream_policy, cuda_events);
}

TEST_CASE("opening the events of a device says what is missing, the driver or the device") {
  auto const opened = cuda_events::open({.device = 10'000});
  REQUIRE_FALSE(opened.has_value());
  if (cuda_driver::get()) fails_with(opened, errc::invalid_argument, "cuDeviceGet");
  else fails_with(opened, errc::no_driver);
}

TEST_CASE("events are created when needed and used again once released") {
  auto s = make_streams<cuda_events>();
  if (!s) return;
  CHECK(s->events() == 0);
  for (int i = 0; i != 10; ++i) {
    auto f = must(s->record(first_stream));
    s->release(f);
  }
  CHECK(s->events() == 1);
  std::vector<cuda_events::fence> fences;
  for (int i = 0; i != 300; ++i) fences.push_back(must(s->record(second_stream)));
  for (auto& f : fences) s->release(f);
  CHECK(s->events() == 300);
}

namespace {

/// The entry points that only this test needs.
template <class Entry>
Entry* entry(char const* name) {
  return reinterpret_cast<Entry*>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

}  // namespace

TEST_CASE("a captured stream is neither recorded nor made to wait, and its capture goes on") {
  auto s = make_streams<cuda_events>();
  if (!s) return;
  auto const context = must(cuda_context::retain(0));
  auto const create = entry<decltype(::cuStreamCreate)>("cuStreamCreate");
  auto const destroy = entry<decltype(::cuStreamDestroy)>("cuStreamDestroy_v2");
  auto const begin = entry<decltype(::cuStreamBeginCapture)>("cuStreamBeginCapture_v2");
  auto const end = entry<decltype(::cuStreamEndCapture)>("cuStreamEndCapture");
  auto const destroy_graph = entry<decltype(::cuGraphDestroy)>("cuGraphDestroy");

  for (auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    for (unsigned flags : {unsigned{CU_STREAM_DEFAULT}, unsigned{CU_STREAM_NON_BLOCKING}}) {
      CAPTURE(mode);
      CAPTURE(flags);
      auto other = must(s->record(second_stream));
      CUstream captured = nullptr;
      CUgraph graph = nullptr;
      CUresult const ended = context.with_current([&](cuda_driver const&) noexcept {
        if (CUresult const r = create(&captured, flags); r != CUDA_SUCCESS) return r;
        if (CUresult const r = begin(captured, mode); r != CUDA_SUCCESS) return r;
        auto const name = static_cast<stream>(reinterpret_cast<std::uintptr_t>(captured));
        fails_with(s->record(name), errc::not_supported);
        fails_with(s->wait(name, other), errc::not_supported);
        must(s->synchronize(other));
        CHECK(must(s->reached(other)));
        std::vector<cuda_events::fence> fences;  // more than there are events yet
        for (std::size_t i = 0, n = s->events(); i <= n; ++i) fences.push_back(must(s->record(second_stream)));
        for (auto& f : fences) s->release(f);
        // The default stream waits for a blocking stream, and so can't be recorded while that is captured.
        auto on_default = s->record(first_stream);
        if (flags == CU_STREAM_NON_BLOCKING) must(s->synchronize(*on_default));
        else fails_with(on_default, errc::not_supported);
        if (on_default) s->release(*on_default);
        return end(captured, &graph);
      });
      CHECK(ended == CUDA_SUCCESS);
      CHECK(graph != nullptr);
      static_cast<void>(destroy_graph(graph));
      static_cast<void>(destroy(captured));
      s->release(other);
    }
  }
}

TEST_CASE("whether a stream is captured is known from its capture's beginning to its end, and of no other stream") {
  if (!make_streams<cuda_events>()) {
    CHECK_FALSE(cuda_events::captured(first_stream));  // without a driver nothing is
    return;
  }
  auto const context = must(cuda_context::retain(0));
  auto const create = entry<decltype(::cuStreamCreate)>("cuStreamCreate");
  auto const destroy = entry<decltype(::cuStreamDestroy)>("cuStreamDestroy_v2");
  auto const begin = entry<decltype(::cuStreamBeginCapture)>("cuStreamBeginCapture_v2");
  auto const end = entry<decltype(::cuStreamEndCapture)>("cuStreamEndCapture");
  auto const destroy_graph = entry<decltype(::cuGraphDestroy)>("cuGraphDestroy");
  for (auto mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    CAPTURE(mode);
    CUstream queue = nullptr;
    CUstream beside = nullptr;
    CUgraph graph = nullptr;
    CUresult const ended = context.with_current([&](cuda_driver const&) noexcept {
      if (CUresult const r = create(&queue, CU_STREAM_NON_BLOCKING); r != CUDA_SUCCESS) return r;
      if (CUresult const r = create(&beside, CU_STREAM_NON_BLOCKING); r != CUDA_SUCCESS) return r;
      auto const name = static_cast<stream>(reinterpret_cast<std::uintptr_t>(queue));
      auto const other = static_cast<stream>(reinterpret_cast<std::uintptr_t>(beside));
      CHECK_FALSE(cuda_events::captured(name));
      if (CUresult const r = begin(queue, mode); r != CUDA_SUCCESS) return r;
      CHECK(cuda_events::captured(name));
      CHECK_FALSE(cuda_events::captured(other));
      CUresult const r = end(queue, &graph);  // asking has not broken it
      CHECK_FALSE(cuda_events::captured(name));
      return r;
    });
    CHECK(ended == CUDA_SUCCESS);
    CHECK(graph != nullptr);
    static_cast<void>(destroy_graph(graph));
    static_cast<void>(destroy(queue));
    static_cast<void>(destroy(beside));
  }
}

#endif  // cuda.h
