// What this CPU can run, asked at run time: one build serves every machine of an architecture.
#pragma once

#include <string>
#include <vector>

#include "level.hpp"

namespace recsys {

enum class CpuLevel { portable = 0, avx2 = 1, avx512 = 2 };

// Ascending; the last one is the default.
std::vector<CpuLevel> cpu_levels();

std::string name_of(CpuLevel level);

// Empty means the best one; throws std::invalid_argument for a level this CPU does not have.
CpuLevel level_named(const std::string& name);

const Level& level_of(CpuLevel level);

}  // namespace recsys
