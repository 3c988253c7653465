// How a block ends: exact scores for what is listed, float64 for the cases that were given up.
#include <algorithm>
#include <utility>

#include "block.hpp"
#include "bound.hpp"

namespace recsys {

// The truth items of a case that are candidates, each once: equal ones stand side by side.
template <class Take>
void Block::each_judged(const Case& c, const Take& take) const {
  const Judged* const first = judged_.data() + c.first_judged;
  for (std::int64_t i = 0; i < c.n_judged; ++i)
    if (i == 0 || first[i].position != first[i - 1].position)
      take({first[i].score, catalogue_.item_at(first[i].position)});
}

std::vector<Entry> Block::judged_entries(const Case& c) const {
  std::vector<Entry> entries;
  entries.reserve(c.n_judged);
  for (std::int64_t i = c.first_judged; i < c.first_judged + c.n_judged; ++i)
    entries.push_back({judged_[i].score, catalogue_.item_at(judged_[i].position)});
  return entries;
}

void Block::finish(const Row& last) {
  Row row = last;
  const Case& c = cases_[row.slot];
  for (std::int64_t i = c.first_judged; i < c.first_judged + c.n_judged; ++i) {
    const Judged& judged = judged_[i];
    answers_.above[judged.index] = judged.above + thresholds_[i].above;
    answers_.tied[judged.index] = judged.tied;
    answers_.ahead[judged.index] = judged.ahead;
  }
  if (!asked_.k) return;
  trim(row);
  if (row.n > asked_.k + 8) refine(row);
  wanted_.resize(row.n);
  scores_.resize(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) wanted_[i] = catalogue_.item_at(row.at[i]);
  scorer_.score(user_of(c), wanted_.data(), row.n, scores_.data());
  each_judged(c, [this](const Entry& entry) {
    wanted_.push_back(entry.item);
    scores_.push_back(entry.score);
  });
  in_list_order();
  write(c, entries_, std::min<std::int64_t>(static_cast<std::int64_t>(entries_.size()), asked_.k));
}

// wanted_ and scores_ into entries_. A place is how many score higher: for a list that is quicker than a sort
// that has to guess. Equal scores meet in one place, and only they need the sort.
void Block::in_list_order() {
  constexpr std::size_t kFew = 64;
  const std::size_t n = wanted_.size();
  entries_.assign(n, Entry{0, -1});
  bool distinct = n <= kFew;
  for (std::size_t i = 0; distinct && i < n; ++i) {
    std::int64_t place = 0;
    for (std::size_t j = 0; j < n; ++j) place += scores_[j] > scores_[i];
    distinct = entries_[place].item < 0;
    entries_[place] = {scores_[i], wanted_[i]};
  }
  if (distinct) return;
  for (std::size_t i = 0; i < n; ++i) entries_[i] = {scores_[i], wanted_[i]};
  std::sort(entries_.begin(), entries_.end(), [this](const Entry& a, const Entry& b) { return ahead(items_, a, b); });
}

void Block::write(const Case& c, const std::vector<Entry>& best, std::int64_t n) {
  answers_.list_lengths[c.id] = n;
  for (std::int64_t i = 0; i < n; ++i) {
    answers_.list_items[c.id * asked_.k + i] = best[i].item;
    answers_.list_scores[c.id * asked_.k + i] = best[i].score;
  }
}

void Block::finish_closed(const Cancel& cancel) {
  std::vector<const Case*> closed;
  for (const Case& c : cases_)
    if (c.closed) closed.push_back(&c);
  if (closed.empty()) return;
  std::vector<double> rows(closed.size() * asked_.users.n_columns);
  std::vector<const double*> users;
  std::vector<const std::int32_t*> excluded;
  std::vector<Best> best(closed.size(), Best(items_, asked_.k));
  std::vector<Tally> tallies(closed.size(), Tally(items_));
  for (std::size_t u = 0; u < closed.size(); ++u) {
    double* const row = rows.data() + u * asked_.users.n_columns;
    asked_.users.read(closed[u]->id, row);
    users.push_back(row);
    excluded.push_back(excluded_.data() + closed[u]->first_excluded);
    count_judged(*closed[u]);
    tallies[u].start(judged_entries(*closed[u]));
    each_judged(*closed[u], [&](const Entry& entry) {
      if (asked_.k) best[u].offer(entry);
    });
  }
  ExactPass(items_, catalogue_, level_).run(users, excluded, cancel, [&](std::size_t u, const Entry& entry) {
    if (asked_.k) best[u].offer(entry);
    if (closed[u]->n_judged) tallies[u].add(entry);
  });
  for (std::size_t u = 0; u < closed.size(); ++u) {
    tallies[u].finish([&](std::size_t i, std::int64_t above, std::int64_t tied, std::int64_t before) {
      const Judged& judged = judged_[closed[u]->first_judged + i];
      answers_.above[judged.index] = judged.above + above;
      answers_.tied[judged.index] = judged.tied + tied;
      answers_.ahead[judged.index] = judged.ahead + before;
    });
    if (asked_.k) {
      const std::vector<Entry>& list = best[u].sorted();
      write(*closed[u], list, static_cast<std::int64_t>(list.size()));
    }
  }
}

void run_eligible(const Asked& asked, const Items& items, const Level& level, const Answers& answers,
                  std::int64_t first, std::int64_t stop, const Cancel& cancel) {
  Scorer scorer(items, level);
  Tally tally(items);
  std::vector<double> user(asked.users.n_columns), scores, truth_scores;
  std::vector<std::int32_t> wanted;
  std::vector<std::int64_t> judged;
  for (std::int64_t c = first; c < stop && !cancel.asked(); ++c) {
    asked.users.read(c, user.data());
    wanted.clear();
    const std::int32_t* seen = asked.seen.indptr ? asked.seen.begin(c) : nullptr;
    const std::int32_t* const seen_end = asked.seen.indptr ? asked.seen.end(c) : nullptr;
    for (const std::int32_t* item = asked.eligible.begin(c); item != asked.eligible.end(c); ++item) {
      while (seen != seen_end && *seen < *item) ++seen;
      const bool is_seen = seen != seen_end && *seen == *item, is_double = !wanted.empty() && wanted.back() == *item;
      if (!is_seen && !is_double && !(items.never && items.never[*item])) wanted.push_back(*item);
    }
    const auto n = static_cast<std::int64_t>(wanted.size());
    answers.n_candidates[c] = n;
    scores.resize(n);
    scorer.score(user.data(), wanted.data(), n, scores.data());
    if (asked.k) {
      Best best(items, asked.k);
      for (std::int64_t i = 0; i < n; ++i) best.offer({scores[i], wanted[i]});
      const std::vector<Entry>& list = best.sorted();
      answers.list_lengths[c] = static_cast<std::int64_t>(list.size());
      for (std::size_t i = 0; i < list.size(); ++i) {
        answers.list_items[c * asked.k + i] = list[i].item;
        answers.list_scores[c * asked.k + i] = list[i].score;
      }
    }
    if (!asked.truth.indptr) continue;
    const std::int64_t start = asked.truth.indptr[c], n_truth = asked.truth.size(c);
    truth_scores.resize(n_truth);
    scorer.score(user.data(), asked.truth.begin(c), n_truth, truth_scores.data());
    judged.clear();
    for (std::int64_t t = start; t < start + n_truth; ++t) {
      answers.truth_scores[t] = truth_scores[t - start];
      answers.above[t] = -1;
      answers.tied[t] = answers.ahead[t] = 0;
      if (std::binary_search(wanted.begin(), wanted.end(), asked.truth.items[t])) judged.push_back(t);
    }
    const auto own = [&](std::int64_t t) { return Entry{answers.truth_scores[t], asked.truth.items[t]}; };
    std::sort(judged.begin(), judged.end(), [&](std::int64_t a, std::int64_t b) {
      const Entry one = own(a), other = own(b);
      return one.score != other.score ? one.score < other.score : items.before(one.item, other.item);
    });
    std::vector<Entry> entries;
    entries.reserve(judged.size());
    for (const std::int64_t t : judged) entries.push_back(own(t));
    tally.start(std::move(entries));
    for (std::int64_t i = 0; i < n && !judged.empty(); ++i) tally.add({scores[i], wanted[i]});
    tally.finish([&](std::size_t i, std::int64_t above, std::int64_t tied, std::int64_t before) {
      answers.above[judged[i]] = above;
      answers.tied[judged[i]] = tied;
      answers.ahead[judged[i]] = before;
    });
  }
}

}  // namespace recsys
