#include "exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace recsys {

void throw_not_finite() { throw std::invalid_argument("a score is NaN or infinite"); }

void Scorer::score(const double* user, const std::int32_t* wanted, std::int64_t n, double* out) {
  if (n == 0) return;
  const Matrix& factors = items_.factors;
  rows_.resize(n);
  for (std::int64_t i = 0; i < n; ++i) rows_[i] = factors.row(wanted[i]);
  level_.exact(user, factors.n_columns, {rows_.data(), factors.column_stride, factors.is_double}, n, out);
  if (items_.bias)
    for (std::int64_t i = 0; i < n; ++i) out[i] += items_.bias[wanted[i]];
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i) finite &= std::abs(out[i]) <= std::numeric_limits<double>::max();
  if (!finite) throw_not_finite();
}

void Best::offer(const Entry& entry) {
  const auto worse_first = [this](const Entry& a, const Entry& b) { return ahead(items_, a, b); };
  if (static_cast<std::int64_t>(heap_.size()) == k_) {
    if (k_ == 0 || !ahead(items_, entry, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), worse_first);
    heap_.back() = entry;
  } else {
    heap_.push_back(entry);
  }
  std::push_heap(heap_.begin(), heap_.end(), worse_first);
}

const std::vector<Entry>& Best::sorted() {
  std::sort(heap_.begin(), heap_.end(), [this](const Entry& a, const Entry& b) { return ahead(items_, a, b); });
  return heap_;
}

void Tally::start(std::vector<Entry> judged) {
  judged_ = std::move(judged);
  beyond_.assign(judged_.size() + 1, 0);
  equal_.assign(judged_.size(), 0);
  before_.assign(judged_.size(), 0);
}

void Tally::add(const Entry& candidate) {
  const auto lower = [](const Entry& a, double score) { return a.score < score; };
  const auto higher = [](double score, const Entry& a) { return score < a.score; };
  const auto first = std::lower_bound(judged_.begin(), judged_.end(), candidate.score, lower);
  ++beyond_[first - judged_.begin()];
  if (first == judged_.end() || first->score != candidate.score) return;
  ++equal_[first - judged_.begin()];
  const auto end = std::upper_bound(first, judged_.end(), candidate.score, higher);
  const auto behind =
      std::partition_point(first, end, [&](const Entry& own) { return !items_.before(candidate.item, own.item); });
  if (behind != end) ++before_[behind - judged_.begin()];
}

void ExactPass::load(std::int64_t base) {
  const Matrix& factors = items_.factors;
  panel_.assign(factors.n_columns * kExactLanes, 0.0);
  row_.resize(factors.n_columns);
  for (int lane = 0; lane < kExactLanes && base + lane < catalogue_.size(); ++lane) {
    factors.read(catalogue_.item_at(base + lane), row_.data());
    for (std::int64_t j = 0; j < factors.n_columns; ++j) panel_[j * kExactLanes + lane] = row_[j];
  }
}

}  // namespace recsys
