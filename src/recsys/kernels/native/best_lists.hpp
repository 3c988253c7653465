// The entries of a block that may belong to the k best of their case.
#pragma once

#include <cstdint>
#include <vector>

#include "cases.hpp"
#include "truth_counts.hpp"

namespace recsys {

class BestLists {
 public:
  explicit BestLists(Cases& cases);

  // Places of a buffer, 0 without lists.
  static std::int32_t capacity_for(const Asked& asked, const Items& items, const Level& level);

  void begin(std::int64_t n_cases);
  void attach(Row& row);
  // The largest error within the zone decides what may still reach the list.
  void set_pass(Row& row) const;
  // A buffer with more entries than this has no room for another panel.
  std::int32_t room() const { return room_; }
  void on_full(Row& row);
  // Raises the cut and drops what is too far below it.
  void trim(Row& row) const;
  // The k best of the entries and of the truth items, which the sweep passed over, by exact scores.
  void write(Row row, const TruthCounts& counts);

 private:
  void refine(Row& row) const;
  void rescore(Row& row);
  void sort_entries();

  Cases& cases_;
  const std::int32_t k_, room_, capacity_;
  std::vector<float> low_;
  std::vector<std::int32_t> at_;
  std::vector<Entry> entries_;
};

}  // namespace recsys
