// The fast pass over one block, and the second pass over what it cannot decide.
#include "block.hpp"

#include <algorithm>
#include <limits>

#include "bound.hpp"

namespace recsys {
namespace {

constexpr float kClosed = std::numeric_limits<float>::infinity();
constexpr std::size_t kMostDoubts = 1 << 16;

}  // namespace

void Block::run(std::int64_t first, std::int64_t stop, const Cancel& cancel) {
  begin(first, stop);
  sweep(cancel);
  if (cancel.asked()) return;
  settle_doubts();
  finished_.insert(finished_.end(), rows_.begin(), rows_.end());
  for (Row& row : finished_)
    if (row.slot >= 0 && !cases_[row.slot].closed) finish(row);
  finish_closed(cancel);
}

void Block::sweep(const Cancel& cancel) {
  Sweep s{};
  const int half = level_.lanes / 2;
  std::vector<float> pair_doubts(half);
  s.pair_doubts = pair_doubts.data();
  s.n_factors = n_terms_;
  s.room = room_;
  s.owner = this;
  s.full = &Block::on_full;
  s.doubtful = &Block::on_doubt;
  const auto step = !asked_.truth.indptr ? level_.sweep_lists : asked_.k ? level_.sweep_both : level_.sweep_counts;
  std::size_t next_zone = 1;
  // Where counting may stop early most truth items stop it very early.
  std::int64_t next_review = (asked_.deepest < INT64_MAX ? 96 : 256) / level_.lanes;
  for (std::int64_t p = 0; p < catalogue_.n_panels(); ++p) {
    if (next_zone < catalogue_.zones().size() && catalogue_.zones()[next_zone].first_panel == p) {
      zone_ = catalogue_.zones()[next_zone++];
      for (Row& row : rows_)
        if (row.slot >= 0) set_pass(row);
    }
    if (p == next_review) {
      next_review += std::min<std::int64_t>(std::max<std::int64_t>(256 / level_.lanes, p / 16), 16384 / level_.lanes);
      if (cancel.asked() || !review(p)) return;
    }
    s.users = packed_.data();
    s.panel = catalogue_.panel(p);
    s.doubts = catalogue_.doubts(p);
    for (int lane = 0; lane < half; ++lane) pair_doubts[lane] = std::max(s.doubts[lane], s.doubts[lane + half]);
    s.rows = rows_.data();
    s.tiles = tiles_.data();
    s.n_tiles = static_cast<std::int32_t>(tiles_.size());
    s.base = static_cast<std::int32_t>(p * level_.lanes);
    const std::int64_t left = catalogue_.size() - p * level_.lanes;
    s.valid = left >= 32 ? 0xffffffffu : (std::uint32_t{1} << left) - 1;
    if (level_.lanes < 32) s.valid &= (std::uint32_t{1} << level_.lanes) - 1;
    step(s);
  }
}

// Now and then: raise cuts, drop what is settled. False once nothing is left to do.
bool Block::review(std::int64_t panel) {
  std::size_t kept = 0;
  std::int64_t n_open = 0;
  for (const std::int32_t t : tiles_) {
    std::int64_t open = 0;
    for (std::int64_t r = 0; r < level_.rows; ++r) open += !settled(rows_[t * level_.rows + r], panel);
    n_open += open;
    if (open) tiles_[kept++] = t;
  }
  tiles_.resize(kept);
  const auto n_slots = static_cast<std::int64_t>(kept) * level_.rows;
  // Once early on, when cuts can be predicted, then whenever an eighth of the places has become idle.
  const bool early = !grouped_ && panel < catalogue_.n_panels() / 4;
  if (kept > 1 && (early || n_slots - n_open > std::max<std::int64_t>(level_.rows, n_slots / 8))) regroup(panel);
  return !tiles_.empty();
}

// Whether no item from this panel on can change the answers for the row.
bool Block::settled(Row& row, std::int64_t panel) {
  if (row.slot < 0) return true;
  Case& c = cases_[row.slot];
  if (c.closed) return true;
  if (asked_.k && row.n >= 2 * asked_.k) trim(row);
  const double bound = c.norm * catalogue_.norm_from(panel) * kUp + c.norm * zone_.doubt * kUp;
  resolve_truth(row, bound, panel);
  return row.n_truth == 0 && (!asked_.k || bound < c.cut);
}

// Items still to come score between -bound and bound: truth items outside have all their counts.
void Block::resolve_truth(Row& row, double bound, std::int64_t panel) {
  const Judged* judged = judged_.data() + (row.truth - thresholds_.data());
  // The lowest score has the most above it.
  for (; row.n_truth && judged->above + row.truth->above >= asked_.deepest; ++judged, ++row.truth) --row.n_truth;
  while (row.n_truth && judged[row.n_truth - 1].scaled > bound) --row.n_truth;
  if (!row.n_truth || judged->scaled >= -bound) return;
  const std::int32_t* end = row.excluded;
  while (*end != INT32_MAX) ++end;
  const std::int64_t left = catalogue_.size() - panel * level_.lanes - (end - row.excluded);
  for (; row.n_truth && judged->scaled < -bound; ++judged, ++row.truth, --row.n_truth) row.truth->above += left;
}

// The norm below which items cannot matter to this row; only speed depends on it.
double Block::predicted_cut(const Row& row) const {
  const Case& c = cases_[row.slot];
  double reach = asked_.k ? static_cast<double>(c.cut) : std::numeric_limits<double>::infinity();
  const Judged* judged = judged_.data() + (row.truth - thresholds_.data());
  for (std::int32_t t = 0; t < row.n_truth; ++t) reach = std::min(reach, std::abs(judged[t].scaled));
  return c.norm > 0 ? reach / c.norm : 0.0;
}

// Users that will stop at about the same item share a tile, so that the tile can stop there.
void Block::regroup(std::int64_t panel) {
  std::vector<std::pair<double, std::int32_t>> open;
  std::int64_t early = 0;
  const double half = catalogue_.norm_from((panel + catalogue_.n_panels()) / 2);
  for (const std::int32_t t : tiles_)
    for (std::int32_t i = t * level_.rows; i < (t + 1) * level_.rows; ++i)
      if (!settled(rows_[i], panel)) {
        open.emplace_back(-predicted_cut(rows_[i]), i);
        early += -open.back().first > half;
      }
  const auto n_slots = static_cast<std::int64_t>(tiles_.size()) * level_.rows;
  if (early * 8 < n_slots && n_slots - static_cast<std::int64_t>(open.size()) < n_slots / 8) return;
  grouped_ = true;
  std::sort(open.begin(), open.end());
  const std::int64_t n_tiles = (static_cast<std::int64_t>(open.size()) + level_.rows - 1) / level_.rows;
  std::vector<Row> rows(n_tiles * level_.rows, Row{kClosed, 0, 0, 0, &kNoneExcluded, nullptr, nullptr, nullptr, -1});
  repacked_.assign(rows.size() * n_terms_, 0.0f);
  for (std::size_t to = 0; to < open.size(); ++to) {
    const std::int64_t from = open[to].second;
    rows[to] = rows_[from];
    rows_[from].slot = -1;
    const float* source = packed_.data() + from / level_.rows * level_.rows * n_terms_ + from % level_.rows;
    float* target = repacked_.data() + to / level_.rows * level_.rows * n_terms_ + to % level_.rows;
    for (std::int64_t j = 0; j < n_terms_; ++j) target[j * level_.rows] = source[j * level_.rows];
  }
  finished_.insert(finished_.end(), rows_.begin(), rows_.end());
  rows_.swap(rows);
  packed_.swap(repacked_);
  tiles_.resize(n_tiles);
  for (std::int64_t t = 0; t < n_tiles; ++t) tiles_[t] = static_cast<std::int32_t>(t);
}

void Block::on_full(void* self, Row& row) {
  Block& block = *static_cast<Block*>(self);
  block.trim(row);
  if (row.n > block.asked_.k + (block.room_ - block.asked_.k) / 2) block.refine(row);
  if (row.n > block.asked_.k + (block.room_ - block.asked_.k) / 2) block.rescore(row);
}

void Block::trim(Row& row) {
  Case& c = cases_[row.slot];
  row.n = level_.lift(row.low, row.at, row.n, asked_.k, c.width, &c.cut);
  set_pass(row);
}

// Items with shorter vectors are known better than `width` says.
void Block::refine(Row& row) {
  const Case& c = cases_[row.slot];
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < row.n; ++i) {
    const double doubt = c.norm * catalogue_.doubt_at(row.at[i]) * kUp;
    if (row.low[i] + 2 * doubt * kUp < c.cut) continue;
    row.low[kept] = row.low[i];
    row.at[kept++] = row.at[i];
  }
  row.n = kept;
}

// Too many entries the fast scores cannot tell apart: exact scores can.
void Block::rescore(Row& row) {
  Case& c = cases_[row.slot];
  c.n_rescored += row.n;
  if (c.n_rescored > most_rescored_) return close(row);
  wanted_.resize(row.n);
  scores_.resize(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) wanted_[i] = catalogue_.item_at(row.at[i]);
  scorer_.score(user_of(c), wanted_.data(), row.n, scores_.data());
  std::vector<std::int32_t> order(row.n);
  for (std::int32_t i = 0; i < row.n; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return ahead(items_, {scores_[a], wanted_[a]}, {scores_[b], wanted_[b]});
  });
  order.resize(asked_.k);
  c.cut = std::max(c.cut, rounded_down(std::ldexp(scores_[order.back()], -c.exponent)));
  std::sort(order.begin(), order.end());
  for (std::int32_t i = 0; i < asked_.k; ++i) {
    row.low[i] = row.low[order[i]];
    row.at[i] = row.at[order[i]];
  }
  row.n = asked_.k;
  set_pass(row);
}

void Block::close(Row& row) {
  cases_[row.slot].closed = true;
  row.pass = kClosed;
  row.n = 0;
  row.n_truth = 0;
}

void Block::on_doubt(void* self, Row& row, std::int32_t truth, std::int32_t position) {
  Block& block = *static_cast<Block*>(self);
  if (++block.cases_[row.slot].n_rescored > block.most_rescored_) return block.close(row);
  block.doubts_.push_back({row.truth + truth - block.thresholds_.data(), position, row.slot});
  if (block.doubts_.size() > kMostDoubts) block.settle_doubts();
}

// Case by case, since several items of one user are scored in the time of one.
void Block::settle_doubts() {
  std::vector<std::int64_t> start(cases_.size() + 1, 0);
  for (const Doubt& doubt : doubts_) ++start[doubt.slot + 1];
  for (std::size_t slot = 0; slot < cases_.size(); ++slot) start[slot + 1] += start[slot];
  by_case_.resize(doubts_.size());
  for (const Doubt& doubt : doubts_) by_case_[start[doubt.slot]++] = doubt;
  std::int64_t first = 0;
  for (std::size_t slot = 0; slot < cases_.size(); first = start[slot++])
    if (first < start[slot] && !cases_[slot].closed)
      settle_doubts(cases_[slot], by_case_.data() + first, start[slot] - first);
  doubts_.clear();
}

void Block::settle_doubts(const Case& c, const Doubt* first, std::int64_t n) {
  wanted_.resize(n);
  scores_.resize(n);
  for (std::int64_t i = 0; i < n; ++i) wanted_[i] = catalogue_.item_at(first[i].position);
  scorer_.score(user_of(c), wanted_.data(), n, scores_.data());
  for (std::int64_t i = 0; i < n; ++i) {
    Judged& judged = judged_[first[i].judged];
    const Entry entry{scores_[i], wanted_[i]}, own{judged.score, catalogue_.item_at(judged.position)};
    judged.above += entry.score > own.score;
    judged.tied += entry.score == own.score;
    judged.ahead += entry.score == own.score && ahead(items_, entry, own);
  }
}

const double* Block::user_of(const Case& c) {
  const std::int64_t slot = &c - cases_.data();
  if (slot != user_in_hand_) asked_.users.read(c.id, user_.data());
  user_in_hand_ = slot;
  return user_.data();
}

}  // namespace recsys
