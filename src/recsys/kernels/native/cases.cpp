#include "cases.hpp"

#include <algorithm>
#include <limits>

#include "bound.hpp"

namespace recsys {

void Answers::write_list(std::int64_t id, std::int64_t k, const std::vector<Entry>& best) const {
  const std::int64_t n = std::min(static_cast<std::int64_t>(best.size()), k);
  list_lengths[id] = n;
  for (std::int64_t i = 0; i < n; ++i) {
    list_items[id * k + i] = best[i].item;
    list_scores[id * k + i] = best[i].score;
  }
}

Cases::Cases(const Asked& question, const Items& all_items, const Catalogue& visited, const Level& cpu,
             const Answers& results)
    : asked(question),
      items(all_items),
      catalogue(visited),
      level(cpu),
      answers(results),
      n_terms(all_items.n_terms()),
      most_rescored(std::max<std::int64_t>(512, visited.size() / 100)),
      scorer(all_items, cpu) {}

void Cases::add_user(std::int64_t id, Row& row, float* packed) {
  Case& c = of(row);
  const std::int64_t f = asked.users.n_columns;
  user.resize(f);
  scaled_.resize(n_terms);
  asked.users.read(id, user.data());
  user_in_hand = id;
  const int exponent = exponent_of(std::max(items.bias ? 1.0 : 0.0, largest_of(user.data(), f)));
  const Scale scale(exponent);
  for (std::int64_t j = 0; j < f; ++j) scaled_[j] = scale(user[j]);
  if (items.bias) scaled_[f] = scale(1.0);
  for (std::int64_t j = 0; j < n_terms; ++j) packed[j * level.rows] = static_cast<float>(scaled_[j]);
  c.id = id;
  const double norm = norm_above(scaled_.data(), n_terms);
  if (!(norm <= std::numeric_limits<double>::max())) throw_not_finite();
  c.norm = std::max(1.0, norm);
  row.length = rounded_up(c.norm);
  c.exponent = exponent + catalogue.exponent();
  c.cut = -std::numeric_limits<float>::infinity();
  c.closed = c.exponent < kLeastExponent;
  c.n_rescored = 0;
}

void Cases::add_seen(Case& c) {
  c.first_excluded = static_cast<std::int64_t>(excluded.size());
  if (asked.seen.indptr) {
    for (const std::int32_t* item = asked.seen.begin(c.id); item != asked.seen.end(c.id); ++item) {
      const std::int32_t position = catalogue.position_of(*item);
      if (position >= 0) excluded.push_back(position);
    }
    const auto begin = excluded.begin() + c.first_excluded;
    if (!catalogue.in_item_order()) std::sort(begin, excluded.end());
    excluded.erase(std::unique(begin, excluded.end()), excluded.end());
  }
  answers.n_candidates[c.id] = catalogue.size() - (static_cast<std::int64_t>(excluded.size()) - c.first_excluded);
}

bool Cases::may_rescore(Row& row, std::int64_t n) {
  Case& c = of(row);
  c.n_rescored += n;
  if (c.n_rescored <= most_rescored) return true;
  close(row);
  return false;
}

void Cases::close(Row& row) {
  of(row).closed = true;
  row.pass = std::numeric_limits<float>::infinity();
  row.n = 0;
  row.n_truth = 0;
}

void Cases::score(const Case& c) {
  if (c.id != user_in_hand) asked.users.read(c.id, user.data());
  user_in_hand = c.id;
  scores.resize(wanted.size());
  scorer.score(user.data(), wanted.data(), static_cast<std::int64_t>(wanted.size()), scores.data());
}

}  // namespace recsys
