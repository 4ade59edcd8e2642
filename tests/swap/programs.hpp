#pragma once
/// Programs to swap: shaped like training steps of common networks, and tiny random ones. Every size and time is
/// jittered by the seed, so that nothing fits one of them by chance.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gmlake/swap/program.hpp"

namespace gmlake::swap::programs {

/// Builds a program operation by operation.
class builder {
 public:
  explicit builder(std::uint32_t seed) : random_(seed) {}

  /// A factor around 1, log-uniform in [1 / (1 + by), 1 + by].
  [[nodiscard]] double jitter(double by) {
    double const u = static_cast<double>(random_()) / static_cast<double>(std::mt19937::max());
    return std::exp((2 * u - 1) * std::log1p(by));
  }
  [[nodiscard]] std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  [[nodiscard]] std::uint32_t carried(double size, bool has_copy = false) {
    std::uint32_t const v = born(size);
    made_.variables[v].carried = true;
    made_.variables[v].has_copy = has_copy;
    made_.variables[v].birth = 0;
    return v;
  }
  /// Exists from the next operation on.
  [[nodiscard]] std::uint32_t born(double size) {
    variable v;
    v.size = std::max<bytes>(512, static_cast<bytes>(size) / 512 * 512);
    v.birth = now();
    made_.variables.push_back(v);
    return static_cast<std::uint32_t>(made_.variables.size() - 1);
  }
  void run(double ns, std::vector<std::uint32_t> const& reads, std::vector<std::uint32_t> const& writes) {
    for (std::uint32_t const v : reads) use(v).reads = true;
    for (std::uint32_t const v : writes) use(v).writes = true;
    made_.operations.emplace_back(static_cast<std::int64_t>(std::max(1.0, ns)));
  }
  /// Gone before the next operation.
  void free(std::uint32_t v) { made_.variables[v].death = now(); }

  [[nodiscard]] program done() {
    for (variable& v : made_.variables) {
      if (v.carried || v.death == 0) v.death = now();
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::uint32_t now() const { return static_cast<std::uint32_t>(made_.operations.size()); }
  access& use(std::uint32_t v) {
    auto& all = made_.variables[v].accesses;
    if (all.empty() || all.back().operation != now()) all.push_back({now(), false, false});
    return all.back();
  }

  std::mt19937 random_;
  program made_;
};

/// Times in ns and sizes in bytes, scaled to the step and the peak that are wanted.
[[nodiscard]] inline program scaled_to(program p, double step_ns, double peak) {
  double total = 0;
  for (time const t : p.operations) total += static_cast<double>(t.count());
  for (time& t : p.operations) {
    t = time(std::max<std::int64_t>(500, static_cast<std::int64_t>(static_cast<double>(t.count()) * step_ns / total)));
  }
  std::vector<double> live(p.operations.size() + 1);
  for (variable const& v : p.variables) {
    live[v.birth] += static_cast<double>(v.size);
    live[v.death] -= static_cast<double>(v.size);
  }
  double most = 0, sum = 0;
  for (double const l : live) most = std::max(most, sum += l);
  for (variable& v : p.variables) {
    v.size = std::max<bytes>(512, static_cast<bytes>(static_cast<double>(v.size) * peak / most) / 512 * 512);
  }
  return p;
}

struct cnn_shape {
  std::uint32_t stages = 4, blocks = 4, layers = 9;  ///< ResNet-50: 16 blocks of three convolutions with what follows
  double step_ns = 72e6, peak = 11e9;
  double jitter = 0.3;
};

/// Forward produces activations of falling sizes, backward consumes them in reverse; a momentum optimizer at the end.
[[nodiscard]] inline program cnn(std::uint32_t seed, cnn_shape const& shape = {}) {
  builder b(seed);
  struct layer {
    std::uint32_t weight, momentum, gradient = 0, output;
    double ns, size;
    bool convolves;
  };
  std::vector<layer> layers;
  auto const depth = shape.stages * shape.blocks * shape.layers;
  for (std::uint32_t l = 0; l < depth; ++l) {
    std::uint32_t const stage = l / (shape.blocks * shape.layers);
    layer made{};
    made.convolves = l % 3 == 0;
    double const fall = std::pow(0.5, stage);
    made.size = 100e6 * fall * b.jitter(shape.jitter) * (l % shape.layers < shape.layers / 3 ? 2.0 : 1.0);
    made.ns = (made.convolves ? 10e4 : 2e4) * b.jitter(shape.jitter) * (made.convolves ? 1 : 2 * fall);
    double const weight = made.convolves ? 0.2e6 * std::pow(4.0, stage) * b.jitter(shape.jitter) : 4096;
    made.weight = b.carried(weight);
    made.momentum = b.carried(weight);
    layers.push_back(made);
  }
  std::uint32_t const input = b.born(80e6);
  for (std::uint32_t l = 0; l < depth; ++l) {
    layer& made = layers[l];
    made.output = b.born(made.size);
    std::uint32_t const before = l == 0 ? input : layers[l - 1].output;
    std::vector<std::uint32_t> reads{before, made.weight};
    if (l % shape.layers == shape.layers - 1)
      reads.push_back(l >= shape.layers ? layers[l - shape.layers].output : input);
    std::uint32_t const workspace = b.born(made.convolves ? made.size * 0.3 : 512);
    b.run(made.ns, reads, {made.output, workspace});
    b.free(workspace);
  }
  std::uint32_t gradient = b.born(layers.back().size);
  b.run(2e4, {layers.back().output}, {gradient});
  for (std::uint32_t l = depth; l-- > 0;) {
    layer& made = layers[l];
    std::uint32_t const before = l == 0 ? input : layers[l - 1].output;
    made.gradient = b.born(made.convolves ? 0.2e6 * std::pow(4.0, l / (shape.blocks * shape.layers)) : 4096);
    std::uint32_t const next = b.born(l == 0 ? 80e6 : layers[l - 1].size);
    b.run(2 * made.ns, {made.weight, before, made.output, gradient}, {made.gradient, next});
    b.free(gradient);
    b.free(made.output);
    gradient = next;
  }
  b.free(gradient);
  b.free(input);
  for (layer const& made : layers) {
    b.run(5e3, {made.weight, made.momentum, made.gradient}, {made.weight, made.momentum});
    b.free(made.gradient);
  }
  return scaled_to(b.done(), shape.step_ns, shape.peak);
}

struct transformer_shape {
  std::uint32_t layers = 24;
  double weight = 100e6;      ///< of a layer
  double activation = 400e6;  ///< of a layer, kept for backward
  bool frozen = false;        ///< low-rank adapters: weights are read only, and the host has them
  double step_ns = 400e6, peak = 35e9;
  double jitter = 0.2;
};

/// Layers of four weights and ten activations; Adam with two states a weight, or with adapters only.
[[nodiscard]] inline program transformer(std::uint32_t seed, transformer_shape const& shape = {}) {
  builder b(seed);
  constexpr std::uint32_t matrices = 4, kept = 10;
  struct matrix {
    std::uint32_t weight, trained, first, second, gradient;
    double size, trained_size;
  };
  std::vector<matrix> all;
  double const share[matrices] = {0.25, 0.08, 0.33, 0.34};
  for (std::uint32_t k = 0; k < shape.layers * matrices; ++k) {
    matrix m{};
    m.size = shape.weight * share[k % matrices] * b.jitter(shape.jitter / 4);
    m.trained_size = shape.frozen ? m.size / 100 : m.size;
    m.weight = b.carried(m.size, shape.frozen);
    m.trained = shape.frozen ? b.carried(m.trained_size) : m.weight;
    m.first = b.carried(2 * m.trained_size);
    m.second = b.carried(2 * m.trained_size);
    all.push_back(m);
  }
  std::vector<std::uint32_t> outputs{b.born(shape.activation / kept)};
  b.run(1e4, {}, {outputs[0]});
  std::vector<double> ns;
  for (std::uint32_t k = 0; k < shape.layers * kept; ++k) {
    ns.push_back((k % 3 == 0 ? 10.0 : 2.0) * b.jitter(shape.jitter));
    std::uint32_t const out = b.born(shape.activation / kept * b.jitter(shape.jitter));
    std::vector<std::uint32_t> reads{outputs.back()};
    if (k % 3 == 0) {
      matrix const& m = all[k / kept * matrices + k % kept / 3];
      reads.push_back(m.weight);
      if (shape.frozen) reads.push_back(m.trained);
    }
    b.run(1e4 * ns.back(), reads, {out});
    outputs.push_back(out);
  }
  std::uint32_t const logits = b.born(shape.activation);
  std::uint32_t gradient = b.born(shape.activation / kept);
  b.run(1e5, {outputs.back()}, {logits});
  b.run(1e5, {logits}, {gradient});
  b.free(logits);
  for (std::uint32_t k = shape.layers * kept; k-- > 0;) {
    std::vector<std::uint32_t> reads{outputs[k], outputs[k + 1], gradient};
    std::uint32_t const next = b.born(shape.activation / kept);
    std::vector<std::uint32_t> writes{next};
    if (k % 3 == 0) {
      matrix& m = all[k / kept * matrices + k % kept / 3];
      reads.push_back(m.weight);
      if (shape.frozen) reads.push_back(m.trained);
      m.gradient = b.born(m.trained_size);
      writes.push_back(m.gradient);
    }
    b.run(2e4 * ns[k], reads, writes);
    b.free(gradient);
    b.free(outputs[k + 1]);
    gradient = next;
  }
  b.free(gradient);
  b.free(outputs[0]);
  for (matrix const& m : all) {
    b.run(m.trained_size / 2e3, {m.gradient, m.trained, m.first, m.second}, {m.trained, m.first, m.second});
    b.free(m.gradient);
  }
  return scaled_to(b.done(), shape.step_ns, shape.peak);
}

[[nodiscard]] inline transformer_shape gpt2() {
  return {.layers = 12, .weight = 14e6, .activation = 900e6, .step_ns = 160e6, .peak = 14e9};
}
[[nodiscard]] inline transformer_shape opt_1_3b() {
  return {.layers = 24, .weight = 100e6, .activation = 300e6, .step_ns = 420e6, .peak = 30e9};
}
[[nodiscard]] inline transformer_shape lora_7b() {
  return {.layers = 32, .weight = 400e6, .activation = 500e6, .frozen = true, .step_ns = 900e6, .peak = 31e9};
}

/// A few operations and variables, with everything that may occur.
[[nodiscard]] inline program tiny(std::uint32_t seed, std::uint32_t operations = 7, std::uint32_t variables = 4) {
  std::mt19937 random(seed);
  auto const below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  program p;
  std::uint32_t const n = 2 + below(operations - 1);
  for (std::uint32_t i = 0; i < n; ++i) p.operations.emplace_back(below(5) == 0 ? 0 : 1 + below(40));
  std::uint32_t const count = 1 + below(variables);
  for (std::uint32_t k = 0; k < count; ++k) {
    variable v;
    v.size = 1 + below(30);
    v.carried = below(3) == 0;
    v.birth = v.carried ? 0 : below(n);
    v.death = v.carried ? n : v.birth + 1 + below(n - v.birth);
    v.has_copy = below(4) == 0;
    for (std::uint32_t i = v.birth; i < v.death; ++i) {
      if (below(3) != 0) continue;
      bool const writes = !v.has_copy && below(2) == 0;
      v.accesses.push_back({i, !writes || below(2) == 0, writes});
    }
    p.variables.push_back(v);
  }
  return p;
}

}  // namespace gmlake::swap::programs
