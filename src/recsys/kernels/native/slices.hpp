// Sums of the high parts of numbers, which are exact because the parts are short.
#pragma once

#include <cstdint>

namespace recsys {

// Adding and taking away 1.5 * 2^e leaves of a number what lies above 2^(e - 52). Each of two shifts cuts off
// such a part; the caller sees to it that sums of parts need no rounding, so their order is free.
struct Slices {
  double first, second;
  bool left;  // whether anything remains below the second part
};

}  // namespace recsys
