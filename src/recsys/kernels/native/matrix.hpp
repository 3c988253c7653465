// A matrix in the caller's memory: float32 or float64, any strides, possibly memory-mapped.
#pragma once

#include <cstdint>

namespace recsys {

struct Matrix {
  const void* data = nullptr;
  bool is_double = false;
  std::int64_t n_rows = 0, n_columns = 0, row_stride = 0, column_stride = 0;  // strides in elements

  const void* row(std::int64_t i) const {
    return is_double ? static_cast<const void*>(static_cast<const double*>(data) + i * row_stride)
                     : static_cast<const void*>(static_cast<const float*>(data) + i * row_stride);
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
