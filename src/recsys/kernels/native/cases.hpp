// What a scan asks for, where the answers go, and the cases of one block.
#pragma once

#include <cstdint>
#include <vector>

#include "catalogue.hpp"
#include "exact.hpp"
#include "level.hpp"
#include "match.hpp"
#include "matrix.hpp"

namespace recsys {

struct Asked {
  Matrix users;
  std::int32_t k = 0;                // 0: no lists
  Rows truth, seen, eligible;        // indptr is null where not given
  std::int64_t deepest = INT64_MAX;  // a truth item with this many above it needs no further counting
};

// Arrays of the whole call; lists have k places per case until Python closes the gaps.
struct Answers {
  std::int32_t* list_items;
  double* list_scores;
  std::int64_t* list_lengths;
  std::int64_t *above, *tied, *ahead;
  double* truth_scores;
  std::int64_t* n_candidates;

  void write_list(std::int64_t id, std::int64_t k, const std::vector<Entry>& best) const;
  void write_counts(std::int64_t truth, std::int64_t n_above, std::int64_t n_tied, std::int64_t n_ahead) const {
    above[truth] = n_above;
    tied[truth] = n_tied;
    ahead[truth] = n_ahead;
  }
};

// The list of excluded positions of a row without any.
inline constexpr std::int32_t kNoneExcluded = INT32_MAX;

// What is known of one case of the block, in addition to its Row.
struct Case {
  std::int64_t id;
  double norm;   // of the scaled user, rounded up, at least 1
  int exponent;  // exact scores times 2^-exponent are in the units of fast scores
  float cut;     // at least k candidates score this much
  float width;   // twice the largest doubt: a bound this far below the cut may still belong to the list
  bool closed;   // too much is in doubt: the exact pass decides
  std::int64_t n_rescored;
  std::int64_t first_excluded, first_judged, n_judged;
};

// The cases of a block, what they do not get, and exact scores for them. Lists and counts are made of these.
struct Cases {
  Cases(const Asked& question, const Items& all_items, const Catalogue& visited, const Level& cpu,
        const Answers& results);

  // Reads a user: the scaled factors go to `packed`, one every level.rows places.
  void add_user(std::int64_t id, Row& row, float* packed);
  // Seen items in visiting order.
  void add_seen(Case& c);

  Case& of(const Row& row) { return all[row.slot]; }
  const Case& of(const Row& row) const { return all[row.slot]; }
  // Counts exact scores of a case; false once there are too many and the case is left to the exact pass.
  bool may_rescore(Row& row, std::int64_t n);
  void close(Row& row);
  // scores[i] = exact score of the case with wanted[i].
  void score(const Case& c);

  const Asked& asked;
  const Items& items;
  const Catalogue& catalogue;
  const Level& level;
  const Answers answers;
  const std::int64_t n_terms, most_rescored;

  std::vector<Case> all;
  std::vector<std::int32_t> excluded;  // by case: excluded positions, and kNoneExcluded
  Zone zone{};                         // the part of the catalogue that is visited now
  std::vector<double> user, scores;    // one user at a time, whose id is user_in_hand
  std::vector<std::int32_t> wanted;
  std::int64_t user_in_hand = -1;
  Scorer scorer;

 private:
  std::vector<double> scaled_;
};

}  // namespace recsys
