#pragma once
/// Physical memory that is not the lake's: whose owner lets it be mapped at a vacated block's address.

#include "gmlake/core/types.hpp"

namespace gmlake {

struct lent_memory {
  handle memory{};
  bytes size = 0;  ///< the whole handle's: it can't be mapped in part
};

}  // namespace gmlake
