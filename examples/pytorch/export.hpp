#pragma once
/// How C functions of the adapter's libraries report: null for success, or the error's text, which is valid until the
/// thread's next call.

#include <exception>
#include <string>
#include <utility>

#define GMLAKE_EXPORT __attribute__((visibility("default")))

namespace gmlake::torch_c {

/// Keeps a text for this thread's caller.
[[nodiscard]] inline char const* keep(std::string text) {
  static thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

template <class Call>
[[nodiscard]] char const* attempt(Call&& call) noexcept {
  try {
    std::forward<Call>(call)();
    return nullptr;
  } catch (std::exception const& e) {
    try {
      return keep(e.what());
    } catch (...) {
    }
  } catch (...) {
  }
  return "gmlake: out of host memory";
}

}  // namespace gmlake::torch_c
