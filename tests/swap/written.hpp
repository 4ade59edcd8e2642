#pragma once
/// A program as a trace of steps that all do it.

#include <cstdint>
#include <string>
#include <vector>

#include "gmlake/swap/program.hpp"
#include "gmlake/trace/writer.hpp"

namespace gmlake::swap {

/// Precondition: variables are in order of birth, as far as they are not carried. Ends with a mark.
[[nodiscard]] inline std::string written(program const& p, int steps) {
  std::string text;
  trace::writer out(text);
  std::uint32_t next = 0;
  std::vector<std::uint32_t> id(p.variables.size());
  auto const give = [&](std::uint32_t v) { out.allocate(id[v] = next++, p.variables[v].size, 0); };
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
    if (!p.variables[v].carried) continue;
    give(v);
    if (p.variables[v].has_copy) out.host_copy(id[v]);
  }
  auto const end = static_cast<std::uint32_t>(p.operations.size());
  std::vector<std::vector<std::uint32_t>> born(end + 1), dead(end + 1), reads(end), writes(end);
  for (std::uint32_t v = 0; v < p.variables.size(); ++v) {
    variable const& x = p.variables[v];
    if (!x.carried) {
      born[x.birth].push_back(v);
      dead[x.death].push_back(v);
    }
    for (access const& a : x.accesses) {
      if (a.reads) reads[a.operation].push_back(v);
      if (a.writes) writes[a.operation].push_back(v);
    }
  }
  for (int step = 0; step < steps; ++step) {
    out.mark("step");
    for (std::uint32_t i = 0; i <= end; ++i) {
      for (std::uint32_t const v : dead[i]) out.deallocate(id[v]);
      if (i == end) break;
      for (std::uint32_t const v : born[i]) {
        give(v);
        if (p.variables[v].has_copy) out.host_copy(id[v]);
      }
      for (std::uint32_t const v : reads[i]) out.read(id[v]);
      for (std::uint32_t const v : writes[i]) out.wrote(id[v]);
      out.operation(p.operations[i]);
    }
  }
  out.mark("step");
  return text;
}

}  // namespace gmlake::swap
