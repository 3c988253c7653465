// 6 users x 16 items: 12 accumulators of the 16 registers.
#include <immintrin.h>

#include <cstring>

#include "level.hpp"
#include "portability.hpp"

namespace {

struct V {
  using F = __m256;
  static constexpr int kWidth = 8, kRows = 6;
  static constexpr std::uint32_t kAll = 0xff;
  using I = __m256i;
  static RECSYS_INLINE I ints(const std::int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  using Met = I;
  static RECSYS_INLINE I equal(I a, std::int32_t item) { return _mm256_cmpeq_epi32(a, _mm256_set1_epi32(item)); }
  static RECSYS_INLINE Met meet(Met met, I a, std::int32_t item) { return _mm256_or_si256(met, equal(a, item)); }
  static RECSYS_INLINE std::uint32_t lanes(Met met) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(met)));
  }
  // Every entry meets itself; one that is met twice occurs twice.
  template <int N>
  static RECSYS_INLINE bool may_repeat(const I* list, const std::int32_t* entries, int n) {
    I times[N] = {};
    for (int i = 0; i < n; ++i) {
      RECSYS_UNROLL
      for (int c = 0; c < N; ++c) times[c] = _mm256_sub_epi32(times[c], equal(list[c], entries[i]));
    }
    const I one = _mm256_set1_epi32(1);
    std::uint32_t twice = 0;
    RECSYS_UNROLL
    for (int c = 0; c < N; ++c) twice |= lanes(_mm256_cmpgt_epi32(times[c], one));
    return twice != 0;  // perhaps of a lane beyond the list: then the exact comparison finds nothing
  }
  static RECSYS_INLINE F zero() { return _mm256_setzero_ps(); }
  static RECSYS_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
  static RECSYS_INLINE F set(float x) { return _mm256_set1_ps(x); }
  static RECSYS_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static RECSYS_INLINE F less(F a, F b, F c) { return _mm256_fnmadd_ps(b, c, a); }  // a - b c
  static RECSYS_INLINE void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static RECSYS_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static RECSYS_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static RECSYS_INLINE std::uint32_t at_least(F a, F b, F cut) {
    return negative(_mm256_cmp_ps(a, cut, _CMP_GE_OQ), _mm256_cmp_ps(b, cut, _CMP_GE_OQ));
  }
  static RECSYS_INLINE F nearest(F known, F a, F b) {
    const F sign = _mm256_set1_ps(-0.0f);
    return _mm256_min_ps(known, _mm256_min_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b)));
  }
  static RECSYS_INLINE int n_negative(F a, F b) { return __builtin_popcount(negative(a, b)); }
  static RECSYS_INLINE F only(F a, std::uint32_t lanes) {
    const I bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const I set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(lanes)), bits), bits);
    return _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), a, _mm256_castsi256_ps(set));
  }
  static RECSYS_INLINE std::uint32_t negative(F a, F b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(a) | _mm256_movemask_ps(b) << kWidth);
  }
  static RECSYS_INLINE std::uint32_t within(F a, F b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ)));
  }
  static RECSYS_INLINE int push(F a, std::uint32_t lanes, std::int32_t base, float* low, std::int32_t* at) {
    alignas(32) float score[kWidth];
    _mm256_store_ps(score, a);
    int n = 0;
    for (; lanes; lanes &= lanes - 1, ++n) {
      const int lane = __builtin_ctz(lanes);
      low[n] = score[lane];
      at[n] = base + lane;
    }
    return n;
  }
};

}  // namespace

#include "exact_x86.hpp"
#include "match_x86.hpp"
#include "dense_body.hpp"
#include "rows_body.hpp"
#include "level_body.hpp"

constexpr recsys::Level recsys::kAvx2 = recsys::make_level();
