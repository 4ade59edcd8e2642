#pragma once
/// Checks that no two live blocks share memory and that none loses its contents: a hook for `replay` that fills every
/// block with a pattern of its own and compares it before the block is freed.
///
/// A block up to `whole` bytes is filled throughout. In a larger one only pages are: the first, the last, and both
/// sides of every address that is a multiple of `boundary`, where two chunks may meet; so that a trace of tens of
/// gigabytes fits a small host, whose backend commits only pages that are written. What lies between is not looked at.
/// Where copies are slow, only some of those addresses are visited, other ones in every block.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmlake/backend/physical_backend.hpp"
#include "gmlake/core/alignment.hpp"
#include "gmlake/trace/event.hpp"
#include "gmlake/trace/replay.hpp"

namespace gmlake::trace {

struct verify_options {
  bytes whole = 256_KiB;   ///< blocks up to this size are filled throughout
  bytes page = 4_KiB;      ///< the piece written at each place of a larger block
  bytes boundary = 2_MiB;  ///< at most a chunk's size, and a divisor of it: CUDA's granule
  bytes most_boundaries = std::numeric_limits<bytes>::max();  ///< visited in one block, about
};

/// A backend whose contents can be reached is borrowed from the pool under test, which must outlive this.
template <CopyingBackend B>
class verifier : public no_hooks {
 public:
  verifier(B& backend, std::uint32_t allocations, verify_options const& options = {})
      : backend_(backend), options_(options), sizes_(allocations, dead) {}

  bool allocated(std::uint32_t id, address a, bytes n) {
    sizes_[id] = n;
    return visit(id, a, n, [&](bytes offset, std::span<std::byte> piece) {
      auto const done = backend_.write(a + offset, piece);
      return done || fail(id, offset, "can't be written: ", done.error());
    });
  }

  bool deallocating(std::uint32_t id, address a) {
    bytes const n = std::exchange(sizes_[id], dead);
    return visit(id, a, n, [&](bytes offset, std::span<std::byte> piece) {
      read_.resize(piece.size());
      if (auto const done = backend_.read(read_, a + offset); !done) {
        return fail(id, offset, "can't be read: ", done.error());
      }
      auto const [expected, found] = std::mismatch(piece.begin(), piece.end(), read_.begin());
      if (expected == piece.end()) return true;
      bytes const at = offset + static_cast<bytes>(expected - piece.begin());
      message_ = describe(id, at) + " holds " + std::to_string(std::to_integer<unsigned>(*found)) + " instead of " +
                 std::to_string(std::to_integer<unsigned>(*expected));
      return false;
    });
  }

  /// Checks the blocks that are still live, whose addresses are found by id.
  [[nodiscard]] bool finish(std::span<address const> addresses) {
    for (std::uint32_t id = 0; id < sizes_.size(); ++id) {
      if (sizes_[id] != dead && !deallocating(id, addresses[id])) return false;
    }
    return true;
  }

  /// What was wrong, with the id and the offset; empty when nothing was.
  [[nodiscard]] std::string const& message() const noexcept { return message_; }

 private:
  static constexpr bytes dead = static_cast<bytes>(-1);

  /// Calls `take(offset, pattern)` for each piece of a block, until one returns false.
  template <class Take>
  bool visit(std::uint32_t id, address a, bytes n, Take&& take) {
    auto const piece = [&](bytes begin, bytes end) { return begin >= end || take(begin, pattern(id, begin, end)); };
    if (n <= options_.whole) return piece(0, n);
    bytes const page = options_.page;
    bytes done = page;
    if (!piece(0, page)) return false;
    bytes const boundary = options_.boundary;
    bytes const strides = 1 + n / boundary / options_.most_boundaries;
    bytes const lead = align_down(to_integer(a), boundary) + boundary - to_integer(a);
    for (bytes meeting = lead + id % strides * boundary; meeting < n; meeting += strides * boundary) {
      bytes const begin = std::max(done, meeting < page ? 0 : meeting - page);
      done = std::min(n, meeting + page);
      if (!piece(begin, done)) return false;
    }
    return piece(std::max(done, n - page), n);
  }

  /// The bytes [begin, end) of block `id`'s pattern: each 8 bytes mix the id with their place.
  std::span<std::byte> pattern(std::uint32_t id, bytes begin, bytes end) {
    constexpr bytes word = sizeof(std::uint64_t);
    bytes const first = begin / word;
    words_.resize((end + word - 1) / word - first);
    for (bytes i = 0; i < words_.size(); ++i) {
      words_[i] = ((std::uint64_t{id} << 32) ^ (first + i) ^ 0x5bd1e995) * 0x9e3779b97f4a7c15;  // odd: one to one
    }
    return std::as_writable_bytes(std::span(words_)).subspan(begin % word, end - begin);
  }

  static std::string describe(std::uint32_t id, bytes offset) {
    return "block " + std::to_string(id) + " at offset " + std::to_string(offset);
  }
  bool fail(std::uint32_t id, bytes offset, char const* what, gmlake::error const& e) {
    message_ = describe(id, offset) + " " + what + to_string(e.code);
    return false;
  }

  B& backend_;
  verify_options options_;
  std::vector<bytes> sizes_;  ///< of live blocks, by id
  std::vector<std::uint64_t> words_;
  std::vector<std::byte> read_;
  std::string message_;
};

}  // namespace gmlake::trace
