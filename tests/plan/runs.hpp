#pragma once
/// Programs that the tests of plan/ run on a step log: what a step asks for and frees, in order, without a pool.

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "gmlake/plan/period_finder.hpp"
#include "gmlake/plan/step_log.hpp"

namespace gmlake::test {

/// Runs requests through a log and a finder.
class run {
 public:
  /// Returns a name to free it by.
  std::uint64_t allocate(bytes size, std::uint32_t stream = 0) {
    for (int i = 0; i <= asked_again; ++i) {
      if (auto const step = finder.next(log)) found.push_back(*step);
    }
    std::uint64_t const number = log.allocated(size, stream);
    sizes_[number] = size;
    return number;
  }
  void free(std::uint64_t number) {
    log.freed(number, sizes_.at(number));
    sizes_.erase(number);
  }
  /// Allocated and freed at once.
  void touch(bytes size, std::uint32_t stream = 0) { free(allocate(size, stream)); }

  plan::step_log log;
  plan::period_finder finder;
  std::vector<plan::found_step> found;
  int asked_again = 0;  ///< so many times more for each request

 private:
  std::map<std::uint64_t, bytes> sizes_;
};

struct training_options {
  unsigned layers = 12;
  bytes width = 1_MiB;      ///< of an activation
  unsigned accumulate = 1;  ///< forwards and backwards a step
  double strays = 0;        ///< odd extra allocations, a request
  bool moments_in_first_step = true;
};

/// A model being trained: a forward pass keeps activations, the backward pass frees them and makes gradients, the
/// optimizer has temporaries and then frees the gradients.
class training {
 public:
  training(run& r, training_options o, std::uint64_t seed = 1) : run_(&r), options_(o), random_(seed) {
    for (unsigned l = 0; l < o.layers; ++l) {
      run_->allocate(weight(l));
      run_->touch(weight(l));  // its initial values
    }
  }

  /// `scale` percent of the width.
  void step(bytes scale = 100) {
    for (unsigned m = 0; m < options_.accumulate; ++m) pass(options_.width * scale / 100 / 512 * 512);
    optimize();
  }

 private:
  [[nodiscard]] bytes weight(unsigned l) const { return 256_KiB + l % 3 * 64_KiB; }

  void pass(bytes width) {
    std::vector<std::uint64_t> kept;
    std::uint64_t const input = run_->allocate(32_KiB);
    for (unsigned l = 0; l < options_.layers; ++l) {
      for (bytes part : {width, width / 2, 2 * width}) {
        stray();
        kept.push_back(run_->allocate(part));
        run_->touch(3 * part);
      }
    }
    run_->touch(8 * width);
    for (unsigned l = options_.layers; l-- > 0;) {
      for (int part = 0; part < 3; ++part) {
        stray();
        run_->touch(2 * width);
        run_->free(kept.back());
        kept.pop_back();
      }
      if (gradients_.size() < options_.layers) gradients_.push_back(run_->allocate(weight(l)));
      else run_->touch(weight(l));
    }
    run_->free(input);
  }

  void optimize() {
    for (unsigned l = 0; l < options_.layers; ++l) {
      if (first_ && options_.moments_in_first_step) run_->allocate(weight(l));
      stray();
      std::uint64_t const a = run_->allocate(weight(l));
      run_->touch(weight(l) / 2);
      run_->free(a);
    }
    for (std::uint64_t g : gradients_) run_->free(g);
    gradients_.clear();
    first_ = false;
  }

  void stray() {
    if (options_.strays == 0 || std::uniform_real_distribution<>()(random_) >= options_.strays) return;
    run_->touch(512 * (1 + random_() % 64));
  }

  run* run_;
  training_options options_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> gradients_;
  bool first_ = true;
};

}  // namespace gmlake::test
