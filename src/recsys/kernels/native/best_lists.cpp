#include "best_lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bound.hpp"

namespace recsys {
namespace {

// Entries a buffer takes before it is cut back to about k; there are never more than items.
std::int32_t room_for(const Asked& asked, const Items& items) {
  if (!asked.k) return 0;
  const std::int64_t k = asked.k;
  return static_cast<std::int32_t>(std::max<std::int64_t>(128, std::min(2 * k + 64, items.factors.n_rows)));
}

}  // namespace

BestLists::BestLists(Cases& cases)
    : cases_(cases),
      k_(cases.asked.k),
      room_(room_for(cases.asked, cases.items)),
      capacity_(capacity_for(cases.asked, cases.items, cases.level)) {}

std::int32_t BestLists::capacity_for(const Asked& asked, const Items& items, const Level& level) {
  // One more panel, and a whole vector that a packed store may write beyond it.
  return asked.k ? room_for(asked, items) + level.lanes + 16 : 0;
}

void BestLists::begin(std::int64_t n_cases) {
  low_.resize(n_cases * capacity_);
  at_.resize(n_cases * capacity_);
}

void BestLists::attach(Row& row) {
  row.low = low_.data() + std::int64_t{row.slot} * capacity_;
  row.at = at_.data() + std::int64_t{row.slot} * capacity_;
}

void BestLists::set_pass(Row& row) const {
  const Case& c = cases_.of(row);
  row.pass =
      k_ && !c.closed ? rounded_down(c.cut - kUp * c.norm * cases_.zone.doubt) : std::numeric_limits<float>::infinity();
}

void BestLists::on_full(Row& row) {
  trim(row);
  if (row.n > k_ + (room_ - k_) / 2) refine(row);
  if (row.n > k_ + (room_ - k_) / 2) rescore(row);
}

void BestLists::trim(Row& row) const {
  Case& c = cases_.of(row);
  row.n = cases_.level.lift(row.low, row.at, row.n, k_, c.width, &c.cut);
  set_pass(row);
}

// Items with shorter vectors are known better than `width` says.
void BestLists::refine(Row& row) const {
  const Case& c = cases_.of(row);
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < row.n; ++i) {
    const double doubt = c.norm * cases_.catalogue.doubt_at(row.at[i]) * kUp;
    if (row.low[i] + 2 * doubt * kUp < c.cut) continue;
    row.low[kept] = row.low[i];
    row.at[kept++] = row.at[i];
  }
  row.n = kept;
}

// Too many entries the fast scores cannot tell apart: exact scores can.
void BestLists::rescore(Row& row) {
  if (!cases_.may_rescore(row, row.n)) return;
  Case& c = cases_.of(row);
  std::vector<std::int32_t>& wanted = cases_.wanted;
  wanted.resize(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) wanted[i] = cases_.catalogue.item_at(row.at[i]);
  cases_.score(c);
  const std::vector<double>& scores = cases_.scores;
  std::vector<std::int32_t> order(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return ahead(cases_.items, {scores[a], wanted[a]}, {scores[b], wanted[b]});
  });
  order.resize(k_);
  c.cut = std::max(c.cut, rounded_down(std::ldexp(scores[order.back()], -c.exponent)));
  std::sort(order.begin(), order.end());
  for (std::int32_t i = 0; i < k_; ++i) {
    row.low[i] = row.low[order[i]];
    row.at[i] = row.at[order[i]];
  }
  row.n = k_;
  set_pass(row);
}

void BestLists::write(Row row, const TruthCounts& counts) {
  const Case& c = cases_.of(row);
  trim(row);
  if (row.n > k_ + 8) refine(row);
  std::vector<std::int32_t>& wanted = cases_.wanted;
  wanted.resize(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) wanted[i] = cases_.catalogue.item_at(row.at[i]);
  cases_.score(c);
  counts.each(c, [this](const Entry& entry) {
    cases_.wanted.push_back(entry.item);
    cases_.scores.push_back(entry.score);
  });
  sort_entries();
  cases_.answers.write_list(c.id, k_, entries_);
}

// The wanted items and their scores. A place is how many score higher: for a list that is quicker than a sort
// that has to guess. Equal scores meet in one place, and only they need the sort.
void BestLists::sort_entries() {
  constexpr std::size_t kFew = 64;
  const std::vector<std::int32_t>& wanted = cases_.wanted;
  const std::vector<double>& scores = cases_.scores;
  const std::size_t n = wanted.size();
  entries_.assign(n, Entry{0, -1});
  bool distinct = n <= kFew;
  for (std::size_t i = 0; distinct && i < n; ++i) {
    std::int64_t place = 0;
    for (std::size_t j = 0; j < n; ++j) place += scores[j] > scores[i];
    distinct = entries_[place].item < 0;
    entries_[place] = {scores[i], wanted[i]};
  }
  if (distinct) return;
  for (std::size_t i = 0; i < n; ++i) entries_[i] = {scores[i], wanted[i]};
  std::sort(entries_.begin(), entries_.end(),
            [this](const Entry& a, const Entry& b) { return ahead(cases_.items, a, b); });
}

}  // namespace recsys
