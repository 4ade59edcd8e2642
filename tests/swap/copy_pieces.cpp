#include "gmlake/swap/copy_pieces.hpp"

#include <doctest/doctest.h>

namespace gmlake::swap::copy_pieces_test {
namespace {

TEST_CASE("copies are in small pieces once memory was mapped, in larger ones with each since, up to a size") {
  copy_pieces pieces(7);
  CHECK(pieces.next(7) == copy_pieces::largest);
  CHECK(pieces.next(8) == 8_MiB);
  CHECK(pieces.next(8) == 16_MiB);
  CHECK(pieces.next(9) == 8_MiB);
  for (bytes n = 16_MiB; n <= 32_MiB; n *= 2) CHECK(pieces.next(9) == n);
  CHECK(pieces.next(9) == 32_MiB);
  CHECK(pieces.next(12) == 8_MiB);
}

}  // namespace
}  // namespace gmlake::swap::copy_pieces_test
