// How far a fast score can be from the exact one, and rounding that keeps a bound a bound.
//
// Rows are scaled by powers of two to a largest magnitude in [1, 2): every user by its own, all items by
// one, so no float32 overflows and underflow is far below anything that counts. With n terms:
//   rounding both factors to float32, n products, n additions     gamma(n + 2, 2^-24) |x| |y|
//   the exact score against the true one                          gamma(n, 2^-53) |x| |y|
//   fast score -+ bound and thresholds, each rounded to float32   2 * 2^-24 |x| |y|
//   underflow anywhere in float32, flushed or not                 n 2^-123, rounded up to n 2^-122
//   underflow in the exact float64 score: n 2^-1074 2^-exponent, below 2^-122 from kLeastExponent on
// A bias is one more term: the factor 1 times the bias. |x| counts as 1 at least, so that the bound is
// |x| times a number per item.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace recsys {

// Beyond this the bound would no longer be small against the scores.
constexpr std::int64_t kMostFactors = std::int64_t{1} << 20;
constexpr double kUp = 1 + 0x1p-20;  // outweighs the roundings of the few operations that make a bound

inline double gamma(double n, double unit) { return n * unit / (1 - n * unit); }

// Exact scores are 2^exponent times scaled ones; below this they may be too coarse for the bound.
constexpr int kLeastExponent = -900;

// Error of fast scores with an item of this norm (rounded up), for a user of norm 1.
inline double doubt_of(std::int64_t n_terms, double norm) {
  const auto n = static_cast<double>(n_terms);
  return ((gamma(n + 5, 0x1p-24) + gamma(n, 0x1p-53)) * norm + (n + 4) * 0x1p-122) * kUp;
}

inline float rounded_down(double value) {
  const auto near = static_cast<float>(value);
  return static_cast<double>(near) > value ? std::nextafterf(near, -std::numeric_limits<float>::infinity()) : near;
}

inline float rounded_up(double value) { return -rounded_down(-value); }

// The exponent that brings `largest` into [1, 2); 0 for 0.
inline int exponent_of(double largest) {
  if (largest == 0) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent - 1;
}

// 2^exponent where that is a normal float64.
inline double power_of_two(int exponent) {
  const std::uint64_t bits = static_cast<std::uint64_t>(exponent + 1023) << 52;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Multiplies by 2^-exponent in two steps, since a double cannot hold 2^1074.
struct Scale {
  explicit Scale(int exponent) : first(power_of_two(-exponent / 2)), second(power_of_two(-exponent - -exponent / 2)) {}
  double operator()(double value) const { return value * first * second; }
  double first, second;
};

// The largest magnitude; several at a time, so that no comparison waits for the one before.
inline double largest_of(const double* values, std::int64_t n) {
  double most[4] = {0, 0, 0, 0};
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    for (int z = 0; z < 4; ++z) most[z] = std::abs(values[j + z]) > most[z] ? std::abs(values[j + z]) : most[z];
  for (; j < n; ++j) most[0] = std::abs(values[j]) > most[0] ? std::abs(values[j]) : most[0];
  const double first = most[0] > most[1] ? most[0] : most[1], second = most[2] > most[3] ? most[2] : most[3];
  return first > second ? first : second;
}

// Of values at most 2 in magnitude, rounded up.
inline double norm_above(const double* values, std::int64_t n) {
  double sum[4] = {0, 0, 0, 0};
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    for (int z = 0; z < 4; ++z) sum[z] += values[j + z] * values[j + z];
  for (; j < n; ++j) sum[0] += values[j] * values[j];
  return std::sqrt((sum[0] + sum[1]) + (sum[2] + sum[3])) * (1 + 0x1p-30) + 0x1p-500;
}

}  // namespace recsys
