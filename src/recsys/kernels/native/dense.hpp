// Rows of given scores: the k best of each, and how many are above and level with its judged items.
#pragma once

#include <cstdint>

#include "level.hpp"

namespace recsys {

template <class T>
struct ScoreRows {
  const T* scores;                // one row per case
  const std::uint8_t* candidate;  // likewise
  std::int64_t n_rows, n_items;
  const std::int64_t* rank;  // of an item: among equal scores the smaller one goes first
  const std::int64_t* truth_indptr;
  const std::int32_t* truth_items;
  std::int64_t k;
};

struct ScoreAnswers {
  std::int64_t* lengths;  // of each list
  std::int32_t* list_items;
  double* list_scores;  // k places per row
  std::int64_t *above, *tied, *ahead;
  double* own;
  std::int64_t* n_candidates;
};

// Rows [start, stop). Scores of candidates are finite.
template <class T>
void rank_scores(const ScoreRows<T>& rows, std::int64_t start, std::int64_t stop, const Dense<T>& level,
                 const ScoreAnswers& answers);

}  // namespace recsys
