#include "truth_counts.hpp"

#include <algorithm>
#include <cmath>

#include "bound.hpp"

namespace recsys {
namespace {

constexpr std::size_t kMostDoubts = 1 << 16;

}  // namespace

void TruthCounts::begin(std::int64_t n_entries) {
  judged_.clear();
  doubts_.clear();
  judged_.reserve(n_entries);
}

void TruthCounts::add(Case& c) {
  c.first_judged = static_cast<std::int64_t>(judged_.size());
  c.n_judged = 0;
  const Rows& truth = cases_.asked.truth;
  if (!truth.indptr) return;
  const std::int64_t n = truth.size(c.id), start = truth.indptr[c.id];
  std::vector<double>& scores = cases_.scores;
  scores.resize(n);
  cases_.scorer.score(cases_.user.data(), truth.begin(c.id), n, scores.data());
  const std::vector<std::int32_t>& excluded = cases_.excluded;
  found_.clear();
  for (std::int64_t t = 0; t < n; ++t) {
    cases_.answers.truth_scores[start + t] = scores[t];
    cases_.answers.write_counts(start + t, -1, 0, 0);
    const std::int32_t position = cases_.catalogue.position_of(truth.items[start + t]);
    const bool is_seen = std::binary_search(excluded.begin() + c.first_excluded, excluded.end(), position);
    if (position >= 0 && !is_seen) found_.push_back({scores[t], start + t, position});
  }
  exclude_found(c);
  std::sort(found_.begin(), found_.end(), [this](const Found& a, const Found& b) {
    if (a.score != b.score) return a.score < b.score;
    return cases_.items.before(cases_.catalogue.item_at(a.position), cases_.catalogue.item_at(b.position));
  });
  c.n_judged = static_cast<std::int64_t>(found_.size());
  judged_.resize(c.first_judged + c.n_judged);
  const Scale scale(c.exponent);
  Judged* own = judged_.data() + c.first_judged;
  for (const Found& found : found_) {
    own->score = found.score;
    own->scaled = scale(found.score);
    own->index = found.index;
    own->position = found.position;
    ++own;
  }
  count_among(c);
}

// The sweep passes over truth items: it could only find again what is known.
void TruthCounts::exclude_found(const Case& c) {
  std::vector<std::int32_t>&positions = cases_.wanted, &excluded = cases_.excluded;
  positions.clear();
  for (const Found& found : found_) positions.push_back(found.position);
  if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  auto from = static_cast<std::int64_t>(excluded.size()) - 1;
  auto left = static_cast<std::int64_t>(positions.size()) - 1;
  excluded.resize(excluded.size() + positions.size());
  for (auto to = static_cast<std::int64_t>(excluded.size()) - 1; left >= 0; --to) {
    const bool is_seen = from >= c.first_excluded && excluded[from] > positions[left];
    excluded[to] = is_seen ? excluded[from--] : positions[left--];
  }
}

void TruthCounts::count_among(const Case& c) {
  Judged* const first = judged_.data() + c.first_judged;
  std::int64_t above = 0;
  for (std::int64_t stop = c.n_judged, start; stop > 0; stop = start) {
    std::int64_t tied = 0;
    for (start = stop; start > 0 && first[start - 1].score == first[stop - 1].score; --start)
      tied += start == stop || first[start - 1].position != first[start].position;
    std::int64_t ahead = -1;
    for (std::int64_t i = start; i < stop; ++i) {
      ahead += i == start || first[i].position != first[i - 1].position;
      first[i].above = above;
      first[i].tied = tied;
      first[i].ahead = ahead;
    }
    above += tied;
  }
}

void TruthCounts::set_thresholds() {
  thresholds_.resize(judged_.size());
  // Adding 0 turns -0, which a tiny negative score rounds to, into +0: the sign of a difference decides.
  for (std::size_t i = 0; i < judged_.size(); ++i) {
    thresholds_[i].score = static_cast<float>(judged_[i].scaled) + 0.0f;
    thresholds_[i].above = 0;
  }
}

void TruthCounts::attach(Row& row) {
  const Case& c = cases_.of(row);
  row.truth = thresholds_.data() + c.first_judged;
  row.n_truth = static_cast<std::int32_t>(c.n_judged);
}

void TruthCounts::resolve(Row& row, double bound, std::int64_t panel) {
  const Judged* judged = judged_.data() + (row.truth - thresholds_.data());
  const std::int64_t deepest = cases_.asked.deepest;
  // The lowest score has the most above it.
  for (; row.n_truth && judged->above + row.truth->above >= deepest; ++judged, ++row.truth) --row.n_truth;
  while (row.n_truth && judged[row.n_truth - 1].scaled > bound) --row.n_truth;
  if (!row.n_truth || judged->scaled >= -bound) return;
  const std::int32_t* end = row.excluded;
  while (*end != kNoneExcluded) ++end;
  const std::int64_t left = cases_.catalogue.size() - panel * cases_.level.lanes - (end - row.excluded);
  for (; row.n_truth && judged->scaled < -bound; ++judged, ++row.truth, --row.n_truth) row.truth->above += left;
}

double TruthCounts::nearest(const Row& row, double reach) const {
  const Judged* judged = judged_.data() + (row.truth - thresholds_.data());
  for (std::int32_t t = 0; t < row.n_truth; ++t) reach = std::min(reach, std::abs(judged[t].scaled));
  return reach;
}

void TruthCounts::on_doubt(Row& row, std::int32_t truth, std::int32_t position) {
  if (!cases_.may_rescore(row, 1)) return;
  doubts_.push_back({row.truth + truth - thresholds_.data(), position, row.slot});
  if (doubts_.size() > kMostDoubts) settle_doubts();
}

// Case by case, since several items of one user are scored in the time of one.
void TruthCounts::settle_doubts() {
  std::vector<std::int64_t> start(cases_.all.size() + 1, 0);
  for (const Doubt& doubt : doubts_) ++start[doubt.slot + 1];
  for (std::size_t slot = 0; slot < cases_.all.size(); ++slot) start[slot + 1] += start[slot];
  by_case_.resize(doubts_.size());
  for (const Doubt& doubt : doubts_) by_case_[start[doubt.slot]++] = doubt;
  std::int64_t first = 0;
  for (std::size_t slot = 0; slot < cases_.all.size(); first = start[slot++]) {
    if (first == start[slot] || cases_.all[slot].closed) continue;
    const Doubt* const doubts = by_case_.data() + first;
    const std::int64_t n = start[slot] - first;
    cases_.wanted.resize(n);
    for (std::int64_t i = 0; i < n; ++i) cases_.wanted[i] = cases_.catalogue.item_at(doubts[i].position);
    cases_.score(cases_.all[slot]);
    for (std::int64_t i = 0; i < n; ++i) {
      Judged& judged = judged_[doubts[i].judged];
      const Entry entry{cases_.scores[i], cases_.wanted[i]};
      const Entry own{judged.score, cases_.catalogue.item_at(judged.position)};
      judged.above += entry.score > own.score;
      judged.tied += entry.score == own.score;
      judged.ahead += entry.score == own.score && ahead(cases_.items, entry, own);
    }
  }
  doubts_.clear();
}

void TruthCounts::write(const Case& c) const {
  for (std::int64_t i = c.first_judged; i < c.first_judged + c.n_judged; ++i) {
    const Judged& judged = judged_[i];
    cases_.answers.write_counts(judged.index, judged.above + thresholds_[i].above, judged.tied, judged.ahead);
  }
}

}  // namespace recsys
