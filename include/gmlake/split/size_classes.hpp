#pragma once
/// Size classes on two levels, powers of two divided evenly, with a bitmap of the classes in use: the first non-empty
/// class at or above another is found in two steps (Masmano et al., TLSF, 2004, §3).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gmlake/split/split_policy.hpp"

namespace gmlake {

class size_classes {
 public:
  static constexpr unsigned divisions_log2 = 4;
  static constexpr unsigned divisions = 1u << divisions_log2;
  /// Sizes of up to 2^44 units of `block_alignment`: 8 PiB, more than a device can address.
  static constexpr unsigned levels = 44;
  static constexpr unsigned count = levels * divisions;
  static constexpr unsigned none = count;

  /// The class of a size: the one whose least size is the largest not above it.
  [[nodiscard]] static constexpr unsigned of(bytes size) noexcept {
    std::uint64_t const units = size / block_alignment;
    if (units < divisions) return static_cast<unsigned>(units);
    unsigned const top = static_cast<unsigned>(std::bit_width(units)) - 1;
    unsigned const level = top - divisions_log2 + 1;
    unsigned const division = static_cast<unsigned>(units >> (top - divisions_log2)) & (divisions - 1);
    return level * divisions + division;
  }

  /// The least class all of whose members are no smaller than `size`.
  [[nodiscard]] static constexpr unsigned all_fit(bytes size) noexcept {
    unsigned const c = of(size);
    return least(c) == size ? c : c + 1;
  }

  /// The least size in class c.
  [[nodiscard]] static constexpr bytes least(unsigned c) noexcept {
    unsigned const level = c / divisions;
    std::uint64_t const division = c % divisions;
    if (level == 0) return division * block_alignment;
    return ((divisions + division) << (level - 1)) * block_alignment;
  }

  [[nodiscard]] bool has(unsigned c) const noexcept { return (words_[c / word_bits] >> (c % word_bits) & 1) != 0; }
  void set(unsigned c) noexcept {
    words_[c / word_bits] |= std::uint64_t{1} << (c % word_bits);
    summary_ |= std::uint64_t{1} << (c / word_bits);
  }
  void clear(unsigned c) noexcept {
    std::uint64_t& word = words_[c / word_bits];
    word &= ~(std::uint64_t{1} << (c % word_bits));
    if (word == 0) summary_ &= ~(std::uint64_t{1} << (c / word_bits));
  }

  /// The first class in use at or above c; `none` where there is none.
  [[nodiscard]] unsigned at_or_above(unsigned c) const noexcept {
    if (c >= count) return none;
    unsigned w = c / word_bits;
    std::uint64_t const here = words_[w] & (~std::uint64_t{0} << (c % word_bits));
    if (here != 0) return w * word_bits + static_cast<unsigned>(std::countr_zero(here));
    std::uint64_t const above = w + 1 < word_bits ? summary_ & (~std::uint64_t{0} << (w + 1)) : 0;
    if (above == 0) return none;
    w = static_cast<unsigned>(std::countr_zero(above));
    return w * word_bits + static_cast<unsigned>(std::countr_zero(words_[w]));
  }

  /// The last class in use below c; `none` where there is none.
  [[nodiscard]] unsigned below(unsigned c) const noexcept {
    unsigned w = c / word_bits;
    std::uint64_t const here = w < words ? words_[w] & ((std::uint64_t{1} << (c % word_bits)) - 1) : 0;
    if (here != 0) return w * word_bits + last_bit(here);
    std::uint64_t const under = summary_ & ((std::uint64_t{1} << w) - 1);
    if (under == 0) return none;
    w = last_bit(under);
    return w * word_bits + last_bit(words_[w]);
  }

 private:
  static constexpr unsigned word_bits = 64;
  static constexpr unsigned words = count / word_bits;
  static_assert(count % word_bits == 0 && words < word_bits);

  [[nodiscard]] static unsigned last_bit(std::uint64_t word) noexcept {
    return static_cast<unsigned>(std::bit_width(word)) - 1;
  }

  std::array<std::uint64_t, words> words_{};
  std::uint64_t summary_ = 0;
};

}  // namespace gmlake
