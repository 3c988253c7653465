// One scan: users x items, lists or rank counts or both.
#pragma once

#include "block.hpp"
#include "cpu.hpp"

namespace recsys {

enum class Prune { no, yes, decide };

struct Plan {
  CpuLevel level;
  int threads;
  std::int64_t memory_budget;
  Prune prune;
  double largest;  // magnitude of any item factor or bias
};

void scan(const Asked& asked, const Items& items, const Answers& answers, const Plan& plan, const Watch& watch);

}  // namespace recsys
