/// Every call of every move fails once, each in a run of its own, and then many in a row: whatever was asked
/// for can be asked for again, no byte is wrong meanwhile, and nothing is left over.

#include <initializer_list>
#include <string>

#include "tests/swap/swap_rig.hpp"

using namespace gmlake;
using namespace gmlake::test;
using swap::residency;
using swap::tag;

namespace {

constexpr bytes unit = 256_KiB;  ///< a chunk
constexpr stream work = swap_rig::work;

/// What can fail.
enum class source : std::uint8_t { device, host, copies, records, looks, waits, writes, reads };
constexpr char const* to_string(source s) {
  constexpr char const* names[] = {"device", "host", "copies", "records", "looks", "waits", "writes", "reads"};
  return names[static_cast<std::size_t>(s)];
}

/// One program over a small device, in which `count` calls of one source fail after the first `first` of it.
class sweep {
 public:
  sweep(swap_rig_options const& o, source from, std::uint64_t first, std::uint64_t count)
      : from_(from), first_(first), count_(count), rig_(o) {
    fault_plan const plan{.first = first, .count = count, .only = {}};
    auto const counted = [this] { return calls_++ - first_ < count_; };  // unsigned: those before are far beyond
    switch (from) {
      case source::device: rig_.device.calls.arm(plan); break;
      case source::host: rig_.host.calls.arm(plan); break;
      case source::copies: rig_.queues->copy_fails = counted; break;
      case source::records: rig_.queues->record_fails = counted; break;
      case source::looks: rig_.queues->reached_fails = counted; break;
      case source::waits: rig_.queues->wait_fails = counted; break;
      case source::writes: rig_.store->write_fails = counted; break;
      case source::reads: rig_.store->read_fails = counted; break;
    }
  }

  /// Whether any call has failed: if none, the program has no such call.
  [[nodiscard]] bool failed() const {
    switch (from_) {
      case source::device: return rig_.device.calls.faults() > 0;
      case source::host: return rig_.host.calls.faults() > 0;
      default: return calls_ > first_;
    }
  }

  void run() {
    held a = take(2 * unit, tag{1});
    held b = take(unit + 75'000, tag{2});
    held c = take(unit, tag{2});

    // Out, its memory used by others, and back by way of a prefetch.
    ask([&] { return rig_.pool->swap_out(a.at, work, vacating::leave); });
    ask([&] { return progress(); });
    ask([&] { return gone(a); });
    use_in_place(a);
    held d = take(3 * unit, tag{3});
    look(d);
    free(d);
    ask([&] { return rig_.pool->prefetch(a.at); });
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    look(a);
    write(a);

    // Out and left mapped, some of its memory used by others, and unmapped after all.
    ask([&] { return rig_.pool->swap_out(a.at, work, vacating::leave); });
    ask([&] { return gone(a); });
    held f = take(unit, tag{3});
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    look(a);
    ask([&] { return rig_.pool->swap_out(a.at, work, vacating::leave); });
    ask([&] { return rig_.pool->unmap_absent(any_block); });
    ask([&] { return gone(a); });
    ask([&] { return rig_.pool->unmap_absent(any_block); });
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    look(a);
    look(f);
    free(f);

    // Out again while it arrives, its memory used by others, and freed while its copy is under way.
    ask([&] { return rig_.pool->swap_out(a.at, work, vacating::leave); });
    ask([&] { return rig_.pool->prefetch(a.at); });
    ask([&] { return rig_.pool->swap_out(a.at, work, vacating::leave); });
    held g = take(unit, tag{3});
    look(g);
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    look(a);
    look(g);
    ask([&] { return rig_.pool->swap_out(g.at, work, vacating::leave); });
    free(g);

    // Called back, written while the useless copy is under way, and out again.
    ask([&] { return rig_.pool->swap_out(a.at, work); });
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    write(a);
    ask([&] { return gone(a); });
    ask([&] { return rig_.pool->swap_in(a.at, work); });
    look(a);

    // Not copied again while nobody writes it; copied again as soon as somebody does.
    ask([&] { return rig_.pool->set_read_only(b.at, true); });
    for (int i = 0; i < 2; ++i) {
      ask([&] { return gone(b); });
      ask([&] { return rig_.pool->swap_in(b.at, work); });
      look(b);
    }
    ask([&] { return rig_.pool->set_read_only(b.at, false); });
    write(b);

    // Several at once, used by a second stream besides.
    ask([&] { return rig_.pool->record_stream(c.at, stream{2}); });
    for (tag const group : {tag{1}, tag{2}}) {
      ask([&] { return all(rig_.pool->pause(group)); });
    }
    ask([&] { return trim(); });
    for (held* h : {&a, &b, &c}) use_in_place(*h);
    for (tag const group : {tag{2}, tag{1}}) {
      ask([&] { return all(rig_.pool->resume(group)); });
    }
    for (held const* h : {&a, &b, &c}) look(*h);
    ask([&] { return all(rig_.pool->pause(tag{1}, false)); });
    ask([&] { return all(rig_.pool->resume(tag{1})); });
    write(a);

    // Freed in every state.
    held e = take(unit, tag{4});
    ask([&] { return gone(b); });
    ask([&] { return gone(c); });
    for (held* h : {&b, &c}) use_in_place(*h);
    ask([&] { return rig_.pool->prefetch(c.at); });
    ask([&] { return rig_.pool->swap_out(a.at, work); });
    look(e);
    for (held* h : {&a, &b, &c, &e}) free(*h);
    calm();
    for (stream const s : {copy_queues::out, copy_queues::in}) rig_.queues->work(s, 100);
    must(rig_.pool->settle());
    swap::swap_stats const s = rig_.pool->swaps();
    CHECK(s.swappable == 0);
    CHECK(s.absent == 0);
    CHECK(s.in_place == 0);
    CHECK(s.on_file == 0);
    CHECK(s.on_host == 0);
    rig_.pool.reset();  // and the stages of what comes back from a file
    CHECK(rig_.on_device->stats().live.now == 0);
    CHECK(rig_.on_host->stats().live.now == 0);
    must(rig_.on_device->trim());
    must(rig_.on_host->trim());
    CHECK(rig_.device.device().live_handles() == 0);
    CHECK(rig_.host.device().live_handles() == 0);
  }

 private:
  struct held {
    address at{};
    bytes size = 0;
    unsigned char value = 0;
  };

  /// Asks until it is done: at the latest when the faults are used up.
  template <class Call>
  void ask(Call&& call) {
    for (std::uint64_t tries = 0; tries < 200; ++tries) {
      if (call().has_value()) return rig_.sound();
      rig_.sound();
    }
    FAIL("a move fails although nothing else does");
  }

  [[nodiscard]] held take(bytes n, tag group) {
    held h{.at = {}, .size = n, .value = ++values_};
    ask([&]() -> result<void> {
      result<address> const at = rig_.pool->allocate(n, work, group);
      if (!at) return failure(at.error());
      h.at = *at;
      return {};
    });
    rig_.fill(h.at, n, h.value);
    return h;
  }
  void look(held const& h) { CHECK(rig_.holds(h.at, h.size, h.value)); }
  void write(held& h) {
    h.value = ++values_;
    rig_.fill(h.at, h.size, h.value);
  }
  /// Where a block is served from its copy, it is as good as there.
  void use_in_place(held& h) {
    if (!must(rig_.pool->served_in_place(h.at))) return;
    look(h);
    write(h);
  }
  void free(held& h) {
    ask([&] { return rig_.pool->deallocate(h.at); });
  }
  [[nodiscard]] result<void> progress() const {
    result<bool> const more = rig_.pool->progress();
    return more ? result<void>{} : failure(more.error());
  }
  /// Sent away, until it is absent: a departure that met a fault may have been given up.
  [[nodiscard]] result<void> gone(held const& h) {
    if (result<void> done = rig_.pool->swap_out(h.at, work); !done) return done;
    if (result<void> done = rig_.pool->settle(); !done) return done;
    return rig_.state(h.at) == residency::absent ? result<void>{} : failure(errc::driver_failure, "gone");
  }
  [[nodiscard]] result<void> trim() const {
    result<bytes> const freed = rig_.on_device->trim();
    return freed ? result<void>{} : failure(freed.error());
  }
  [[nodiscard]] static result<void> all(swap::pause_outcome const& o) {
    return o.stayed == 0 ? result<void>{} : failure(o.why);
  }
  void calm() {
    rig_.device.calls.disarm();
    rig_.host.calls.disarm();
    rig_.queues->copy_fails = rig_.queues->record_fails = nullptr;
    rig_.queues->reached_fails = rig_.queues->wait_fails = nullptr;
    rig_.store->write_fails = rig_.store->read_fails = nullptr;
  }

  source from_;
  std::uint64_t first_, count_;
  std::uint64_t calls_ = 0;
  unsigned char values_ = 0;
  swap_rig rig_;
};

}  // namespace

namespace {

void sweep_all(swap_rig_options const& o, std::initializer_list<source> sources) {
  for (source const from : sources) {
    CAPTURE(std::string(to_string(from)));
    for (std::uint64_t const count : {1u, 9u}) {
      CAPTURE(count);
      std::uint64_t first = 0;
      for (bool failed = true; failed; ++first) {
        CAPTURE(first);
        sweep s(o, from, first, count);
        s.run();
        failed = s.failed();
      }
      CHECK(first > 1);
    }
  }
}

}  // namespace

TEST_CASE("every step of every move can fail, and is tried again") {
  sweep_all({.chunk = unit, .device = 6 * unit, .host = 12 * unit},
            {source::device, source::host, source::copies, source::records, source::looks, source::waits});
}

TEST_CASE("every step can fail where absent blocks are served in place") {
  sweep_all({.chunk = unit, .device = 6 * unit, .host = 12 * unit, .in_place = true},
            {source::device, source::copies, source::records, source::looks, source::waits});
}

TEST_CASE("every step can fail where copies are written to a file") {
  sweep_all(
      {.chunk = unit, .device = 6 * unit, .host = 3 * unit + 2 * swap_rig::stage, .file = 8 * unit},
      {source::device, source::copies, source::records, source::looks, source::waits, source::writes, source::reads});
}
