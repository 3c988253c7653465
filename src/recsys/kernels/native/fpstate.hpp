// The floating-point state exact scores need: round to nearest, subnormals kept. Some libraries switch
// flush-to-zero on for the whole process; under it a float32 of 1e-40 would widen to 0.0.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace recsys {

class ExactFloats {
 public:
  ExactFloats() : rounding_(std::fegetround()) {
    std::fesetround(FE_TONEAREST);
#if defined(__x86_64__) || defined(_M_X64)
    control_ = _mm_getcsr();
    _mm_setcsr(control_ & ~(kFlushToZero | kDenormalsAreZero | kRounding));
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(control_));
    __asm__ __volatile__("msr fpcr, %0" : : "r"(control_ & ~(kFlush | kRounding)));
#endif
  }

  ~ExactFloats() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_setcsr(control_);
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(control_));
#endif
    std::fesetround(rounding_);
  }

  ExactFloats(const ExactFloats&) = delete;
  ExactFloats& operator=(const ExactFloats&) = delete;

 private:
#if defined(__x86_64__) || defined(_M_X64)
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kRounding = 0x6000;
  unsigned control_ = 0;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = std::uint64_t{1} << 24, kRounding = std::uint64_t{3} << 22;
  std::uint64_t control_ = 0;
#endif
  int rounding_;
};

}  // namespace recsys
