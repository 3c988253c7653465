#include "block.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "bound.hpp"

namespace recsys {
namespace {

// A place of a tile without a case.
constexpr Row kEmpty{std::numeric_limits<float>::infinity(), 0, 0, 0, &kNoneExcluded, nullptr, nullptr, nullptr, -1};

}  // namespace

std::int64_t Block::bytes_per_case(const Asked& asked, const Items& items, const Level& level) {
  // The buffer, the list of a case that was given up, its factors and its row.
  const std::int64_t buffer = BestLists::capacity_for(asked, items, level);
  return 8 * buffer + 16 * std::int64_t{asked.k} + 8 * items.n_terms() + 256;
}

void Block::run(std::int64_t first, std::int64_t stop, const Cancel& cancel) {
  begin(first, stop);
  sweep(cancel);
  if (cancel.asked()) return;
  counts_.settle_doubts();
  finished_.insert(finished_.end(), rows_.begin(), rows_.end());
  for (const Row& row : finished_) {
    if (row.slot < 0 || cases_.of(row).closed) continue;
    counts_.write(cases_.of(row));
    if (cases_.asked.k) lists_.write(row, counts_);
  }
  finish_closed(cancel);
}

// Users packed, excluded items in visiting order, truth scored exactly.
void Block::begin(std::int64_t first, std::int64_t stop) {
  const Asked& asked = cases_.asked;
  const std::int64_t n = stop - first, in_tile = cases_.level.rows, n_tiles = (n + in_tile - 1) / in_tile;
  rows_.assign(n_tiles * in_tile, kEmpty);
  finished_.clear();
  packed_.assign(n_tiles * in_tile * cases_.n_terms, 0.0f);
  cases_.all.resize(n);
  cases_.excluded.clear();
  lists_.begin(n);
  // Reserved as a whole: growing step by step would need the room twice.
  const auto entries = [&](const Rows& rows) { return rows.indptr ? rows.indptr[stop] - rows.indptr[first] : 0; };
  cases_.excluded.reserve(entries(asked.seen) + entries(asked.truth) + n);
  counts_.begin(entries(asked.truth));
  std::vector<std::int64_t> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  // Cases with equally many truth items side by side: the length of the counting loop is then predictable.
  if (asked.truth.indptr)
    std::stable_sort(ids.begin(), ids.end(),
                     [&](std::int64_t a, std::int64_t b) { return asked.truth.size(a) < asked.truth.size(b); });
  for (std::int64_t slot = 0; slot < n; ++slot) {
    Row& row = rows_[slot];
    // The order of the cases is not that of memory, so the processor does not fetch ahead by itself.
    if (slot + 1 < n) asked.users.fetch(ids[slot + 1]);
    row.slot = static_cast<std::int32_t>(slot);
    lists_.attach(row);
    cases_.add_user(ids[slot], row, factors_of(packed_, slot));
    cases_.add_seen(cases_.all[slot]);
    counts_.add(cases_.all[slot]);
    cases_.excluded.push_back(kNoneExcluded);
  }
  // Pointers only now: the vectors have stopped growing.
  counts_.set_thresholds();
  cases_.zone = cases_.catalogue.zones().empty() ? Zone{0, 0.0} : cases_.catalogue.zones().front();
  for (std::int64_t slot = 0; slot < n; ++slot) {
    Row& row = rows_[slot];
    Case& c = cases_.all[slot];
    row.excluded = cases_.excluded.data() + c.first_excluded;
    counts_.attach(row);
    if (c.closed) cases_.close(row);
    c.width = rounded_up(2 * kUp * c.norm * cases_.zone.doubt);
    lists_.set_pass(row);
  }
  set_tiles(n_tiles);
  grouped_ = false;
}

void Block::set_tiles(std::int64_t n_tiles) {
  tiles_.resize(n_tiles);
  std::iota(tiles_.begin(), tiles_.end(), 0);
}

// Tiles of users are stored factor by factor.
float* Block::factors_of(std::vector<float>& packed, std::int64_t row) const {
  const std::int64_t in_tile = cases_.level.rows;
  return packed.data() + row / in_tile * in_tile * cases_.n_terms + row % in_tile;
}

void Block::sweep(const Cancel& cancel) {
  const Asked& asked = cases_.asked;
  const Catalogue& catalogue = cases_.catalogue;
  const Level& level = cases_.level;
  Sweep s{};
  const int half = level.lanes / 2;
  std::vector<float> pair_doubts(half);
  s.pair_doubts = pair_doubts.data();
  s.n_factors = cases_.n_terms;
  s.room = lists_.room();
  s.owner = this;
  s.full = [](void* self, Row& row) { static_cast<Block*>(self)->lists_.on_full(row); };
  s.doubtful = [](void* self, Row& row, std::int32_t truth, std::int32_t position) {
    static_cast<Block*>(self)->counts_.on_doubt(row, truth, position);
  };
  const auto step = !asked.truth.indptr ? level.sweep_lists : asked.k ? level.sweep_both : level.sweep_counts;
  std::size_t next_zone = 1;
  // Where counting may stop early most truth items stop it very early.
  std::int64_t next_review = (asked.deepest < INT64_MAX ? 96 : 256) / level.lanes;
  for (std::int64_t p = 0; p < catalogue.n_panels(); ++p) {
    if (next_zone < catalogue.zones().size() && catalogue.zones()[next_zone].first_panel == p) {
      cases_.zone = catalogue.zones()[next_zone++];
      for (Row& row : rows_)
        if (row.slot >= 0) lists_.set_pass(row);
    }
    if (p == next_review) {
      next_review += std::min<std::int64_t>(std::max<std::int64_t>(256 / level.lanes, p / 16), 16384 / level.lanes);
      if (cancel.asked() || !review(p)) return;
    }
    s.users = packed_.data();
    s.panel = catalogue.panel(p);
    s.doubts = catalogue.doubts(p);
    for (int lane = 0; lane < half; ++lane) pair_doubts[lane] = std::max(s.doubts[lane], s.doubts[lane + half]);
    s.rows = rows_.data();
    s.tiles = tiles_.data();
    s.n_tiles = static_cast<std::int32_t>(tiles_.size());
    s.base = static_cast<std::int32_t>(p * level.lanes);
    const std::int64_t left = catalogue.size() - p * level.lanes;
    s.valid = left >= 32 ? 0xffffffffu : (std::uint32_t{1} << left) - 1;
    if (level.lanes < 32) s.valid &= (std::uint32_t{1} << level.lanes) - 1;
    step(s);
  }
}

// Now and then: raise cuts, drop finished rows. False once nothing is left to do.
bool Block::review(std::int64_t panel) {
  const std::int64_t in_tile = cases_.level.rows;
  std::size_t kept = 0;
  std::int64_t n_open = 0;
  for (const std::int32_t t : tiles_) {
    std::int64_t open = 0;
    for (std::int64_t r = 0; r < in_tile; ++r) open += !is_final(rows_[t * in_tile + r], panel);
    n_open += open;
    if (open) tiles_[kept++] = t;
  }
  tiles_.resize(kept);
  const auto n_slots = static_cast<std::int64_t>(kept) * in_tile;
  // Once early on, when cuts can be predicted, then whenever an eighth of the places has become idle.
  const bool early = !grouped_ && panel < cases_.catalogue.n_panels() / 4;
  if (kept > 1 && (early || n_slots - n_open > std::max<std::int64_t>(in_tile, n_slots / 8))) regroup(panel);
  return !tiles_.empty();
}

// Whether no item from this panel on can change the answers for the row.
bool Block::is_final(Row& row, std::int64_t panel) {
  if (row.slot < 0) return true;
  const Case& c = cases_.of(row);
  if (c.closed) return true;
  const std::int32_t k = cases_.asked.k;
  if (k && row.n >= 2 * k) lists_.trim(row);
  const double bound = c.norm * cases_.catalogue.norm_from(panel) * kUp + c.norm * cases_.zone.doubt * kUp;
  counts_.resolve(row, bound, panel);
  return row.n_truth == 0 && (!k || bound < c.cut);
}

// Users that will stop at about the same item share a tile, so that the tile can stop there.
void Block::regroup(std::int64_t panel) {
  const std::int64_t in_tile = cases_.level.rows;
  std::vector<std::pair<double, std::int64_t>> open;
  std::int64_t early = 0;
  const double half = cases_.catalogue.norm_from((panel + cases_.catalogue.n_panels()) / 2);
  for (const std::int32_t t : tiles_)
    for (std::int64_t i = t * in_tile; i < (t + 1) * in_tile; ++i) {
      if (is_final(rows_[i], panel)) continue;
      // The norm below which items cannot matter to this row; only speed depends on it.
      const Case& c = cases_.of(rows_[i]);
      const double cut = cases_.asked.k ? static_cast<double>(c.cut) : std::numeric_limits<double>::infinity();
      open.emplace_back(-(counts_.nearest(rows_[i], cut) / c.norm), i);
      early += -open.back().first > half;
    }
  const auto n_slots = static_cast<std::int64_t>(tiles_.size()) * in_tile;
  if (early * 8 < n_slots && n_slots - static_cast<std::int64_t>(open.size()) < n_slots / 8) return;
  grouped_ = true;
  std::sort(open.begin(), open.end());
  const std::int64_t n_tiles = (static_cast<std::int64_t>(open.size()) + in_tile - 1) / in_tile;
  std::vector<Row> rows(n_tiles * in_tile, kEmpty);
  std::vector<float> packed(rows.size() * cases_.n_terms, 0.0f);
  for (std::size_t to = 0; to < open.size(); ++to) {
    const std::int64_t from = open[to].second;
    rows[to] = rows_[from];
    rows_[from].slot = -1;
    const float* const source = factors_of(packed_, from);
    float* const target = factors_of(packed, static_cast<std::int64_t>(to));
    for (std::int64_t j = 0; j < cases_.n_terms; ++j) target[j * in_tile] = source[j * in_tile];
  }
  finished_.insert(finished_.end(), rows_.begin(), rows_.end());
  rows_.swap(rows);
  packed_.swap(packed);
  set_tiles(n_tiles);
}

// Cases that were given up: every candidate in float64.
void Block::finish_closed(const Cancel& cancel) {
  const Asked& asked = cases_.asked;
  std::vector<const Case*> closed;
  for (const Case& c : cases_.all)
    if (c.closed) closed.push_back(&c);
  if (closed.empty()) return;
  std::vector<double> rows(closed.size() * asked.users.n_columns);
  std::vector<const double*> users;
  std::vector<const std::int32_t*> excluded;
  std::vector<Best> best(closed.size(), Best(cases_.items, asked.k));
  std::vector<Tally> tallies(closed.size(), Tally(cases_.items));
  for (std::size_t u = 0; u < closed.size(); ++u) {
    const Case& c = *closed[u];
    double* const row = rows.data() + u * asked.users.n_columns;
    asked.users.read(c.id, row);
    users.push_back(row);
    excluded.push_back(cases_.excluded.data() + c.first_excluded);
    counts_.count_among(c);
    std::vector<Entry> judged;
    judged.reserve(c.n_judged);
    for (const Judged* own = counts_.of(c); own != counts_.of(c) + c.n_judged; ++own)
      judged.push_back({own->score, cases_.catalogue.item_at(own->position)});
    tallies[u].start(std::move(judged));
    if (asked.k) counts_.each(c, [&](const Entry& entry) { best[u].offer(entry); });
  }
  ExactPass(cases_.items, cases_.catalogue, cases_.level)
      .run(users, excluded, cancel, [&](std::size_t u, const Entry& entry) {
        if (asked.k) best[u].offer(entry);
        if (closed[u]->n_judged) tallies[u].add(entry);
      });
  for (std::size_t u = 0; u < closed.size(); ++u) {
    tallies[u].finish([&](std::size_t i, std::int64_t above, std::int64_t tied, std::int64_t before) {
      const Judged& judged = counts_.of(*closed[u])[i];
      cases_.answers.write_counts(judged.index, judged.above + above, judged.tied + tied, judged.ahead + before);
    });
    if (asked.k) cases_.answers.write_list(closed[u]->id, asked.k, best[u].sorted());
  }
}

}  // namespace recsys
