#pragma once
/// Plans as a file, so that a program's next run needn't learn them. All numbers are little-endian:
///
///     "gmlkplan" · version u32 · plans u32 · plan ... · checksum u64 (FNV-1a of all bytes before it)
///     plan:      requests u64 · period u64 · height u64 · bound u64 · repeats u8 · laps u8 · request ...
///     request:   size u64 · stream u32 · birth u64 · death u64 · offset u64
///
/// Nothing in a file is believed: what is read keeps every rule of plan_rules.hpp, or there is an error that says what
/// is wrong. No count makes it allocate more than the file's own size times a small constant.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/plan/plan.hpp"
#include "gmlake/plan/plan_rules.hpp"

namespace gmlake::plan {

inline constexpr std::string_view plan_file_magic = "gmlkplan";
inline constexpr std::uint32_t plan_file_version = 2;

struct plans_read {
  std::vector<plan> value;
  std::string error;  ///< empty: none. With an error there are no plans

  [[nodiscard]] bool has_value() const noexcept { return error.empty(); }
  explicit operator bool() const noexcept { return has_value(); }
};

namespace detail {

inline constexpr std::size_t checksum_bytes = 8;
inline constexpr std::size_t plan_bytes = 34;
inline constexpr std::size_t request_bytes = 36;

[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (char const c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

template <std::size_t Bytes>
void put(std::string& out, std::uint64_t number) {
  for (std::size_t i = 0; i < Bytes; ++i) out.push_back(static_cast<char>(number >> 8 * i & 0xff));
}

/// Takes a number of so many bytes, which are there, from the front.
template <std::size_t Bytes>
[[nodiscard]] std::uint64_t take(std::string_view& in) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < Bytes; ++i) number |= std::uint64_t{static_cast<unsigned char>(in[i])} << 8 * i;
  in.remove_prefix(Bytes);
  return number;
}

/// Takes one plan from the front. Returns what is wrong with it; null: nothing.
[[nodiscard]] inline char const* take_plan(std::string_view& in, plan& p) {
  if (in.size() < plan_bytes) return "truncated: its head is missing";
  std::uint64_t const count = take<8>(in);
  p.period = take<8>(in);
  p.height = take<8>(in);
  p.bound = take<8>(in);
  std::uint64_t const repeats = take<1>(in);
  if (repeats > 1) return "whether it repeats is neither yes nor no";
  p.repeats = repeats == 1;
  p.laps = static_cast<std::uint32_t>(take<1>(in));
  if (count > in.size() / request_bytes) return "truncated: it has fewer requests than it says";
  p.requests.resize(count);
  for (step_request& r : p.requests) {
    r.size = take<8>(in);
    r.stream = static_cast<std::uint32_t>(take<4>(in));
    r.birth = take<8>(in);
    r.death = take<8>(in);
    r.offset = take<8>(in);
  }
  return find_fault(p);
}

}  // namespace detail

/// O(n). A prologue comes first. Throws only `std::bad_alloc`.
[[nodiscard]] inline std::string write_plans(std::span<plan const> plans) {
  using namespace detail;
  std::size_t size = plan_file_magic.size() + 8 + checksum_bytes;
  for (plan const& p : plans) size += plan_bytes + request_bytes * p.requests.size();
  std::string out(plan_file_magic);
  out.reserve(size);
  put<4>(out, plan_file_version);
  put<4>(out, plans.size());
  for (plan const& p : plans) {
    put<8>(out, p.requests.size());
    put<8>(out, p.period);
    put<8>(out, p.height);
    put<8>(out, p.bound);
    put<1>(out, p.repeats ? 1 : 0);
    put<1>(out, p.laps);
    for (step_request const& r : p.requests) {
      put<8>(out, r.size);
      put<4>(out, r.stream);
      put<8>(out, r.birth);
      put<8>(out, r.death);
      put<8>(out, r.offset);
    }
  }
  put<8>(out, fnv1a(out));
  return out;
}

/// O(n log n). Takes any text. Throws only `std::bad_alloc`.
[[nodiscard]] inline plans_read read_plans(std::string_view text) {
  using namespace detail;
  auto const fail = [](std::string what) { return plans_read{{}, std::move(what)}; };
  std::size_t const head = plan_file_magic.size() + 8;
  if (text.substr(0, plan_file_magic.size()) != plan_file_magic.substr(0, text.size())) return fail("not a plan file");
  if (text.size() < head + checksum_bytes) return fail("truncated: the file is shorter than an empty one");
  std::string_view in = text.substr(plan_file_magic.size(), text.size() - plan_file_magic.size() - checksum_bytes);
  std::string_view sum = text.substr(text.size() - checksum_bytes);
  std::uint64_t const version = take<4>(in);
  if (version != plan_file_version) {
    return fail("the file has version " + std::to_string(version) + ", which is not " +
                std::to_string(plan_file_version));
  }
  if (take<8>(sum) != fnv1a(text.substr(0, text.size() - checksum_bytes))) {
    return fail("the checksum is wrong: the file is truncated or damaged");
  }
  std::uint64_t const count = take<4>(in);
  if (count > in.size() / plan_bytes) return fail("truncated: there are fewer plans than the file says");
  plans_read read;
  read.value.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    char const* fault = take_plan(in, read.value[i]);
    if (fault == nullptr && i > 0 && !read.value[i].repeats) fault = "a prologue comes first, and there is only one";
    if (fault != nullptr) return fail("plan " + std::to_string(i) + ": " + fault);
  }
  if (!in.empty()) return fail(std::to_string(in.size()) + " bytes follow the last plan");
  return read;
}

}  // namespace gmlake::plan
