// How a block begins: users packed, excluded items in visiting order, truth scored exactly.
#include <algorithm>
#include <limits>

#include "block.hpp"
#include "bound.hpp"

namespace recsys {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity(), kClosed = std::numeric_limits<float>::infinity();

// Entries a buffer takes before it is cut back to about k; there are never more than items.
std::int32_t room_for(std::int64_t k, const Items& items) {
  return static_cast<std::int32_t>(std::max<std::int64_t>(128, std::min(2 * k + 64, items.factors.n_rows)));
}

}  // namespace

Block::Block(const Asked& asked, const Items& items, const Catalogue& catalogue, const Level& level,
             const Answers& answers)
    : asked_(asked),
      items_(items),
      catalogue_(catalogue),
      level_(level),
      answers_(answers),
      n_terms_(items.n_terms()),
      most_rescored_(std::max<std::int64_t>(512, catalogue.size() / 100)),
      room_(asked.k ? room_for(asked.k, items) : 0),
      // One more panel, and a whole vector that a packed store may write beyond it.
      capacity_(asked.k ? room_ + level.lanes + 16 : 0),
      scorer_(items, level) {}

std::int64_t Block::bytes_per_case(const Asked& asked, const Items& items, const Level& level) {
  // The buffer, the list of a case that was given up, its factors and its row.
  const std::int64_t buffer = asked.k ? room_for(asked.k, items) + level.lanes + 16 : 0;
  return 8 * buffer + 16 * std::int64_t{asked.k} + 8 * items.n_terms() + 256;
}

void Block::begin(std::int64_t first, std::int64_t stop) {
  const std::int64_t n = stop - first, n_tiles = (n + level_.rows - 1) / level_.rows;
  rows_.assign(n_tiles * level_.rows, Row{kClosed, 0, 0, 0, &kNoneExcluded, nullptr, nullptr, nullptr, -1});
  cases_.resize(n);
  finished_.clear();
  excluded_.clear();
  judged_.clear();
  doubts_.clear();
  // Reserved as a whole: growing step by step would need the room twice.
  const auto entries = [&](const Rows& rows) { return rows.indptr ? rows.indptr[stop] - rows.indptr[first] : 0; };
  excluded_.reserve(entries(asked_.seen) + entries(asked_.truth) + n);
  judged_.reserve(entries(asked_.truth));
  packed_.assign(n_tiles * level_.rows * n_terms_, 0.0f);
  low_.resize(n * capacity_);
  at_.resize(n * capacity_);
  user_in_hand_ = -1;
  grouped_ = false;
  ids_.resize(n);
  for (std::int64_t slot = 0; slot < n; ++slot) ids_[slot] = first + slot;
  // Cases with equally many truth items side by side: the length of the counting loop is then predictable.
  if (asked_.truth.indptr)
    std::stable_sort(ids_.begin(), ids_.end(),
                     [this](std::int64_t a, std::int64_t b) { return asked_.truth.size(a) < asked_.truth.size(b); });
  for (std::int64_t slot = 0; slot < n; ++slot) {
    Row& row = rows_[slot];
    // The order of the cases is not that of memory, so nobody fetches ahead unasked.
    if (slot + 1 < n) asked_.users.fetch(ids_[slot + 1]);
    row.slot = static_cast<std::int32_t>(slot);
    row.low = low_.data() + slot * capacity_;
    row.at = at_.data() + slot * capacity_;
    add_user(ids_[slot], row, packed_.data() + slot / level_.rows * level_.rows * n_terms_ + slot % level_.rows);
    add_seen(cases_[slot]);
    add_truth(cases_[slot]);
    excluded_.push_back(kNoneExcluded);
  }
  // Pointers only now: the vectors have stopped growing.
  thresholds_.resize(judged_.size());
  // Adding 0 turns -0, which a tiny negative score rounds to, into +0: differences are told by their sign.
  for (std::size_t i = 0; i < judged_.size(); ++i) {
    thresholds_[i].score = static_cast<float>(judged_[i].scaled) + 0.0f;
    thresholds_[i].above = 0;
  }
  for (std::int64_t slot = 0; slot < n; ++slot) {
    Row& row = rows_[slot];
    const Case& c = cases_[slot];
    row.excluded = excluded_.data() + c.first_excluded;
    row.truth = thresholds_.data() + c.first_judged;
    row.n_truth = static_cast<std::int32_t>(c.n_judged);
    if (c.closed) close(row);
  }
  zone_ = catalogue_.zones().empty() ? Zone{0, 0.0} : catalogue_.zones().front();
  for (Row& row : rows_)
    if (row.slot >= 0) {
      Case& c = cases_[row.slot];
      c.width = rounded_up(2 * kUp * c.norm * zone_.doubt);
      set_pass(row);
    }
  tiles_.resize(n_tiles);
  for (std::int64_t t = 0; t < n_tiles; ++t) tiles_[t] = static_cast<std::int32_t>(t);
}

void Block::add_user(std::int64_t id, Row& row, float* packed) {
  Case& c = cases_[row.slot];
  const std::int64_t f = asked_.users.n_columns;
  user_.resize(f);
  scaled_.resize(n_terms_);
  asked_.users.read(id, user_.data());
  user_in_hand_ = row.slot;
  const int exponent = exponent_of(std::max(items_.bias ? 1.0 : 0.0, largest_of(user_.data(), f)));
  const Scale scale(exponent);
  for (std::int64_t j = 0; j < f; ++j) scaled_[j] = scale(user_[j]);
  if (items_.bias) scaled_[f] = scale(1.0);
  for (std::int64_t j = 0; j < n_terms_; ++j) packed[j * level_.rows] = static_cast<float>(scaled_[j]);
  c.id = id;
  const double norm = norm_above(scaled_.data(), n_terms_);
  if (!(norm <= std::numeric_limits<double>::max())) throw_not_finite();
  c.norm = std::max(1.0, norm);
  row.length = rounded_up(c.norm);
  c.exponent = exponent + catalogue_.exponent();
  c.cut = kNothing;
  c.closed = c.exponent < kLeastExponent;
  c.n_rescored = 0;
}

void Block::add_seen(Case& c) {
  c.first_excluded = static_cast<std::int64_t>(excluded_.size());
  if (asked_.seen.indptr) {
    for (const std::int32_t* item = asked_.seen.begin(c.id); item != asked_.seen.end(c.id); ++item) {
      const std::int32_t position = catalogue_.position_of(*item);
      if (position >= 0) excluded_.push_back(position);
    }
    const auto begin = excluded_.begin() + c.first_excluded;
    if (!catalogue_.in_item_order()) std::sort(begin, excluded_.end());
    excluded_.erase(std::unique(begin, excluded_.end()), excluded_.end());
  }
  answers_.n_candidates[c.id] = catalogue_.size() - (static_cast<std::int64_t>(excluded_.size()) - c.first_excluded);
}

void Block::add_truth(Case& c) {
  c.first_judged = static_cast<std::int64_t>(judged_.size());
  c.n_judged = 0;
  if (!asked_.truth.indptr) return;
  const std::int64_t n = asked_.truth.size(c.id), start = asked_.truth.indptr[c.id];
  scores_.resize(n);
  scorer_.score(user_.data(), asked_.truth.begin(c.id), n, scores_.data());
  found_.clear();
  for (std::int64_t t = 0; t < n; ++t) {
    answers_.truth_scores[start + t] = scores_[t];
    answers_.above[start + t] = -1;
    answers_.tied[start + t] = 0;
    answers_.ahead[start + t] = 0;
    const std::int32_t position = catalogue_.position_of(asked_.truth.items[start + t]);
    const bool is_seen = std::binary_search(excluded_.begin() + c.first_excluded, excluded_.end(), position);
    if (position >= 0 && !is_seen) found_.push_back({scores_[t], start + t, position});
  }
  add_judged_positions(c);
  std::sort(found_.begin(), found_.end(), [this](const Found& a, const Found& b) {
    if (a.score != b.score) return a.score < b.score;
    return items_.before(catalogue_.item_at(a.position), catalogue_.item_at(b.position));
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
  count_judged(c);
}

// Truth items among themselves: their scores are exact already. An item named twice is one candidate.
void Block::count_judged(const Case& c) {
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

// The sweep passes over truth items: it could only find again what is known.
void Block::add_judged_positions(const Case& c) {
  wanted_.clear();
  for (const Found& found : found_) wanted_.push_back(found.position);
  if (!std::is_sorted(wanted_.begin(), wanted_.end())) std::sort(wanted_.begin(), wanted_.end());
  wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
  auto from = static_cast<std::int64_t>(excluded_.size()) - 1;
  auto left = static_cast<std::int64_t>(wanted_.size()) - 1;
  excluded_.resize(excluded_.size() + wanted_.size());
  for (auto to = static_cast<std::int64_t>(excluded_.size()) - 1; left >= 0; --to) {
    const bool is_seen = from >= c.first_excluded && excluded_[from] > wanted_[left];
    excluded_[to] = is_seen ? excluded_[from--] : wanted_[left--];
  }
}

// The largest error within the zone decides what may still reach the list.
void Block::set_pass(Row& row) {
  const Case& c = cases_[row.slot];
  row.pass = asked_.k && !c.closed ? rounded_down(c.cut - kUp * c.norm * zone_.doubt) : kClosed;
}

}  // namespace recsys
