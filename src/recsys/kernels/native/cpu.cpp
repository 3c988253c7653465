#include "cpu.hpp"

#include <stdexcept>

namespace recsys {

std::vector<CpuLevel> cpu_levels() {
  std::vector<CpuLevel> levels{CpuLevel::portable};
#if defined(RECSYS_X86_LEVELS)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("popcnt")) {
    levels.push_back(CpuLevel::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
      levels.push_back(CpuLevel::avx512);
  }
#endif
  return levels;
}

std::string name_of(CpuLevel level) {
  switch (level) {
    case CpuLevel::avx512:
      return "avx512";
    case CpuLevel::avx2:
      return "avx2";
    default:
      return "portable";
  }
}

CpuLevel level_named(const std::string& name) {
  const std::vector<CpuLevel> levels = cpu_levels();
  if (name.empty()) return levels.back();
  for (const CpuLevel level : levels)
    if (name_of(level) == name) return level;
  throw std::invalid_argument("this CPU has no level '" + name + "'");
}

const Level& level_of(CpuLevel level) {
#if defined(RECSYS_X86_LEVELS)
  if (level == CpuLevel::avx512) return kAvx512;
  if (level == CpuLevel::avx2) return kAvx2;
#endif
  (void)level;
  return kPortable;
}

}  // namespace recsys
