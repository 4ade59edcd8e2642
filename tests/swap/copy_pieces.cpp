#include "gmlake/swap/copy_pieces.hpp"

#include <doctest/doctest.h>

namespace gmlake::swap::copy_pieces_test {
namespace {

TEST_CASE("copies are in small pieces once memory was mapped, in larger ones with each since, and whole in the end") {
  copy_pieces pieces(7);
  CHECK(pieces.next(7) == 0);
  CHECK(pieces.next(8) == 8_MiB);
  CHECK(pieces.next(8) == 16_MiB);
  CHECK(pieces.next(9) == 8_MiB);
  for (bytes n = 16_MiB; n <= 1_GiB; n *= 2) CHECK(pieces.next(9) == n);
  CHECK(pieces.next(9) == 0);
  CHECK(pieces.next(9) == 0);
  CHECK(pieces.next(12) == 8_MiB);
}

}  // namespace
}  // namespace gmlake::swap::copy_pieces_test
