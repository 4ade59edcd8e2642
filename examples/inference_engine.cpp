/// A small inference engine with all its memory from one pool: weights for the whole run, activations as long as their
/// request, and a KV cache that grows with each sequence, on two streams.
///
/// It runs on host memory, so that every machine can run it and each byte can be checked: the "kernels" are loops that
/// write and read patterns through the very addresses that the pool hands out, stitched or not. With a GPU,
/// `cuda_vmm` and `cuda_events` take the place of `memfd` and `simulated_streams`; nothing else changes.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gmlake/backend/memfd.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "gmlake/stream/simulated_streams.hpp"

namespace {

using namespace gmlake;
using engine_pool = lake_pool<memfd, simulated_streams>;

/// Prompts are read on one stream, answers written on the other.
constexpr stream prefill{1};
constexpr stream decode{2};

/// A block that goes back to its pool with its owner.
class tensor {
 public:
  tensor(engine_pool& pool, request const& r) : pool_(&pool), size_(r.size), on_(r.on) {
    result<address> const block = pool.allocate(r);
    if (!block) throw std::runtime_error(to_string(block.error().code));
    at_ = *block;
  }
  tensor(tensor&& o) noexcept : pool_(o.pool_), at_(std::exchange(o.at_, {})), size_(o.size_), on_(o.on_) {}
  tensor& operator=(tensor&& o) noexcept {
    std::swap(pool_, o.pool_);
    std::swap(at_, o.at_);
    std::swap(size_, o.size_);
    std::swap(on_, o.on_);
    return *this;
  }
  /// What is freed may be used again once the work queued on its stream so far is done, and that on recorded ones.
  ~tensor() {
    if (at_ != address{}) (void)pool_->deallocate(at_, on_);
  }

  /// Work on another stream reads or writes it too.
  void also_used_by(stream other) {
    if (!pool_->record_stream(at_, other)) throw std::runtime_error("the stream can't be recorded");
  }

  [[nodiscard]] std::span<std::uint32_t> values() const noexcept {
    return {static_cast<std::uint32_t*>(to_pointer(at_)), size_ / sizeof(std::uint32_t)};
  }

 private:
  engine_pool* pool_;
  address at_{};
  bytes size_;
  stream on_;
};

/// Stands for a kernel's result: each value follows from whose it is and where it lies.
[[nodiscard]] constexpr std::uint32_t expected(std::uint32_t whose, std::size_t i) noexcept {
  return whose * 0x9E3779B9u ^ static_cast<std::uint32_t>(i);
}
void compute(std::span<std::uint32_t> out, std::uint32_t whose, std::size_t from = 0) noexcept {
  for (std::size_t i = from; i < out.size(); ++i) out[i] = expected(whose, i);
}
void verify(std::span<std::uint32_t const> in, std::uint32_t whose) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != expected(whose, i)) throw std::runtime_error("memory does not hold what was written to it");
  }
}

/// Sizes of the model, far smaller than a real one's.
constexpr std::uint32_t layers = 8;
constexpr bytes weights_a_layer = 4_MiB;
constexpr bytes activations_a_token = 2_KiB;  ///< in each layer
constexpr bytes cache_a_token = 1_KiB;        ///< keys and values of all layers

/// One request's keys and values, contiguous: they move to a larger block when they have outgrown theirs.
class kv_cache {
 public:
  kv_cache(engine_pool& pool, std::uint32_t id, std::size_t prompt)
      : pool_(&pool), id_(id), tokens_(prompt), room_(prompt + prompt / 4), memory_(block_for(room_)) {
    compute(used(), id_);
  }

  void append(std::size_t more) {
    if (tokens_ + more > room_) {
      std::size_t const room = (tokens_ + more) * 3 / 2;
      tensor larger = block_for(room);
      std::ranges::copy(used(), larger.values().begin());
      std::swap(memory_, larger);  // the old block is freed with `larger`
      room_ = room;
    }
    std::size_t const before = used().size();
    tokens_ += more;
    compute(used(), id_, before);
  }

  void check() const { verify(used(), id_); }
  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }

 private:
  [[nodiscard]] tensor block_for(std::size_t tokens) const {
    tensor t(*pool_, {.size = tokens * cache_a_token, .on = decode});
    t.also_used_by(prefill);
    return t;
  }
  [[nodiscard]] std::span<std::uint32_t> used() const noexcept {
    return memory_.values().first(tokens_ * cache_a_token / sizeof(std::uint32_t));
  }

  engine_pool* pool_;
  std::uint32_t id_;
  std::size_t tokens_;
  std::size_t room_;
  tensor memory_;
};

/// A batch of tokens passes through the layers: each layer's output is the next one's input.
void forward(engine_pool& pool, std::size_t tokens, stream on) {
  bytes const size = tokens * activations_a_token;
  tensor input(pool, {.size = size, .on = on});
  compute(input.values(), 0);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    tensor output(pool, {.size = size, .on = on});
    compute(output.values(), layer + 1);
    verify(input.values(), layer);
    input = std::move(output);
  }
}

struct sequence {
  kv_cache cache;
  std::size_t answer_left;
};

void serve(engine_pool& pool, simulated_timeline& device) {
  constexpr int steps = 150;
  constexpr std::size_t most_sequences = 12;
  constexpr std::size_t tokens_a_step = 16;
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> prompts(50, 2000);
  std::uniform_int_distribution<std::size_t> answers(50, 800);

  // The weights stay: chunks of their own keep them from lying among what comes and goes.
  std::vector<tensor> weights;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    weights.emplace_back(pool, request{.size = weights_a_layer, .on = prefill, .where = placement::own_chunks});
    weights.back().also_used_by(decode);
    compute(weights.back().values(), layer);
  }

  std::uint32_t requests = 0;
  std::list<sequence> running;
  for (int step = 0; step < steps; ++step) {
    if (running.size() < most_sequences) {
      std::size_t const prompt = prompts(random);
      forward(pool, prompt, prefill);
      running.push_back({kv_cache(pool, ++requests, prompt), answers(random)});
    }
    forward(pool, running.size() * tokens_a_step, decode);
    for (auto s = running.begin(); s != running.end();) {
      std::size_t const more = std::min(tokens_a_step, s->answer_left);
      s->cache.append(more);
      s->answer_left -= more;
      if (s->answer_left > 0) {
        ++s;
        continue;
      }
      s->cache.check();
      s = running.erase(s);
    }
    device.advance(100);  // the device comes along, some way behind the host
  }
  for (sequence const& s : running) s.cache.check();
  for (std::uint32_t layer = 0; layer < layers; ++layer) verify(weights[layer].values(), layer);
  std::printf("%u requests served, every byte as it was written\n", requests);
}

double mib(bytes n) { return static_cast<double>(n) / static_cast<double>(1_MiB); }

int run() {
  result<memfd> device = memfd::open();
  if (!device) {
    std::printf("no host memory to map: %s\n", to_string(device.error().code));
    return EXIT_FAILURE;
  }
  auto const timeline = std::make_shared<simulated_timeline>();
  // Chunks as small as the model: by default they suit a GPU's memory.
  engine_pool pool(*std::move(device), simulated_streams(timeline), pool_options{.small_chunk = 256_KiB},
                   {.growth = adaptive_chunks(adaptive_options::fixed(512_KiB))});
  serve(pool, *timeline);

  pool_stats const s = pool.stats();
  double const overhead = static_cast<double>(s.reserved.peak) / static_cast<double>(s.requested.peak) - 1;
  std::printf("asked for  %7.1f MiB at most, in %llu allocations\n", mib(s.requested.peak),
              static_cast<unsigned long long>(s.allocations));
  std::printf("held       %7.1f MiB at most, %.1f%% more\n", mib(s.reserved.peak), overhead * 100);
  std::printf("stitches   %7llu made, %llu times one was there already\n",
              static_cast<unsigned long long>(s.stitches_made), static_cast<unsigned long long>(s.stitch_hits));
  std::printf("waits      %7llu of one stream for the other, %llu of the host\n",
              static_cast<unsigned long long>(s.device_waits), static_cast<unsigned long long>(s.host_waits));

  // Nothing is live any more: all of it can go back to the system.
  if (char const* const fault = pool.validate()) {
    std::printf("broken: %s\n", fault);
    return EXIT_FAILURE;
  }
  bool const trimmed = pool.trim().has_value() && pool.stats().reserved.now == 0;
  if (!trimmed) std::puts("not everything was given back");
  constexpr double most_overhead = 0.1;
  if (overhead > most_overhead) std::puts("more memory was held than this should take");
  return trimmed && overhead <= most_overhead ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (std::exception const& e) {
    std::printf("failed: %s\n", e.what());
    return EXIT_FAILURE;
  }
}
