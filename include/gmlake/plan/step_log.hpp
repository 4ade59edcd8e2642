#pragma once
/// What a running program has asked for lately, request by request: the text in which steps are found, and from which
/// plans are made. Remembers a bounded number of requests, the youngest; knows the fingerprint of any range of them
/// without a look at each. Time is the number of requests and frees so far.
///
/// Live bytes are right whatever is forgotten. When host memory runs out it stops, and says so. It must not know what a
/// step is.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "gmlake/plan/plan.hpp"

namespace gmlake::plan {

struct step_log_options {
  std::size_t most =
      std::size_t{1} << 20;  ///< requests remembered, 40 bytes each; rounded up to a power of two, 4,096 at least
};

/// A request as the log remembers it.
struct logged_request {
  bytes size = 0;
  std::uint64_t before = 0;  ///< the fingerprint of all requests before it
  instant birth = 0;
  instant death = step_request::stays;
  std::uint32_t stream = 0;
};

class step_log {
 public:
  /// The number of a request that isn't logged.
  static constexpr std::uint64_t unlogged = std::numeric_limits<std::uint64_t>::max();

  explicit step_log(step_log_options o = {}) noexcept
      : capacity_(std::bit_ceil(std::clamp<std::size_t>(o.most, page_size, most_possible))) {}

  /// Logs a request and returns its number, by which it is freed: they count from 0, and go on after `clear`. Once
  /// stopped it returns `unlogged`. O(1); forgets the eldest when full.
  std::uint64_t allocated(bytes size, std::uint32_t stream) noexcept {
    live_ += size;
    instant const birth = now_++;
    logged_request* const r = room();
    if (r == nullptr) return unlogged;
    *r = {size, so_far_, birth, step_request::stays, stream};
    so_far_ = gmlake::plan::fingerprint(so_far_, size, stream);
    return end_++;
  }

  /// Says that a request has been freed: one logged, forgotten, or `unlogged`. O(1).
  void freed(std::uint64_t number, bytes size) noexcept {
    live_ -= size;
    instant const death = now_++;
    if (number >= first_ && number < end_) at(number).death = death;
  }

  /// Forgets all requests, and goes on if it was stopped. `live` bytes count as live: at least those of requests that
  /// may still be freed. Keeps its memory.
  void clear(bytes live) noexcept {
    live_ = live;
    first_ = end_;
    stopped_ = false;
  }

  /// Those remembered: [first, end).
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bytes live() const noexcept { return live_; }
  /// Requests and frees so far.
  [[nodiscard]] instant now() const noexcept { return now_; }
  /// Whether requests were lost at the end.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  /// One that is remembered.
  [[nodiscard]] logged_request const& operator[](std::uint64_t number) const noexcept {
    return pages_[page_of(number)][number % page_size];
  }

  /// What `plan::fingerprint` gives for the requests [first, last), all remembered. O(log(last − first)).
  [[nodiscard]] std::uint64_t fingerprint(std::uint64_t first, std::uint64_t last) const noexcept {
    return before(last) - before(first) * power(last - first);
  }

  /// The same for the youngest `Count`, of which there are so many. O(1).
  template <std::uint64_t Count>
  [[nodiscard]] std::uint64_t last_fingerprint() const noexcept {
    constexpr std::uint64_t factor = power(Count);
    return so_far_ - (*this)[end_ - Count].before * factor;
  }

  /// From the first request to the last, which counts no more: the length of that step.
  [[nodiscard]] instant period(std::uint64_t first, std::uint64_t last) const noexcept {
    return first == last ? 0 : birth(last) - birth(first);
  }

  /// How long one lived that is remembered, or `stays`.
  [[nodiscard]] instant life(std::uint64_t number) const noexcept {
    logged_request const& r = (*this)[number];
    return r.death == step_request::stays ? r.death : r.death - r.birth;
  }

  /// The requests [first, last), all remembered, as one step. One that lived longer than a period `stays`, and so does
  /// one that lives: ask when the step after this has passed. O(last − first). Throws only `std::bad_alloc`.
  [[nodiscard]] std::vector<step_request> step(std::uint64_t first, std::uint64_t last) const {
    std::vector<step_request> all;
    all.reserve(last - first);
    instant const begin = birth(first);
    instant const longest = period(first, last);
    for (std::uint64_t n = first; n < last; ++n) {
      logged_request const& r = (*this)[n];
      bool const kept = r.death != step_request::stays && r.death - r.birth <= longest;
      all.push_back({r.size, r.stream, r.birth - begin, kept ? r.death - begin : step_request::stays});
    }
    return all;
  }

 private:
  static constexpr std::size_t page_size = 4096;  // requests; growing page by page, none is ever copied
  static constexpr std::size_t most_possible = std::size_t{1} << 40;

  /// The factor of the fingerprint's polynomial.
  static constexpr std::uint64_t factor_ = gmlake::plan::fingerprint(1, 0, 0) - gmlake::plan::fingerprint(0, 0, 0);
  [[nodiscard]] static constexpr std::uint64_t power(std::uint64_t exponent) noexcept {
    std::uint64_t result = 1;
    for (std::uint64_t square = factor_; exponent != 0; exponent >>= 1, square *= square) {
      if ((exponent & 1) != 0) result *= square;
    }
    return result;
  }

  [[nodiscard]] std::size_t page_of(std::uint64_t number) const noexcept {
    return (number & (capacity_ - 1)) / page_size;
  }
  [[nodiscard]] logged_request& at(std::uint64_t number) noexcept {
    return const_cast<logged_request&>(static_cast<step_log const&>(*this)[number]);
  }
  [[nodiscard]] std::uint64_t before(std::uint64_t number) const noexcept {
    return number == end_ ? so_far_ : (*this)[number].before;
  }
  [[nodiscard]] instant birth(std::uint64_t number) const noexcept {
    return number == end_ ? now_ : (*this)[number].birth;
  }

  /// Where the next request goes; null once stopped.
  [[nodiscard]] logged_request* room() noexcept {
    if (stopped_) return nullptr;
    if (page_of(end_) == pages_.size() && !add_page()) return nullptr;
    if (end_ - first_ == capacity_) ++first_;
    return &at(end_);
  }
  bool add_page() noexcept {
    try {
      pages_.push_back(std::make_unique<logged_request[]>(page_size));
    } catch (std::bad_alloc const&) {
      stopped_ = true;
    }
    return !stopped_;
  }

  std::uint64_t capacity_;
  std::vector<std::unique_ptr<logged_request[]>> pages_;  ///< a ring: numbers ascend through it, and begin anew
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t so_far_ = 0;  ///< the fingerprint of all requests
  instant now_ = 0;
  bytes live_ = 0;
  bool stopped_ = false;
};

}  // namespace gmlake::plan
