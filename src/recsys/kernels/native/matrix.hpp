// A matrix in the caller's memory: float32 or float64, any strides, possibly memory-mapped.
#pragma once

#include <cstdint>

#include "portability.hpp"

namespace recsys {

constexpr std::int64_t kFetched = 2048;  // bytes of a row worth asking for ahead

struct Matrix {
  const void* data = nullptr;
  bool is_double = false;
  std::int64_t n_rows = 0, n_columns = 0, row_stride = 0, column_stride = 0;  // strides in elements
  const std::int64_t* chosen = nullptr;  // which rows these are, where not all are wanted

  const void* row(std::int64_t i) const {
    if (chosen) i = chosen[i];
    return is_double ? static_cast<const void*>(static_cast<const double*>(data) + i * row_stride)
                     : static_cast<const void*>(static_cast<const float*>(data) + i * row_stride);
  }

  // Says that row i is wanted soon; only for rows in one piece.
  void fetch(std::int64_t i) const {
    if (column_stride != 1) return;
    const char* const start = static_cast<const char*>(row(i));
    const std::int64_t size = n_columns * (is_double ? 8 : 4);
    for (std::int64_t at = 0; at < size && at < kFetched; at += 64) RECSYS_PREFETCH(start + at);
  }

  // Row i, widened.
  void read(std::int64_t i, double* out) const {
    if (is_double) {
      const double* p = static_cast<const double*>(row(i));
      for (std::int64_t j = 0; j < n_columns; ++j) out[j] = p[j * column_stride];
    } else {
      const float* p = static_cast<const float*>(row(i));
      for (std::int64_t j = 0; j < n_columns; ++j) out[j] = p[j * column_stride];
    }
  }
};

}  // namespace recsys
