#pragma once
/// Runs a program's steps on a pager, as a framework would: allocates, announces accesses, ends operations, frees. The
/// operations' work is done at once, by the host: what is read is compared with what was written, in every page. What
/// the program says can be made again is, by writing the same. Where calls may fail (`may_fail`), what could not be had
/// is left out.

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "gmlake/swap/pager.hpp"
#include "gmlake/swap/program.hpp"
#include "tests/backend/must.hpp"
#include "tests/swap/swap_rig.hpp"

namespace gmlake::test {

/// Writes a value into every page of a block, or looks whether it is there.
inline void stamp(address at, bytes n, std::uint64_t value) {
  auto* const p = static_cast<unsigned char*>(to_pointer(at));
  for (bytes i = 0; i + 2 * sizeof value <= n; i += 4_KiB) std::memcpy(p + i, &value, sizeof value);
  std::memcpy(p + n - sizeof value, &value, sizeof value);
}
[[nodiscard]] inline bool stamped(address at, bytes n, std::uint64_t value) {
  auto const* const p = static_cast<unsigned char const*>(to_pointer(at));
  auto const same = [&](bytes i) { return std::memcmp(p + i, &value, sizeof value) == 0; };
  for (bytes i = 0; i + 2 * sizeof value <= n; i += 4_KiB) {
    if (!same(i)) return false;
  }
  return same(n - sizeof value);
}

/// `Pager` is whatever has a pager's functions.
template <class Pager>
class paged_program {
 public:
  paged_program(Pager& memory, swap::program p, stream on = swap_rig::work, swap::job_id job = {}, bool fails = false)
      : may_fail(fails),
        memory_(&memory),
        program_(std::move(p)),
        on_(on),
        job_(job),
        held_(program_.variables.size()) {
    for (std::uint32_t v = 0; v < held_.size(); ++v) {
      if (!program_.variables[v].carried) continue;
      give_birth(v);
      (void)memory_->end_operation(job_);
    }
  }
  paged_program(paged_program const&) = delete;
  paged_program& operator=(paged_program const&) = delete;
  ~paged_program() {
    for (held& h : held_) {
      while (h.at != address{} && may_fail && !memory_->deallocate(h.at)) {
      }
      if (h.at != address{} && !may_fail) must(memory_->deallocate(h.at));
    }
  }

  bool may_fail = false;
  bool guesses = false;  ///< how long operations take

  /// All of it, or its first operations only; each takes so many times what the program says.
  void step(std::uint32_t operations = ~0u, double slower = 1) {
    auto const end = static_cast<std::uint32_t>(program_.operations.size());
    for (std::uint32_t i = 0; i < std::min(operations, end); ++i) (void)advance(slower);
    if (next_ == 0) return;
    for (std::uint32_t v = 0; v < held_.size(); ++v) {
      if (!program_.variables[v].carried && held_[v].at != address{}) free(v);
    }
    next_ = 0;
    begun_ = false;
  }

  /// Begins a step if none has begun; whether its next operation would wait for other jobs'.
  [[nodiscard]] bool waits() {
    begin();
    return !memory_->may_go(job_);
  }
  /// The next operation; how long it takes.
  swap::time advance(double slower = 1) {
    auto const end = static_cast<std::uint32_t>(program_.operations.size());
    std::uint32_t const i = next_;
    begin();
    run(i, slower);
    next_ = (i + 1) % end;
    begun_ = next_ != 0;
    for (std::uint32_t v = 0; v < held_.size(); ++v) {
      swap::variable const& of = program_.variables[v];
      if (!of.carried && held_[v].at != address{} && (of.death == i + 1 || next_ == 0)) free(v);
    }
    return program_.operations[i];
  }

  /// What is not the program's: an operation that reads one variable.
  void touch(std::uint32_t v) {
    use(v, {0, true, false});
    used_.clear();
    (void)memory_->end_operation(job_);
  }

  std::function<void()> after_each = [] {};
  /// What making a variable again reads; it must be there then.
  std::function<std::vector<std::uint32_t>(std::uint32_t)> inputs_of = [](std::uint32_t) {
    return std::vector<std::uint32_t>{};
  };
  std::function<bool()> recompute_fails;  ///< whether making one again does; null: never
  [[nodiscard]] swap::program& program() noexcept { return program_; }
  [[nodiscard]] address at(std::uint32_t v) const { return held_[v].at; }

 private:
  struct held {
    address at{};
    std::uint64_t value = 0;
  };

  void begin() {
    if (!std::exchange(begun_, true)) memory_->begin_step(job_);
  }
  void run(std::uint32_t i, double slower) {
    for (std::uint32_t v = 0; v < held_.size(); ++v) {
      // What is carried is tried again if there was no memory for it.
      if (program_.variables[v].carried ? i == 0 : program_.variables[v].birth == i) give_birth(v);
    }
    for (std::uint32_t v = 0; v < held_.size(); ++v) {
      for (swap::access const& a : program_.variables[v].accesses) {
        if (a.operation == i) use(v, a);
      }
    }
    // Nothing that the operation uses leaves while it is running.
    for (std::uint32_t const v : used_) {
      REQUIRE(stamped(held_[v].at, program_.variables[v].size, held_[v].value));
    }
    used_.clear();
    auto const ns = static_cast<double>(program_.operations[i].count()) * slower;
    memory_->took(memory_->end_operation(job_), static_cast<std::uint64_t>(ns), job_, guesses);
    after_each();
  }

  void give_birth(std::uint32_t v) {
    if (held_[v].at != address{}) return;  // it is carried, or could not be freed
    result<address> at = memory_->allocate(program_.variables[v].size, on_, swap::tag{}, job_);
    if (!at && may_fail) return;
    held_[v] = {must(std::move(at)), ++values_};
    if (!memory_->access(held_[v].at, on_, false, true, job_)) CHECK(may_fail);
    stamp(held_[v].at, program_.variables[v].size, held_[v].value);
    tell_how(v);
  }
  /// How the block's present contents are made again.
  void tell_how(std::uint32_t v) {
    swap::variable const& of = program_.variables[v];
    if (of.recompute == swap::time::zero()) return;
    result<void> told = memory_->set_recompute(
        held_[v].at,
        [this, v, value = held_[v].value](address at, bytes n, stream) -> result<void> {
          if (recompute_fails && recompute_fails()) return failure(errc::driver_failure, "recompute: injected");
          for (std::uint32_t const input : inputs_of(v)) {
            if (result<void> done = memory_->access(held_[input].at, on_, true, false, job_); !done) return done;
          }
          if (result<void> done = memory_->access(at, on_, false, true, job_); !done) return done;
          stamp(at, n, value);
          return {};
        },
        of.recompute);
    if (!told) CHECK(may_fail);
  }
  void free(std::uint32_t v) {
    result<void> done = memory_->deallocate(held_[v].at);
    if (!done && may_fail) return;
    must(std::move(done));
    held_[v] = {};
  }
  void use(std::uint32_t v, swap::access const& a) {
    held& h = held_[v];
    if (h.at == address{}) return;
    result<void> done = memory_->access(h.at, on_, a.reads, a.writes, job_);
    if (!done && may_fail) return;
    must(std::move(done));
    used_.push_back(v);
    REQUIRE(stamped(h.at, program_.variables[v].size, h.value));
    if (!a.writes) return;
    h.value = ++values_;
    stamp(h.at, program_.variables[v].size, h.value);
    tell_how(v);
  }

  Pager* memory_;
  swap::program program_;
  stream on_;
  swap::job_id job_;
  std::vector<held> held_;
  std::vector<std::uint32_t> used_;  ///< by the running operation
  std::uint64_t values_ = 0;
  std::uint32_t next_ = 0;  ///< operation
  bool begun_ = false;      ///< a step
};

}  // namespace gmlake::test
