// Four exact scores at a time for float32 rows in one piece: four rows are turned into four vectors of one
// factor each, widened, multiplied and added, so every sum still runs in factor order.

#define RECSYS_EXACT_X86

namespace {

RECSYS_INLINE void add_four(__m256d& sum, const double* user, __m128 a, __m128 b, __m128 c, __m128 d) {
  _MM_TRANSPOSE4_PS(a, b, c, d);
  sum = _mm256_add_pd(sum, _mm256_mul_pd(_mm256_set1_pd(user[0]), _mm256_cvtps_pd(a)));
  sum = _mm256_add_pd(sum, _mm256_mul_pd(_mm256_set1_pd(user[1]), _mm256_cvtps_pd(b)));
  sum = _mm256_add_pd(sum, _mm256_mul_pd(_mm256_set1_pd(user[2]), _mm256_cvtps_pd(c)));
  sum = _mm256_add_pd(sum, _mm256_mul_pd(_mm256_set1_pd(user[3]), _mm256_cvtps_pd(d)));
}

// Groups of four side by side hide the latency of an addition.
template <int Groups>
void exact_groups(const double* user, std::int64_t n_factors, const float* const* rows, double* scores) {
  __m256d sum[Groups];
  for (int g = 0; g < Groups; ++g) sum[g] = _mm256_setzero_pd();
  std::int64_t j = 0;
  for (; j + 4 <= n_factors; j += 4) RECSYS_UNROLL
  for (int g = 0; g < Groups; ++g) {
    const float* const* y = rows + 4 * g;
    add_four(sum[g], user + j, _mm_loadu_ps(y[0] + j), _mm_loadu_ps(y[1] + j), _mm_loadu_ps(y[2] + j),
             _mm_loadu_ps(y[3] + j));
  }
  for (int g = 0; g < Groups; ++g) _mm256_storeu_pd(scores + 4 * g, sum[g]);
  for (; j < n_factors; ++j)
    for (int z = 0; z < 4 * Groups; ++z) scores[z] += user[j] * static_cast<double>(rows[z][j]);
}

}  // namespace
