// Some cases against the whole catalogue: the fast pass, what it leaves open, and the answers.
#pragma once

#include <cstdint>
#include <vector>

#include "catalogue.hpp"
#include "exact.hpp"
#include "level.hpp"
#include "match.hpp"
#include "matrix.hpp"
#include "workers.hpp"

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
};

// The list of excluded positions of a row without any.
inline constexpr std::int32_t kNoneExcluded = INT32_MAX;

// What is known of one case of the block, beside its Row.
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

// A candidate whose fast score is too near a truth item's to tell which is higher.
struct Doubt {
  std::int64_t judged;
  std::int32_t position, slot;
};

// A truth item that is a candidate of its case.
struct Found {
  double score;
  std::int64_t index;
  std::int32_t position;
};

class Block {
 public:
  Block(const Asked& asked, const Items& items, const Catalogue& catalogue, const Level& level, const Answers& answers);

  void run(std::int64_t first, std::int64_t stop, const Cancel& cancel);

  // Bytes a block needs: for one case, for each of its seen and truth items, and once to finish a list.
  static std::int64_t bytes_per_case(const Asked& asked, const Items& items, const Level& level);
  static constexpr std::int64_t kBytesPerSeen = 4, kBytesPerTruth = 128, kBytesPerPlace = 32;

 private:
  void begin(std::int64_t first, std::int64_t stop);
  void add_user(std::int64_t id, Row& row, float* packed);
  void add_seen(Case& c);
  void add_truth(Case& c);
  void add_judged_positions(const Case& c);
  void count_judged(const Case& c);
  void set_pass(Row& row);

  void sweep(const Cancel& cancel);
  bool review(std::int64_t panel);
  bool settled(Row& row, std::int64_t panel);
  void resolve_truth(Row& row, double bound, std::int64_t panel);
  double predicted_cut(const Row& row) const;
  void regroup(std::int64_t panel);

  void trim(Row& row);
  void refine(Row& row);
  void rescore(Row& row);
  void close(Row& row);
  void settle_doubts();
  void settle_doubts(const Case& c, const Doubt* first, std::int64_t n);
  const double* user_of(const Case& c);

  void finish(const Row& row);
  template <class Take>
  void each_judged(const Case& c, const Take& take) const;
  std::vector<Entry> judged_entries(const Case& c) const;
  void in_list_order();
  void finish_closed(const Cancel& cancel);
  void write(const Case& c, const std::vector<Entry>& best, std::int64_t n);

  static void on_full(void* self, Row& row);
  static void on_doubt(void* self, Row& row, std::int32_t truth, std::int32_t position);

  const Asked& asked_;
  const Items& items_;
  const Catalogue& catalogue_;
  const Level& level_;
  const Answers answers_;
  const std::int64_t n_terms_, most_rescored_;
  const std::int32_t room_, capacity_;

  Zone zone_{};
  bool grouped_ = false;
  std::vector<Row> rows_, finished_;
  std::vector<Case> cases_;
  std::vector<float> packed_, repacked_, low_;
  std::vector<std::int32_t> at_, excluded_, tiles_;
  std::vector<Threshold> thresholds_;
  std::vector<Judged> judged_;
  std::vector<Found> found_;
  std::vector<Doubt> doubts_, by_case_;
  std::vector<double> user_, scaled_, scores_;
  std::vector<std::int64_t> ids_;
  std::int64_t user_in_hand_ = -1;
  std::vector<std::int32_t> wanted_;
  std::vector<Entry> entries_;
  Scorer scorer_;
};

// Cases with their own candidate lists: everything is scored exactly, there is nothing to prune.
void run_eligible(const Asked& asked, const Items& items, const Level& level, const Answers& answers,
                  std::int64_t first, std::int64_t stop, const Cancel& cancel);

}  // namespace recsys
