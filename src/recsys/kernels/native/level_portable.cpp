// 4 users x 8 items of 128-bit vectors, which every 64-bit CPU has; the compiler chooses instructions.
#include <cstring>
#include <limits>

#include "level.hpp"
#include "portability.hpp"

namespace {

struct V {
  static constexpr int kWidth = 4, kRows = 4;
  static constexpr std::uint32_t kAll = 0xf;
#if defined(__GNUC__)
  typedef float F __attribute__((vector_size(16)));
#else
  struct F {
    float v[4];
    float& operator[](int i) { return v[i]; }
    float operator[](int i) const { return v[i]; }
  };
#endif
  static RECSYS_INLINE F zero() { return F{}; }
  static RECSYS_INLINE F load(const float* p) { return F{p[0], p[1], p[2], p[3]}; }
  static RECSYS_INLINE F set(float x) { return F{x, x, x, x}; }
#if defined(__GNUC__)
  static RECSYS_INLINE F fma(F a, F b, F c) { return a * b + c; }
  static RECSYS_INLINE F less(F a, F b, F c) { return a - b * c; }
#else
  static RECSYS_INLINE F fma(F a, F b, F c) {
    return F{a[0] * b[0] + c[0], a[1] * b[1] + c[1], a[2] * b[2] + c[2], a[3] * b[3] + c[3]};
  }
  static RECSYS_INLINE F less(F a, F b, F c) {
    return F{a[0] - b[0] * c[0], a[1] - b[1] * c[1], a[2] - b[2] * c[2], a[3] - b[3] * c[3]};
  }
#endif
  static RECSYS_INLINE void store(float* p, F a) {
    for (int i = 0; i < kWidth; ++i) p[i] = a[i];
  }
  static RECSYS_INLINE F sub(F a, F b) { return F{a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]}; }
  static RECSYS_INLINE F mul(F a, F b) { return F{a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}; }
  static RECSYS_INLINE std::uint32_t within(F a, F b) {
    return std::uint32_t(a[0] <= b[0]) | std::uint32_t(a[1] <= b[1]) << 1 | std::uint32_t(a[2] <= b[2]) << 2 |
           std::uint32_t(a[3] <= b[3]) << 3;
  }
  static RECSYS_INLINE std::uint32_t at_least(F a, F b, F cut) { return within(cut, a) | within(cut, b) << kWidth; }
  static RECSYS_INLINE float smaller(float a, float b) { return (b < 0 ? -b : b) < a ? (b < 0 ? -b : b) : a; }
  static RECSYS_INLINE F nearest(F known, F a, F b) {
    F out = known;
    for (int i = 0; i < kWidth; ++i) out[i] = smaller(smaller(out[i], a[i]), b[i]);
    return out;
  }
  static RECSYS_INLINE int n_negative(F a, F b) {
    int n = 0;
    for (int i = 0; i < kWidth; ++i) n += (a[i] < 0) + (b[i] < 0);
    return n;
  }
  static RECSYS_INLINE F only(F a, std::uint32_t lanes) {
    for (int i = 0; i < kWidth; ++i)
      if (!(lanes >> i & 1)) a[i] = -std::numeric_limits<float>::infinity();
    return a;
  }
  static RECSYS_INLINE int push(F a, std::uint32_t lanes, std::int32_t base, float* low, std::int32_t* at) {
    int n = 0;
    for (int lane = 0; lane < kWidth; ++lane)
      if (lanes >> lane & 1) {
        low[n] = a[lane];
        at[n++] = base + lane;
      }
    return n;
  }
};

}  // namespace

#include "dense_body.hpp"
#include "rows_body.hpp"
#include "level_body.hpp"

constexpr recsys::Level recsys::kPortable = recsys::make_level();
