#include "gmlake/core/types.hpp"

#include <concepts>
#include <type_traits>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept Subtracts = requires(A a, B b) { a - b; };
template <class A, class B>
concept Compares = requires(A a, B b) { a == b; };

// An address, a handle and a stream can't be passed for one another, nor for a number.
static_assert(!std::convertible_to<address, bytes> && !std::convertible_to<bytes, address>);
static_assert(!std::convertible_to<handle, std::uint64_t> && !std::convertible_to<stream, address>);
static_assert(!Compares<address, stream> && !Compares<address, handle> && !Compares<handle, stream>);
// An address takes an offset, and two have a distance; nothing else adds up.
static_assert(std::same_as<decltype(address{} + bytes{1}), address> && !Adds<address, address>);
static_assert(std::same_as<decltype(address{} - address{}), bytes> && !Adds<handle, bytes> && !Adds<stream, bytes>);
static_assert(!Subtracts<handle, handle> && !Subtracts<stream, stream>);
static_assert(sizeof(address) == sizeof(void*) && std::is_trivially_copyable_v<address>);

static_assert(1_KiB == 1024 && 1_MiB == 1024_KiB && 1_GiB == 1024_MiB && 1_TiB == 1024_GiB);
static_assert(to_integer(address{7}) == 7 && to_integer(handle{8}) == 8 && to_integer(stream{9}) == 9);

TEST_CASE("an address moves by bytes, and back") {
  constexpr address a{0x7f00'0000'0000};
  static_assert(a + 2_MiB - 2_MiB == a);
  static_assert((a + 3_GiB) - a == 3_GiB);
  CHECK(a < a + 1);
}

TEST_CASE("a pointer becomes an address and the same pointer again") {
  int here = 0;
  CHECK(to_pointer(to_address(&here)) == &here);
  CHECK(to_address(nullptr) == address{});
}

}  // namespace
