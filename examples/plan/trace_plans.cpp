#include "trace_plans.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "gmlake/plan/bound.hpp"
#include "gmlake/plan/laps.hpp"
#include "gmlake/plan/lifetimes.hpp"
#include "gmlake/plan/pack_plan.hpp"
#include "gmlake/trace/lifetimes.hpp"
#include "steps.hpp"

namespace gmlake::tools {
namespace {

using plan::step_request;

/// As plan::packed_plan does: so many events between two streams' uses of the same bytes, if that costs so little
/// height.
constexpr plan::instant wide_gap = 1024;
constexpr double gap_tolerance = 1.003;

/// A plan's streams are numbered by first mention.
void number_streams(trace::trace& t) {
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (trace::event& e : t.events) {
    if (e.kind != trace::event_kind::allocate) continue;
    e.stream = numbers.emplace(e.stream, static_cast<std::uint32_t>(numbers.size())).first->second;
  }
}

std::vector<named_phase> phases_in(plan::lifetimes const& run, stretch const& s) {
  std::vector<named_phase> phases;
  for (plan::phase const& p : run.phases()) {
    if (p.begin < s.begin || p.begin >= s.end) continue;
    if (!phases.empty() && phases.back().begin == p.begin - s.begin) phases.pop_back();
    phases.push_back({p.label, p.begin - s.begin});
  }
  return phases;
}

class planning {
 public:
  planning(std::string const& name, trace::trace const& t, trace_request const& r)
      : name_(&name),
        request_(&r),
        run_(trace::lifetimes_of(t)),
        steps_(r.marks ? marked_steps(run_) : std::vector<stretch>{}),
        found_(steps_.empty()) {
    if (found_) steps_ = found_steps(run_);
  }

  [[nodiscard]] trace_plans all() {
    trace_plans made;
    if (request_->step && (*request_->step == 0 || *request_->step > steps_.size())) {
      made.wrong = "--step " + std::to_string(*request_->step) + ": " + *name_ + " has " +
                   std::to_string(steps_.size()) + " steps" + (found_ ? " that can be found without marks" : "");
      return made;
    }
    std::vector<shape> const chosen = choose(made);
    for (shape const& s : chosen) made.records.push_back(step(s));
    if (chosen.empty()) {
      made.records.push_back(once(record_kind::run, {0, run_.all().size(), 0, run_.now()}, nullptr));
    } else if (stretch const& first = steps_[chosen.front().steps.front()]; request_->prologue && first.first > 0) {
      plan_record before = once(record_kind::prologue, {0, first.first, 0, first.begin}, &made.records.front());
      made.records.insert(made.records.begin(), std::move(before));
    }
    return made;
  }

 private:
  /// The shapes to be planned: that of the step asked for, those that come again, or else the hungriest step's.
  [[nodiscard]] std::vector<shape> choose(trace_plans& made) const {
    std::vector<shape> shapes = shapes_of(run_, steps_);
    made.repeats = true;
    if (request_->step) {
      std::size_t const wanted = *request_->step - 1;
      std::erase_if(shapes, [&](shape const& s) { return !std::ranges::binary_search(s.steps, wanted); });
      shapes.front().usual = wanted;
      return shapes;
    }
    if (std::ranges::any_of(shapes, [](shape const& s) { return s.steps.size() > 1; })) {
      std::erase_if(shapes, [](shape const& s) { return s.steps.size() == 1; });
      return without_loops(std::move(shapes));
    }
    made.repeats = false;
    if (shapes.empty()) {
      made.note =
          std::string(request_->marks ? "no step with requests is marked, and none was found" : "no step was found") +
          ": planned the whole run as one";
      return {};
    }
    auto const hungriest = std::ranges::max_element(shapes, {}, [&](shape const& s) {
      stretch const& at = steps_[s.usual];
      return plan::lower_bound(plan::problem_of(requests_of(run_, at), at.end - at.begin, 0).of);
    });
    made.note =
        "no step comes again: planned step " + std::to_string(hungriest->usual + 1) + ", which has the most bytes live";
    return {*hungriest};
  }

  /// Steps that were found may be loops within a larger one, as long as that wasn't known: these have less in common
  /// with all that came than the larger ones.
  [[nodiscard]] std::vector<shape> without_loops(std::vector<shape> shapes) const {
    if (!found_) return shapes;
    std::uint64_t longest = 0;
    for (shape const& s : shapes) longest = std::max(longest, requests_in(s));
    std::erase_if(shapes, [&](shape const& s) { return requests_in(s) <= longest / 2; });
    return shapes;
  }
  [[nodiscard]] std::uint64_t requests_in(shape const& s) const { return steps_[s.usual].last - steps_[s.usual].first; }

  [[nodiscard]] plan_record record_of(record_kind kind, stretch const& at) const {
    plan_record r;
    r.input = *name_;
    r.kind = kind;
    r.phases = phases_in(run_, at);
    bool const repeats = kind == record_kind::step;
    r.plan.requests = requests_of(run_, at, step_request::stays - 1);
    r.plan.period = at.end - at.begin;
    r.plan.repeats = repeats;
    if (repeats) r.plan = plan::in_laps(std::move(r.plan));
    r.requests = r.plan.requests.size();
    return r;
  }

  [[nodiscard]] plan_record step(shape const& s) const {
    plan_record r = record_of(record_kind::step, steps_[s.usual]);
    r.step = s.usual + 1;
    r.times = s.steps.size();
    pack_plan(r, [&r](plan::instant gap) { return plan::problem_of(r.plan.requests, r.plan.period, gap); });
    return r;
  }

  /// What comes once. What outlives it is not placed, but for what the steps after it have a place for: of what a step
  /// leaves to the next, the first step's is left by the prologue.
  [[nodiscard]] plan_record once(record_kind kind, stretch const& at, plan_record const* next) const {
    plan_record r = record_of(kind, at);
    using key = std::tuple<bytes, std::uint32_t, plan::instant>;  // size, stream, and how long into the step it lives
    std::multimap<key, bytes> left;
    for (step_request const& q : next == nullptr ? std::span<step_request const>{} : next->plan.requests) {
      if (q.death == step_request::stays || q.death <= next->plan.period || q.offset == step_request::nowhere) continue;
      left.emplace(key{q.size, q.stream, q.death - next->plan.period}, q.offset);
    }
    std::map<std::uint32_t, bytes> fixed;  // by request
    for (std::uint32_t i = 0; i < r.plan.requests.size(); ++i) {
      step_request& q = r.plan.requests[i];
      if (q.death == step_request::stays || q.death <= r.plan.period) continue;
      auto const place = left.find({q.size, q.stream, q.death - r.plan.period});
      if (place != left.end()) {
        fixed.emplace(i, place->second);
        left.erase(place);
      } else {
        q.death = step_request::stays;
      }
    }
    pack_plan(r, [&](plan::instant gap) {
      plan::stepwise s = plan::problem_of(r.plan.requests, 0, gap);
      for (std::size_t b = 0; b < s.requests.size(); ++b) {
        if (auto const place = fixed.find(s.requests[b]); place != fixed.end()) s.of.buffers[b].fixed = place->second;
      }
      return s;
    });
    return r;
  }

  template <class ProblemOf>
  void pack_plan(plan_record& r, ProblemOf&& problem_of) const {
    packing_request packing = request_->packing;
    for (named_phase const& p : r.phases) {
      if (p.begin != 0) packing.boundaries.push_back(p.begin);
    }
    plan::stepwise s = problem_of(request_->stream_gap.value_or(0));
    bool const one_stream = std::ranges::all_of(
        s.of.buffers, [&](plan::buffer const& b) { return b.stream == s.of.buffers.front().stream; });
    request_->begin(r.title());
    packing_outcome best;
    bytes const least = plan::lower_bound(s.of);
    double spent = 0;
    bool apart = false;
    if (!request_->stream_gap && !one_stream) {
      plan::stepwise wide = problem_of(wide_gap);
      packing_request brief = packing;
      bool const all_packers = brief.packer.empty() || brief.packer == "portfolio";
      if (!brief.work && all_packers) brief.work = plan::brief_work(wide.of.buffers.size());
      best = pack(wide.of, brief);
      spent = best.ms;
      apart = best.failure.empty() &&
              static_cast<double>(best.solution.height) <= gap_tolerance * static_cast<double>(least);
      if (apart) s = std::move(wide);
    }
    if (!apart) best = pack(s.of, packing);
    else best.bound = least;  // the gap was the tool's own wish
    request_->end();

    r.solution = std::move(best.solution);
    r.bound = best.bound;
    r.proven = apart ? r.solution.height == least : best.proven;
    r.packer = std::move(best.packer);
    r.ms = apart ? best.ms : best.ms + spent;
    r.failure = std::move(best.failure);
    r.plan.bound = least;
    for (step_request const& q : r.plan.requests) r.kept += q.size;
    for (plan::buffer const& b : s.of.buffers) r.kept -= b.size;
    r.kept /= r.plan.laps;
    if (r.solution.offsets.size() == s.requests.size()) plan::place(r.plan, r.solution, s.requests);
    r.problem = std::move(s.of);
  }

  std::string const* name_;
  trace_request const* request_;
  plan::lifetimes run_;
  std::vector<stretch> steps_;
  bool found_ = false;
};

}  // namespace

trace_plans plan_trace(std::string const& name, trace::trace t, trace_request const& r) {
  number_streams(t);
  return planning(name, t, r).all();
}

}  // namespace gmlake::tools
