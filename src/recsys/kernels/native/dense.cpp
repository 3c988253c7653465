// A row is copied with all but its candidates set to -inf; then judged items are compared with it piece by piece,
// while a piece is in the cache, and the list takes only from pieces that reach its worst entry.
#include "dense.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace recsys {
namespace {

template <class T>
class Ranker {
 public:
  Ranker(const ScoreRows<T>& rows, const Dense<T>& level, const ScoreAnswers& answers)
      : rows_(rows), level_(level), answers_(answers), open_(static_cast<std::size_t>(rows.n_items)) {}

  void rank(std::int64_t row) {
    const std::int64_t at = row * rows_.n_items;
    bool finite = true;
    answers_.n_candidates[row] =
        level_.masked(rows_.scores + at, rows_.candidate + at, rows_.n_items, open_.data(), &finite);
    if (!finite)
      throw std::invalid_argument("row " + std::to_string(row) + " has a NaN or infinite score of a candidate");
    count(row, rows_.scores + at, rows_.candidate + at);
    if (rows_.k) list(row);
  }

 private:
  void count(std::int64_t row, const T* scores, const std::uint8_t* candidate) {
    const std::int64_t first = rows_.truth_indptr[row], last = rows_.truth_indptr[row + 1];
    for (std::int64_t t = first; t < last; ++t) {
      const std::int32_t item = rows_.truth_items[t];
      answers_.own[t] = static_cast<double>(scores[item]);
      answers_.above[t] = candidate[item] ? 0 : -1;
      answers_.tied[t] = answers_.ahead[t] = 0;
    }
    for (std::int64_t start = 0; start < rows_.n_items; start += kPiece) {
      const std::int64_t n = std::min<std::int64_t>(kPiece, rows_.n_items - start);
      for (std::int64_t t = first; t < last; ++t)
        if (answers_.above[t] >= 0)
          level_.count(open_.data() + start, n, scores[rows_.truth_items[t]], &answers_.above[t], &answers_.tied[t]);
    }
    for (std::int64_t t = first; t < last; ++t)
      if (answers_.tied[t] > 1) answers_.ahead[t] = before(rows_.truth_items[t]);
  }

  std::int64_t before(std::int32_t item) const {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < rows_.n_items; ++i) n += open_[i] == open_[item] && rows_.rank[i] < rows_.rank[item];
    return n;
  }

  void list(std::int64_t row) {
    const auto k = static_cast<std::size_t>(rows_.k);
    std::size_t room = 4 * k;
    // The least number there is: -inf does not reach it.
    T least = std::numeric_limits<T>::lowest();
    best_.clear();
    for (std::int64_t start = 0; start < rows_.n_items; start += kStrip) {
      const std::int64_t stop = std::min<std::int64_t>(start + kStrip, rows_.n_items);
      if (!level_.reaches(open_.data() + start, stop - start, least)) continue;
      for (std::int64_t i = start; i < stop; ++i)
        if (open_[i] >= least) best_.push_back(static_cast<std::int32_t>(i));
      if (best_.size() <= room) continue;
      least = cut(k);
      room = std::max(4 * k, 2 * best_.size());  // where many are level, few go
    }
    const auto better = [this](std::int32_t a, std::int32_t b) {
      return open_[a] > open_[b] || (open_[a] == open_[b] && rows_.rank[a] < rows_.rank[b]);
    };
    if (best_.size() > k) {
      cut(k);
      std::nth_element(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(k) - 1, best_.end(), better);
      best_.resize(k);
    }
    std::sort(best_.begin(), best_.end(), better);
    answers_.lengths[row] = static_cast<std::int64_t>(best_.size());
    for (std::size_t i = 0; i < best_.size(); ++i) {
      answers_.list_items[row * rows_.k + static_cast<std::int64_t>(i)] = best_[i];
      answers_.list_scores[row * rows_.k + static_cast<std::int64_t>(i)] = static_cast<double>(open_[best_[i]]);
    }
  }

  // Drops what cannot be among the k best and keeps what is level with the last; returns its score.
  T cut(std::size_t k) {
    values_.resize(best_.size());
    for (std::size_t i = 0; i < best_.size(); ++i) values_[i] = open_[best_[i]];
    const auto last = values_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(values_.begin(), last, values_.end(), std::greater<T>());
    const T least = *last;
    std::size_t n = 0;
    for (const std::int32_t item : best_) {
      best_[n] = item;
      n += open_[item] >= least;
    }
    best_.resize(n);
    return least;
  }

  static constexpr std::int64_t kPiece = 1024, kStrip = 64;

  const ScoreRows<T>& rows_;
  const Dense<T>& level_;
  const ScoreAnswers& answers_;
  std::vector<T> open_, values_;
  std::vector<std::int32_t> best_;
};

}  // namespace

template <class T>
void rank_scores(const ScoreRows<T>& rows, std::int64_t start, std::int64_t stop, const Dense<T>& level,
                 const ScoreAnswers& answers) {
  Ranker<T> ranker(rows, level, answers);
  for (std::int64_t row = start; row < stop; ++row) ranker.rank(row);
}

template void rank_scores(const ScoreRows<float>&, std::int64_t, std::int64_t, const Dense<float>&,
                          const ScoreAnswers&);
template void rank_scores(const ScoreRows<double>&, std::int64_t, std::int64_t, const Dense<double>&,
                          const ScoreAnswers&);

}  // namespace recsys
