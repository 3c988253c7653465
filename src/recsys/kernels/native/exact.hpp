// Exact scores and what is decided from them alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "catalogue.hpp"
#include "level.hpp"

namespace recsys {

struct Entry {
  double score;
  std::int32_t item;
};

// Scores are sorted, and a sort may leave its array where one of them is NaN.
[[noreturn]] void throw_not_finite();

// The order of a list: higher scores first, equal scores by tie key.
inline bool ahead(const Items& items, const Entry& a, const Entry& b) {
  return a.score != b.score ? a.score > b.score : items.before(a.item, b.item);
}

// Scores single users with chosen items.
class Scorer {
 public:
  Scorer(const Items& items, const Level& level) : items_(items), level_(level) {}

  // out[i] = exact score of the user with wanted[i], bias included.
  void score(const double* user, const std::int32_t* wanted, std::int64_t n, double* out);

 private:
  const Items& items_;
  const Level& level_;
  std::vector<const void*> rows_;
};

// Keeps the k entries that are ahead of all others, in bounded memory.
class Best {
 public:
  Best(const Items& items, std::int64_t k) : items_(items), k_(k) {}

  void offer(const Entry& entry);
  // In list order.
  const std::vector<Entry>& sorted();

 private:
  const Items& items_;
  const std::int64_t k_;
  std::vector<Entry> heap_;
};

// Counts candidates for truth items that ascend by score and, where equal, are in list order. The time for
// a candidate grows with the logarithm of their number.
class Tally {
 public:
  explicit Tally(const Items& items) : items_(items) {}

  void start(std::vector<Entry> judged);
  void add(const Entry& candidate);

  // give(i, above, tied, ahead) for each truth item.
  template <class Give>
  void finish(const Give& give) const {
    std::int64_t above = 0;
    for (const std::int64_t n : beyond_) above += n;
    std::int64_t tied = 0, ahead = 0;
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      above -= beyond_[i];
      if (i == 0 || judged_[i].score != judged_[i - 1].score) {
        tied = equal_[i];
        ahead = 0;
      }
      ahead += before_[i];
      give(i, above, tied, ahead);
    }
  }

 private:
  const Items& items_;
  std::vector<Entry> judged_;
  // Candidates above all truth items before this one; equal to it, kept at the first of equals; of those,
  // the ones that go before it and not before the one in front.
  std::vector<std::int64_t> beyond_, equal_, before_;
};

// A truth item of a case that is a candidate.
struct Judged {
  double score;   // exact
  double scaled;  // in the units of the fast scores
  std::int64_t index;
  std::int32_t position;
  std::int64_t above, tied, ahead;  // ahead: of the tied ones, those that go first
};

// Scores every candidate of some cases in float64. `users` are widened rows; excluded positions ascend and
// end with INT32_MAX. Calls take(user, entry) for each candidate, positions ascending.
class ExactPass {
 public:
  ExactPass(const Items& items, const Catalogue& catalogue, const Level& level)
      : items_(items), catalogue_(catalogue), level_(level) {}

  template <class Take>
  void run(const std::vector<const double*>& users, std::vector<const std::int32_t*> excluded, const Cancel& cancel,
           const Take& take) {
    for (std::int64_t base = 0; base < catalogue_.size() && !cancel.asked(); base += kExactLanes) {
      load(base);
      for (std::size_t u = 0; u < users.size(); u += kExactUsers) {
        const auto n = static_cast<int>(users.size() - u < kExactUsers ? users.size() - u : kExactUsers);
        level_.exact_tile(users.data() + u, n, items_.factors.n_columns, panel_.data(), scores_);
        for (int r = 0; r < n; ++r) offer_lanes(u + r, base, scores_ + r * kExactLanes, excluded[u + r], take);
      }
    }
  }

 private:
  void load(std::int64_t base);

  template <class Take>
  void offer_lanes(std::size_t user, std::int64_t base, const double* scores, const std::int32_t*& excluded,
                   const Take& take) const {
    for (int lane = 0; lane < kExactLanes && base + lane < catalogue_.size(); ++lane) {
      if (*excluded == base + lane) {
        ++excluded;
        continue;
      }
      const std::int32_t item = catalogue_.item_at(base + lane);
      const double bias = items_.bias ? items_.bias[item] : 0.0;
      const double score = scores[lane] + bias;
      if (!(std::abs(score) <= std::numeric_limits<double>::max())) throw_not_finite();
      take(user, Entry{score, item});
    }
  }

  const Items& items_;
  const Catalogue& catalogue_;
  const Level& level_;
  std::vector<double> panel_, row_;
  double scores_[kExactUsers * kExactLanes];
};

}  // namespace recsys
