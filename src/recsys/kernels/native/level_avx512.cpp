// 12 users x 32 items: 24 accumulators of the 32 registers.
#include <immintrin.h>

#include <cstring>

#include "level.hpp"
#include "portability.hpp"

namespace {

struct V {
  using F = __m512;
  static constexpr int kWidth = 16, kRows = 12;
  static constexpr std::uint32_t kAll = 0xffff;
  using I = __m512i;
  static RECSYS_INLINE I ints(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  using Met = __mmask16;
  static RECSYS_INLINE Met meet(Met met, I a, std::int32_t item) {
    return met | _mm512_cmpeq_epi32_mask(a, _mm512_set1_epi32(item));
  }
  static RECSYS_INLINE std::uint32_t lanes(Met met) { return met; }
  // Whether two of the n entries are equal: inside a vector by the conflict instruction, across by comparing.
  template <int N>
  static RECSYS_INLINE bool may_repeat(const I* list, const std::int32_t* entries, int n) {
    __mmask16 met = 0;
    RECSYS_UNROLL
    for (int c = 0; c < N; ++c) {
      if (c * kWidth >= n) break;
      const int left = n - c * kWidth;
      const auto valid = static_cast<__mmask16>(left < kWidth ? (1u << left) - 1 : kAll);
      const I conflicts = _mm512_conflict_epi32(list[c]);
      met |= _mm512_mask_test_epi32_mask(valid, conflicts, conflicts);
      for (int i = (c + 1) * kWidth; i < n; ++i) met |= _mm512_cmpeq_epi32_mask(list[c], _mm512_set1_epi32(entries[i]));
    }
    return met != 0;
  }
  static RECSYS_INLINE F zero() { return _mm512_setzero_ps(); }
  static RECSYS_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
  static RECSYS_INLINE F set(float x) { return _mm512_set1_ps(x); }
  static RECSYS_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static RECSYS_INLINE F less(F a, F b, F c) { return _mm512_fnmadd_ps(b, c, a); }  // a - b c
  static RECSYS_INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static RECSYS_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static RECSYS_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static RECSYS_INLINE std::uint32_t joined(__mmask16 a, __mmask16 b) { return _cvtmask32_u32(_mm512_kunpackw(b, a)); }
  static RECSYS_INLINE std::uint32_t at_least(F a, F b, F cut) {
    return joined(_mm512_cmp_ps_mask(a, cut, _CMP_GE_OQ), _mm512_cmp_ps_mask(b, cut, _CMP_GE_OQ));
  }
  // The smallest magnitude, sign cleared.
  static RECSYS_INLINE F nearest(F known, F a, F b) { return _mm512_range_ps(known, _mm512_range_ps(a, b, 0xA), 0xA); }
  // Signed saturation keeps every sign, and puts all of them into one register.
  static RECSYS_INLINE int n_negative(F a, F b) {
    const __m512i both = _mm512_packs_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
    return __builtin_popcount(_cvtmask32_u32(_mm512_movepi16_mask(both)));
  }
  static RECSYS_INLINE F only(F a, std::uint32_t lanes) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(-__builtin_inff()), static_cast<__mmask16>(lanes), a);
  }
  static RECSYS_INLINE std::uint32_t within(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  // Packed in a register first: compressing straight to memory is microcoded on some CPUs.
  static RECSYS_INLINE int push(F a, std::uint32_t lanes, std::int32_t base, float* low, std::int32_t* at) {
    const __m512i place = _mm512_add_epi32(_mm512_set1_epi32(base),
                                           _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    _mm512_storeu_ps(low, _mm512_maskz_compress_ps(static_cast<__mmask16>(lanes), a));
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), place));
    return __builtin_popcount(lanes);
  }
};

}  // namespace

#include "exact_x86.hpp"
#include "match_x86.hpp"
#include "dense_body.hpp"
#include "rows_body.hpp"
#include "level_body.hpp"

constexpr recsys::Level recsys::kAvx512 = recsys::make_level();
