// The truth items of a block, and how many candidates score higher than each.
#pragma once

#include <cstdint>
#include <vector>

#include "cases.hpp"

namespace recsys {

class TruthCounts {
 public:
  explicit TruthCounts(Cases& cases) : cases_(cases) {}

  // Adding: once for the block, once for each case, once for the block.
  void begin(std::int64_t n_entries);
  void add(Case& c);
  void set_thresholds();

  void attach(Row& row);
  // Items still to come score between -bound and bound: truth items outside have all their counts.
  void resolve(Row& row, double bound, std::int64_t panel);
  // The smallest magnitude of a threshold that is still counted; `reach` if that is smaller.
  double nearest(const Row& row, double reach) const;

  // A candidate whose fast score is too near a truth item's to tell which is higher.
  void on_doubt(Row& row, std::int32_t truth, std::int32_t position);
  void settle_doubts();

  // Truth items among themselves: their scores are exact already. An item named twice is one candidate.
  void count_among(const Case& c);
  void write(const Case& c) const;
  const Judged* of(const Case& c) const { return judged_.data() + c.first_judged; }
  // take(entry) for the truth items of a case that are candidates, each once: equal ones are side by side.
  template <class Take>
  void each(const Case& c, const Take& take) const {
    const Judged* const first = of(c);
    for (std::int64_t i = 0; i < c.n_judged; ++i)
      if (i == 0 || first[i].position != first[i - 1].position)
        take({first[i].score, cases_.catalogue.item_at(first[i].position)});
  }

 private:
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

  void exclude_found(const Case& c);

  Cases& cases_;
  std::vector<Threshold> thresholds_;
  std::vector<Judged> judged_;
  std::vector<Found> found_;
  std::vector<Doubt> doubts_, by_case_;
};

}  // namespace recsys
