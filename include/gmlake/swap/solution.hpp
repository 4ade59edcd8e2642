#pragma once
/// A schedule and what a simulation made of it.

#include "gmlake/swap/outcome.hpp"
#include "gmlake/swap/schedule.hpp"

namespace gmlake::swap {

struct solution {
  swap::schedule schedule;
  swap::outcome outcome;
};

}  // namespace gmlake::swap
