#pragma once
/// What a pool must never do, kept in books of its own: two live blocks share no address and no physical memory; every
/// block is mapped, aligned and as large as asked for; memory changes hands only after the work of whoever had it
/// before; nothing is unmapped while device work may use it. It also does what a careful user does: streams that come
/// to use a block wait for the one it was given to.
///
/// It keeps the first violation as a sentence, so that test programs of any kind can use it.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmlake/pool/pool_options.hpp"
#include "gmlake/stream/simulated_timeline.hpp"
#include "tests/pool/host_device.hpp"
#include "tests/pool/interval_map.hpp"

namespace gmlake::test {

class naive_model {
 public:
  struct block {
    bytes size = 0;
    stream on{};
    std::vector<stream> recorded{};
    std::vector<physical_piece> pieces{};
  };

  /// Without a timeline all work is taken to run in host order.
  naive_model(watched_device& device, std::shared_ptr<simulated_timeline> timeline)
      : device_(&device), time_(std::move(timeline)) {
    device.unmapping = [this](address va, bytes n) { unmapped(va, n); };
  }
  naive_model(naive_model const&) = delete;
  naive_model& operator=(naive_model const&) = delete;
  ~naive_model() { device_->unmapping = nullptr; }

  /// The first violation; empty while there is none.
  [[nodiscard]] std::string const& fault() const noexcept { return fault_; }
  [[nodiscard]] std::map<address, block> const& live() const noexcept { return live_; }
  [[nodiscard]] bytes requested() const noexcept { return requested_; }

  /// The pool has served `r` at `at`; `first` uses the memory before the request's stream does, which waits for that.
  void allocated(request const& r, address at, std::optional<stream> first = {}) {
    bytes const n = r.size > 0 ? r.size : 1;
    if (!is_aligned(at, std::max(r.alignment, bytes{512}))) blame("a block is aligned");
    if (addresses_.overlaps(to_integer(at), to_integer(at) + n)) blame("live blocks share no address");
    block b{.size = r.size, .on = r.on, .recorded = {}, .pieces = device_->beneath(at, n)};
    if (b.pieces.empty()) blame("a block is mapped and writable");
    for (physical_piece const& p : b.pieces) {
      auto const [begin, end] = interval(p);
      if (memory_.overlaps(begin, end)) blame("live blocks share no physical memory");
      freed_memory_.visit(begin, end, [&](guards const& g) {
        for (auto const& point : g) {
          if (!time_->ordered(point, first.value_or(r.on))) {
            blame("memory changes hands after the work of whoever had it");
          }
        }
      });
    }
    if (first) follow(r.on, *first);
    if (!fault_.empty()) return;
    addresses_.insert(to_integer(at), to_integer(at) + n, none{});
    freed_addresses_.cut(to_integer(at), to_integer(at) + n);
    for (physical_piece const& p : b.pieces) {
      auto const [begin, end] = interval(p);
      memory_.insert(begin, end, none{});
      freed_memory_.cut(begin, end);
    }
    live_.emplace(at, std::move(b));
    requested_ += r.size;
  }

  /// The user makes `s` wait for the stream that the block was given to, and will use it there.
  void recording(address at, stream s) {
    block& b = live_.at(at);
    follow(s, b.on);
    if (s != b.on && std::find(b.recorded.begin(), b.recorded.end(), s) == b.recorded.end()) b.recorded.push_back(s);
  }

  /// Before the block is deallocated: after `after`'s work, which waits for the block's stream, or after the latter's.
  void freeing(address at, std::optional<stream> after = {}) {
    block const& b = live_.at(at);
    if (after) follow(*after, b.on);
    guards last;
    if (time_ != nullptr) {
      last.push_back(end_of(after.value_or(b.on)));
      for (stream s : b.recorded) last.push_back(end_of(s));
    }
    leave(at, last);
  }

  /// Before the block's memory is handed on: `after` waits for all that use it, and works on it last.
  void handing_on(address at, stream after) {
    block const& b = live_.at(at);
    follow(after, b.on);
    for (stream s : b.recorded) follow(after, s);
    guards last;
    if (time_ != nullptr) last.push_back(end_of(after));
    leave(at, last);
  }
  /// Before the stream is retired and destroyed: nothing more is queued on it.
  void retiring(stream s) {
    if (time_ != nullptr) retired_.emplace(s, time_->queued(s));
  }
  [[nodiscard]] bool retired(stream s) const { return retired_.contains(s); }

  /// From now on whatever is unmapped is the pool's own affair: it is being destroyed.
  void close() { closed_ = true; }

 private:
  struct none {};
  using guards = std::vector<simulated_timeline::point>;
  /// A stream that no test uses: what is ordered before its work is known to the host to be done.
  static constexpr stream host{~std::uintptr_t{0}};
  static constexpr unsigned offset_bits = 40;

  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> interval(physical_piece const& p) {
    std::uint64_t const begin = (to_integer(p.memory) << offset_bits) + p.offset;
    return {begin, begin + p.size};
  }

  [[nodiscard]] simulated_timeline::point end_of(stream s) const {
    auto const gone = retired_.find(s);
    return gone != retired_.end() ? gone->second : time_->queued(s);
  }

  void follow(stream later, stream earlier) {
    if (time_ == nullptr || later == earlier || retired(earlier)) return;
    auto f = time_->record(earlier);
    if (!f) return;
    (void)time_->wait(later, *f);
    time_->release(*f);
  }

  /// The block is gone; work up to `last` may still use its memory and its addresses.
  void leave(address at, guards const& last) {
    auto const i = live_.find(at);
    block const& b = i->second;
    bytes const n = b.size > 0 ? b.size : 1;
    addresses_.cut(to_integer(at), to_integer(at) + n);
    if (time_ != nullptr) freed_addresses_.insert(to_integer(at), to_integer(at) + n, last);
    for (physical_piece const& p : b.pieces) {
      auto const [begin, end] = interval(p);
      memory_.cut(begin, end);
      if (time_ != nullptr) freed_memory_.insert(begin, end, last);
    }
    requested_ -= b.size;
    live_.erase(i);
  }

  void unmapped(address va, bytes n) {
    if (closed_) return;
    if (addresses_.overlaps(to_integer(va), to_integer(va) + n)) blame("no live block is unmapped");
    freed_addresses_.visit(to_integer(va), to_integer(va) + n, [&](guards const& g) {
      for (auto const& point : g) {
        if (!time_->ordered(point, host)) blame("nothing is unmapped while device work may use it");
      }
    });
    freed_addresses_.cut(to_integer(va), to_integer(va) + n);
  }

  void blame(char const* rule) {
    if (fault_.empty()) fault_ = rule;
  }

  watched_device* device_;
  std::shared_ptr<simulated_timeline> time_;
  std::map<address, block> live_;
  interval_map<none> addresses_;
  interval_map<none> memory_;
  interval_map<guards> freed_addresses_;
  interval_map<guards> freed_memory_;
  std::map<stream, simulated_timeline::point> retired_;
  bytes requested_ = 0;
  bool closed_ = false;
  std::string fault_;
};

}  // namespace gmlake::test
