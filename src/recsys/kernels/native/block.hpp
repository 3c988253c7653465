// Some cases against the whole catalogue: the fast pass, what it leaves open, and the answers.
#pragma once

#include <cstdint>
#include <vector>

#include "best_lists.hpp"
#include "cases.hpp"
#include "truth_counts.hpp"
#include "workers.hpp"

namespace recsys {

class Block {
 public:
  Block(const Asked& asked, const Items& items, const Catalogue& catalogue, const Level& level, const Answers& answers)
      : cases_(asked, items, catalogue, level, answers), counts_(cases_), lists_(cases_) {}
  Block(const Block&) = delete;  // its parts point at each other
  Block& operator=(const Block&) = delete;

  void run(std::int64_t first, std::int64_t stop, const Cancel& cancel);

  // Bytes a block needs: for one case, for each of its seen and truth items, and once to finish a list.
  static std::int64_t bytes_per_case(const Asked& asked, const Items& items, const Level& level);
  static constexpr std::int64_t kBytesPerSeen = 4, kBytesPerTruth = 128, kBytesPerPlace = 32;

 private:
  void begin(std::int64_t first, std::int64_t stop);
  void set_tiles(std::int64_t n_tiles);
  float* factors_of(std::vector<float>& packed, std::int64_t row) const;

  void sweep(const Cancel& cancel);
  bool review(std::int64_t panel);
  bool is_final(Row& row, std::int64_t panel);
  void regroup(std::int64_t panel);
  void finish_closed(const Cancel& cancel);

  Cases cases_;
  TruthCounts counts_;
  BestLists lists_;
  // Rows share tiles of level.rows places; finished_ holds those that have left theirs.
  std::vector<Row> rows_, finished_;
  std::vector<float> packed_;
  std::vector<std::int32_t> tiles_;  // those with rows that are not final
  bool grouped_ = false;
};

}  // namespace recsys
