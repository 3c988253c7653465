// A few users against the longest vectors show how far down the norms each would have to read. Only time
// depends on the outcome, so plain float64 estimates are good enough here.
#include "order.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "bound.hpp"

namespace recsys {
namespace {

constexpr std::int64_t kUsers = 16, kHead = 256, kNorms = 1024;
// Nanoseconds, measured: a product and sum in the tile; sorting an item; moving one of its factors out of
// sequence; taking an entry into a buffer. Only their ratios matter.
constexpr double kMultiply = 0.02, kSort = 90, kMove = 0.6, kTake = 4;

class Probe {
 public:
  Probe(const Asked& asked, const Items& items, const Measured& measured, const Level& level)
      : asked_(asked), scorer_(items, level), user_(asked.users.n_columns), measured_(measured) {
    const auto n = static_cast<std::int64_t>(measured.items.size());
    std::vector<std::int32_t> order(n);
    for (std::int32_t i = 0; i < n; ++i) order[i] = i;
    const std::int64_t n_head = std::min(n, std::max<std::int64_t>(kHead, asked.k));
    std::nth_element(order.begin(), order.begin() + (n_head - 1), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return measured.norms[a] > measured.norms[b]; });
    for (std::int64_t i = 0; i < n_head; ++i) head_.push_back(measured.items[order[i]]);
    for (std::int64_t i = 0; i < n; i += 1 + n / kNorms) norms_.push_back(measured.norms[i]);
    std::sort(norms_.begin(), norms_.end());
  }

  // Share of the items this user could leave out.
  double skipped(std::int64_t user) {
    asked_.users.read(user, user_.data());
    double squares = asked_.k || asked_.truth.indptr ? 0.0 : 1.0;
    for (const double x : user_) squares += x * x;
    if (!(squares > 0) || !std::isfinite(squares)) return 0;
    const double score = std::min(list_reach(asked_.k), truth_reach(user));
    const double reach = std::ldexp(score / std::sqrt(squares), -measured_.exponent);
    const auto below = std::lower_bound(norms_.begin(), norms_.end(), reach) - norms_.begin();
    return static_cast<double>(below) / static_cast<double>(norms_.size());
  }

 private:
  // What the k best of the longest items score at least.
  double list_reach(std::int64_t k) {
    if (!k) return std::numeric_limits<double>::infinity();
    if (static_cast<std::int64_t>(head_.size()) < k) return 0;
    scores_.resize(head_.size());
    scorer_.score(user_.data(), head_.data(), static_cast<std::int64_t>(head_.size()), scores_.data());
    std::nth_element(scores_.begin(), scores_.begin() + (k - 1), scores_.end(), std::greater<double>());
    return scores_[k - 1];
  }

  double truth_reach(std::int64_t user) {
    double reach = std::numeric_limits<double>::infinity();
    if (!asked_.truth.indptr) return reach;
    // Below the score of the last place that counts nothing need be read.
    const double enough = asked_.deepest < INT64_MAX ? list_reach(asked_.deepest) : 0.0;
    scores_.resize(asked_.truth.size(user));
    scorer_.score(user_.data(), asked_.truth.begin(user), asked_.truth.size(user), scores_.data());
    for (const double score : scores_) reach = std::min(reach, std::max(enough, std::abs(score)));
    return reach;
  }

  const Asked& asked_;
  Scorer scorer_;
  std::vector<double> user_, scores_;
  const Measured& measured_;
  std::vector<std::int32_t> head_;
  std::vector<float> norms_;
};

}  // namespace

bool worth_ordering(const Asked& asked, const Items& items, const Measured& measured, const Level& level) {
  const auto n_items = static_cast<double>(measured.items.size());
  const std::int64_t n_users = asked.users.n_rows;
  const auto n_terms = static_cast<double>(std::max<std::int64_t>(1, items.n_terms()));
  const double order = n_items * (kSort + kMove * n_terms);
  const double scan = static_cast<double>(n_users) * n_items * n_terms * kMultiply;
  if (n_items < 2 || scan < order) return false;
  // Long vectors first also raise the cut of a list early, which spares entries that would not stay.
  const double taken = asked.k ? asked.k * std::log(std::max(1.0, n_items / asked.k)) * kTake : 0.0;
  double saved = static_cast<double>(n_users) * taken / 2;
  if (saved > order) return true;
  Probe probe(asked, items, measured, level);
  const std::int64_t n_probed = std::min(kUsers, n_users);
  double skipped = 0;
  for (std::int64_t i = 0; i < n_probed; ++i) skipped += probe.skipped(i * n_users / n_probed);
  saved += skipped / static_cast<double>(n_probed) * scan;
  return saved > 1.5 * order && saved > scan / 10;
}

}  // namespace recsys
