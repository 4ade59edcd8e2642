#pragma once
/// What a device makes a pool with, beside the memory and the streams that the pool is made of.

#include <atomic>
#include <memory>
#include <vector>

#include "gmlake/adapter/address_owners.hpp"
#include "gmlake/adapter/torch_counts.hpp"
#include "gmlake/grow/adaptive_chunks.hpp"
#include "gmlake/plan/plan.hpp"
#include "gmlake/pool/pool_options.hpp"

namespace gmlake {

struct torch_making {
  address_owners::number number = 0;  ///< its own; 0: none
  pool_options options;
  adaptive_options chunks;
  std::shared_ptr<std::atomic<int> const> pauses;          ///< above 0: nothing is recorded, asked or waited for
  std::atomic<torch_listener*> const* listener = nullptr;  ///< whom its observer tells
  bool plans = false;                                      ///< whether it may plan, if the settings want that
  std::vector<plan::plan> known;                           ///< plans to begin with
};

}  // namespace gmlake
