#include "steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "gmlake/plan/period_finder.hpp"
#include "gmlake/plan/step_log.hpp"
#include "gmlake/trace/event.hpp"

namespace gmlake::tools {

std::vector<stretch> marked_steps(plan::lifetimes const& run) {
  std::vector<stretch> steps;
  for (plan::phase const& p : run.phases()) {
    if (p.label != trace::step_label) continue;
    if (!steps.empty()) steps.back().last = p.first, steps.back().end = p.begin;
    steps.push_back({p.first, run.all().size(), p.begin, run.now()});
  }
  std::erase_if(steps, [](stretch const& s) { return s.first == s.last; });
  return steps;
}

std::vector<stretch> found_steps(plan::lifetimes const& run) {
  auto const& all = run.all();
  std::vector<std::pair<plan::instant, std::uint64_t>> deaths;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    if (all[i].death != plan::step_request::stays) deaths.emplace_back(all[i].death, i);
  }
  std::ranges::sort(deaths);

  // The run once more, as the pool would have seen it.
  plan::step_log log({.most = all.size()});
  plan::period_finder finder;
  std::vector<stretch> steps;
  auto const at = [&](std::uint64_t request) { return request < all.size() ? all[request].birth : run.now(); };
  auto const look = [&] {
    std::optional<plan::found_step> const s = finder.next(log);
    if (s) steps.push_back({s->first, s->last, at(s->first), at(s->last)});
  };
  auto death = deaths.begin();
  for (plan::lifetime const& l : all) {
    for (; death != deaths.end() && death->first < l.birth; ++death) log.freed(death->second, all[death->second].size);
    look();
    (void)log.allocated(l.size, l.stream);
  }
  for (; death != deaths.end(); ++death) log.freed(death->second, all[death->second].size);
  look();
  return steps;
}

std::vector<plan::step_request> requests_of(plan::lifetimes const& run, stretch const& s, plan::instant longest) {
  std::vector<plan::step_request> requests;
  requests.reserve(s.last - s.first);
  for (std::uint64_t i = s.first; i < s.last; ++i) {
    plan::lifetime const& l = run.all()[i];
    bool const kept = l.death != plan::step_request::stays && l.death - l.birth <= longest;
    requests.push_back({.size = l.size,
                        .stream = l.stream,
                        .birth = l.birth - s.begin,
                        .death = kept ? l.death - s.begin : plan::step_request::stays});
  }
  return requests;
}

std::vector<shape> shapes_of(plan::lifetimes const& run, std::vector<stretch> const& steps) {
  std::vector<shape> shapes;
  std::map<std::uint64_t, std::size_t> known;  // by fingerprint
  std::vector<std::uint64_t> deaths;           // by step
  for (std::size_t k = 0; k < steps.size(); ++k) {
    auto const requests = requests_of(run, steps[k]);
    auto const [at, fresh] = known.emplace(plan::fingerprint(requests), shapes.size());
    if (fresh) shapes.emplace_back();
    shapes[at->second].steps.push_back(k);
    std::uint64_t hash = 0;
    for (plan::step_request const& r : requests) hash = plan::fingerprint(hash, r.death, 0);
    deaths.push_back(hash);
  }
  for (shape& s : shapes) {
    auto const alike = [&](std::size_t k) {
      return std::ranges::count_if(s.steps, [&](std::size_t other) { return deaths[other] == deaths[k]; });
    };
    s.usual = *std::ranges::max_element(s.steps, {}, alike);
  }
  return shapes;
}

}  // namespace gmlake::tools
