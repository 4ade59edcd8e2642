#include "gmlake/pool/wanted_chunks.hpp"

#include <array>
#include <memory>

#include <doctest/doctest.h>

namespace gmlake {
namespace {

void map(stitch& s, std::initializer_list<chunk*> chunks) {
  s.chunks = std::make_unique<mapped_chunk[]>(chunks.size());
  for (chunk* const c : chunks) s.chunks[s.count++].of = c;
  for (mapped_chunk& m : s.mapped()) m.list(s);
}
void unmap(stitch& s) {
  for (mapped_chunk& m : s.mapped()) m.unlist();
  s.count = 0;
}

}  // namespace

TEST_CASE("a chunk is wanted when the first of the mappings that are kept for later blocks is") {
  std::array<chunk, 2> c;
  std::array<stitch, 3> s;
  block b;
  map(s[0], {&c[0], &c[1]});
  map(s[1], {&c[1]});
  map(s[2], {&c[1], &c[0], &c[1]});
  CHECK(c[0].stitches == 2);
  CHECK(c[1].stitches == 4);
  CHECK(first_wanted(c[1], 0) == foresight::never);
  for (std::uint64_t i = 0; i < 3; ++i) {
    s[i].foreseen = {.as = i + 1, .again = 10 * (i + 1)};
    note_wants(s[i]);
  }
  CHECK(first_wanted(c[0], 0) == 10);
  CHECK(first_wanted(c[1], 10) == 20);
  CHECK(first_wanted(c[0], 10) == 30);
  CHECK(first_wanted(c[0], 30) == foresight::never);

  s[1].serves = &b;  // it has memory
  note_wants(s[1]);
  CHECK(first_wanted(c[1], 10) == 30);
  s[1].vacated = true;
  note_wants(s[1]);
  CHECK(first_wanted(c[1], 10) == 20);

  unmap(s[1]);
  CHECK(c[1].stitches == 3);
  CHECK(first_wanted(c[1], 10) == 30);
  unmap(s[2]);
  CHECK(first_wanted(c[1], 10) == foresight::never);
  CHECK(first_wanted(c[1], 9) == foresight::never);  // what was left of it is not kept for later
  unmap(s[0]);
  CHECK(c[0].stitches + c[1].stitches == 0);
  CHECK(c[0].mappings == nullptr);
}

}  // namespace gmlake
