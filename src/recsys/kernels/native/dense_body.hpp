// Loops over one row of given scores that a compiler makes vectors of. For the level files.
#pragma once

#include <limits>

namespace recsys {
namespace {

template <class T>
struct Counter;
template <>
struct Counter<float> {
  using Type = std::int32_t;
};
template <>
struct Counter<double> {
  using Type = std::int64_t;
};

// Scores of candidates, -inf for the rest; returns how many candidates there are. *finite: whether all of
// their scores are numbers.
template <class T>
std::int64_t masked(const T* RECSYS_RESTRICT scores, const std::uint8_t* RECSYS_RESTRICT candidate, std::int64_t n,
                    T* RECSYS_RESTRICT out, bool* finite) {
  std::int64_t n_candidates = 0;
  for (std::int64_t i = 0; i < n; ++i) n_candidates += candidate[i] != 0;
  for (std::int64_t i = 0; i < n; ++i) out[i] = candidate[i] ? scores[i] : -std::numeric_limits<T>::infinity();
  // What is not a candidate is not finite now: as many finite numbers as candidates, or one of theirs is odd.
  typename Counter<T>::Type n_finite = 0;
  for (std::int64_t i = 0; i < n; ++i)
    n_finite += (out[i] >= std::numeric_limits<T>::lowest()) & (out[i] <= std::numeric_limits<T>::max());
  *finite = n_finite == n_candidates;
  return n_candidates;
}

template <class T>
void count(const T* scores, std::int64_t n, T own, std::int64_t* above, std::int64_t* tied) {
  typename Counter<T>::Type higher = 0, equal = 0;  // as wide as a score: a comparison is added as it is
  for (std::int64_t i = 0; i < n; ++i) {
    higher += scores[i] > own;
    equal += scores[i] == own;
  }
  *above += higher;
  *tied += equal;
}

template <class T>
bool reaches(const T* scores, std::int64_t n, T least) {
  int any = 0;
  for (std::int64_t i = 0; i < n; ++i) any |= scores[i] >= least;
  return any != 0;
}

}  // namespace
}  // namespace recsys
