// Whether visiting items by norm pays for putting them in that order.
#pragma once

#include "block.hpp"

namespace recsys {

bool worth_ordering(const Asked& asked, const Items& items, const Measured& measured, const Level& level);

}  // namespace recsys
