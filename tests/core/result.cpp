#include "gmlake/core/result.hpp"

#include <memory>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

static_assert(std::same_as<result<int>::value_type, int> && std::same_as<result<void>::value_type, void>);
static_assert(std::is_nothrow_move_constructible_v<result<std::unique_ptr<int>>>);
static_assert(!std::is_copy_constructible_v<result<int>> && !std::is_copy_assignable_v<result<int>>);
// A result is asked, never taken for its value or for a truth.
static_assert(!std::convertible_to<result<int>, bool> && !std::convertible_to<result<void>, bool>);
static_assert(!std::convertible_to<result<int>, int>);

constexpr int halved(int n) {
  auto const half = [](int of) noexcept -> result<int> {
    if (of % 2 != 0) return failure(errc::invalid_argument, "half");
    return of / 2;
  };
  result<int> const r = half(n);
  return r ? *r : -1;
}
static_assert(halved(8) == 4 && halved(7) == -1, "results work at compile time");

TEST_CASE("a result holds a value or an error") {
  result<int> const value = 3;
  REQUIRE(value.has_value());
  CHECK(*value == 3);

  result<int> const none = failure(errc::no_driver, "cuInit", 100);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::no_driver);
  CHECK(std::string(none.error().call) == "cuInit");
  CHECK(none.error().native == 100);
}

TEST_CASE("an error is passed on whole") {
  error e{.code = errc::out_of_memory, .call = "create", .native = 2, .account = {.requested = 5, .free = 7}};
  result<int> const first = failure(e);
  result<void> const second = failure(first.error());
  CHECK(second.error().code == errc::out_of_memory);
  CHECK(second.error().native == 2);
  CHECK(second.error().account.requested == 5);
  CHECK(second.error().account.free == 7);
}

TEST_CASE("a value is moved out, not copied") {
  result<std::unique_ptr<int>> r = std::make_unique<int>(4);
  CHECK(*r->get() == 4);
  std::unique_ptr<int> const out = *std::move(r);
  CHECK(*out == 4);
  CHECK(*r == nullptr);
}

TEST_CASE("a result assigned to holds what was assigned, and destroys what it held") {
  auto const watched = std::make_shared<int>(0);
  result<std::shared_ptr<int>> r = std::shared_ptr<int>(watched);
  CHECK(watched.use_count() == 2);
  r = result<std::shared_ptr<int>>(failure(errc::double_free));
  CHECK(watched.use_count() == 1);
  CHECK(r.error().code == errc::double_free);
  r = result<std::shared_ptr<int>>(std::shared_ptr<int>(watched));
  REQUIRE(r);
  CHECK(watched.use_count() == 2);
  result<std::shared_ptr<int>>& same = r;
  r = std::move(same);
  CHECK(r->get() == watched.get());
}

TEST_CASE("a result without a value is success until it is told otherwise") {
  result<void> r;
  CHECK(r);
  r = failure(errc::driver_failure);
  CHECK_FALSE(r);
  CHECK(r.error().code == errc::driver_failure);
  r = {};
  CHECK(r);
}

}  // namespace
