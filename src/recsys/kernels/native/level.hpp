// The part of a scan that is compiled once per CPU level. Only plain data crosses this border: an inline
// function shared with the level files could be emitted with instructions the running CPU lacks.
#pragma once

#include <cstdint>

#include "rows.hpp"
#include "slices.hpp"

namespace recsys {

// One truth item of a case, in the units of the fast scores.
struct Threshold {
  float score;  // the exact one, rounded
  std::int64_t above;
};

// What the innermost loop reads and writes for one case.
struct Row {
  float pass;      // a fast score below this cannot reach the list
  float length;    // of the scaled user: length * doubts[lane] bounds the error of a fast score
  std::int32_t n;  // entries in the buffer
  std::int32_t n_truth;
  const std::int32_t* excluded;  // next excluded position; INT32_MAX ends the list
  float* low;                    // buffer: lower bounds of exact scores
  std::int32_t* at;              // buffer: positions
  Threshold* truth;              // ascending
  std::int32_t slot;             // which case of the block
};

struct Sweep {
  const float* users;        // tiles of `rows` users, factor by factor
  const float* panel;        // one panel of `lanes` items, factor by factor
  const float* doubts;       // error of the fast score per lane, for a user of length 1
  const float* pair_doubts;  // the larger of lane i and lane i + lanes / 2
  std::int64_t n_factors;
  Row* rows;
  const std::int32_t* tiles;
  std::int32_t n_tiles;
  std::int32_t base;    // position of the panel's first item
  std::uint32_t valid;  // lanes that hold an item
  std::int32_t room;    // a buffer with more entries than this has no room for another panel
  void* owner;
  void (*full)(void* owner, Row& row);
  void (*doubtful)(void* owner, Row& row, std::int32_t truth, std::int32_t position);
};

// Rows of the exact pass: item rows as they are in the caller's memory.
struct ItemRows {
  const void* const* rows;
  std::int64_t stride;  // elements between factors
  bool is_double;
};

// One row of given scores: see dense_body.hpp.
template <class T>
struct Dense {
  std::int64_t (*masked)(const T* scores, const std::uint8_t* candidate, std::int64_t n, T* out, bool* finite);
  void (*count)(const T* scores, std::int64_t n, T own, std::int64_t* above, std::int64_t* tied);
  bool (*reaches)(const T* scores, std::int64_t n, T least);
};

struct Level {
  int rows, lanes;
  void (*sweep_lists)(const Sweep&);
  void (*sweep_counts)(const Sweep&);
  void (*sweep_both)(const Sweep&);
  // Raises *cut so that at least k of the n bounds reach it, drops entries below *cut - width, returns how
  // many are left.
  std::int32_t (*lift)(float* low, std::int32_t* at, std::int32_t n, std::int32_t k, float width, float* cut);
  // Exact scores of one user with n items, without bias.
  void (*exact)(const double* user, std::int64_t n_factors, ItemRows items, std::int64_t n, double* scores);
  // Exact scores of up to kExactUsers users with a panel of kExactLanes items, factor by factor.
  void (*exact_tile)(const double* const* users, int n_users, std::int64_t n_factors, const double* panel,
                     double* scores);
  // One bit per entry of a list that is a judged item, and one per entry that occurred before; up to
  // kMeetEntries entries, and as many must be readable. Null where there are no vectors to do it with.
  void (*meet)(const std::int32_t* entries, int n, const std::int32_t* judged, int n_judged, std::uint64_t* found,
               std::uint64_t* again);
  // Sums of the two high parts of numbers; see slices.hpp.
  Slices (*slices)(const double* values, std::int64_t n, double first, double second);
  // Rows [start, stop) of a table, start from 1, held against the one before each; see rows_body.hpp.
  RowFacts (*compare_rows)(const RowTable& table, Order order, std::int64_t start, std::int64_t stop, std::int32_t* out,
                           std::uint8_t* begins);
  Dense<float> floats;
  Dense<double> doubles;
};

constexpr int kMeetEntries = 64;

constexpr int kExactUsers = 4, kExactLanes = 16;

// Defined constexpr: nothing compiled for one level may run before the CPU was asked.
extern const Level kPortable;
#if defined(RECSYS_X86_LEVELS)
extern const Level kAvx2;
extern const Level kAvx512;
#endif

}  // namespace recsys
