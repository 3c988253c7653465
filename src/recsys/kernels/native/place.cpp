// One pass where rows stand grouped by ascending case, a counting sort otherwise: each row is then written
// once, straight to its place. Nothing is reported but that the quick way does not apply.
#include "place.hpp"

#include <algorithm>
#include <limits>

#include "portability.hpp"

namespace recsys {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();

bool rises(const std::int32_t* items, std::int64_t n) {
  bool falls = false;
  for (std::int64_t i = 1; i < n; ++i) falls |= items[i] <= items[i - 1];
  return !falls;
}

// A place is how many are smaller: for a few numbers that is quicker than a sort that has to guess. Equal
// ones meet in one place and leave the next as it was, so the caller still sees that something is amiss.
void sort_few(std::int32_t* items, std::int64_t n) {
  constexpr std::int64_t kFew = 24;
  if (n < 2) return;
  if (n > kFew) return std::sort(items, items + n);
  std::int32_t given[kFew];
  std::copy(items, items + n, given);
  std::fill(items, items + n, -1);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t place = 0;
    for (std::int64_t j = 0; j < n; ++j) place += given[j] < given[i];
    items[place] = given[i];
  }
}

std::int32_t highest_of(const std::int32_t* items, std::int64_t n) {
  std::int32_t highest = 0;
  for (std::int64_t i = 0; i < n; ++i) highest = std::max(highest, items[i]);
  return highest;
}

// The pass over rows that may stand in order already: borders of cases, narrowed items, and whether anything is
// out of order. Nothing in it branches on the data, so short cases cost no more than long ones.
template <Order Wanted>
class Pass {
 public:
  explicit Pass(const Table& table) : table_(table) {}

  bool in_order(std::int32_t* out, std::vector<std::int64_t>& starts) {
    std::int64_t n_starts = 0;
    for (std::int64_t start = 0; start < table_.n; start += kRowsPerLook) {
      const std::int64_t stop = std::min(table_.n, start + kRowsPerLook);
      if (starts.size() < static_cast<std::size_t>(n_starts + kRowsPerLook))
        starts.resize(std::max<std::size_t>(2 * starts.size(), static_cast<std::size_t>(n_starts + kRowsPerLook)));
      n_starts = look(start, stop, n_starts, out, starts.data());
      if (falls_ || bits_ >> 31 || off_) return false;
    }
    starts.resize(static_cast<std::size_t>(n_starts));
    return true;
  }

 private:
  static constexpr std::int64_t kRowsPerLook = 4096;

  std::int64_t look(std::int64_t start, std::int64_t stop, std::int64_t n_starts, std::int32_t* RECSYS_RESTRICT out,
                    std::int64_t* RECSYS_RESTRICT starts) {
    const std::int64_t *const cases = table_.cases, *const items = table_.items, *const ranks = table_.ranks;
    std::int64_t run = run_;
    std::uint64_t bits = 0, off = 0, falls = 0;
    if (start == 0) {  // the first row has none before it
      starts[n_starts++] = 0;
      bits = static_cast<std::uint64_t>(items[0]);
      out[0] = static_cast<std::int32_t>(items[0]);
      run = 1;
      if (Wanted == Order::by_rank) off = static_cast<std::uint64_t>(ranks[0] ^ 1);
      ++start;
    }
    for (std::int64_t i = start; i < stop; ++i) {
      const bool same = cases[i] == cases[i - 1];
      falls |= cases[i] < cases[i - 1];
      starts[n_starts] = i;
      n_starts += !same;
      if (Wanted == Order::by_rank) {
        run = same ? run + 1 : 1;
        off |= static_cast<std::uint64_t>(ranks[i] ^ run);
      }
      if (Wanted == Order::ascending) off |= same & (items[i] <= items[i - 1]);
    }
    for (std::int64_t i = start; i < stop; ++i) {
      bits |= static_cast<std::uint64_t>(items[i]);
      out[i] = static_cast<std::int32_t>(items[i]);
    }
    run_ = run, bits_ |= bits, off_ |= off, falls_ |= falls;
    return n_starts;
  }

  const Table& table_;
  std::int64_t run_ = 0;
  std::uint64_t bits_ = 0, off_ = 0, falls_ = 0;
};

bool in_order(const Table& table, Order order, std::int32_t* out, std::vector<std::int64_t>& starts) {
  if (order == Order::by_rank) return Pass<Order::by_rank>(table).in_order(out, starts);
  if (order == Order::ascending) return Pass<Order::ascending>(table).in_order(out, starts);
  return Pass<Order::given>(table).in_order(out, starts);
}

bool place_grouped(const Table& table, Order order, std::int32_t* out, Placed& placed) {
  if (!in_order(table, order, out, placed.indptr)) return false;
  placed.ids.reserve(placed.indptr.size());
  for (const std::int64_t start : placed.indptr) placed.ids.push_back(table.cases[start]);
  placed.indptr.push_back(table.n);
  placed.highest = highest_of(out, table.n);
  return true;
}

class Scatter {
 public:
  Scatter(const Table& table, std::int64_t limit) : table_(table) {
    std::int64_t high = table.cases[0];
    std::uint64_t bits = 0;
    low_ = high;
    for (std::int64_t i = 0; i < table.n; ++i) {
      low_ = std::min(low_, table.cases[i]);
      high = std::max(high, table.cases[i]);
      bits |= static_cast<std::uint64_t>(table.items[i]);
    }
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low_);
    usable_ = span < static_cast<std::uint64_t>(limit) && !(bits >> 31);
    if (!usable_) return;
    starts_.assign(span + 2, 0);
    for (std::int64_t i = 0; i < table.n; ++i) ++starts_[table.cases[i] - low_ + 1];
    for (std::size_t c = 1; c < starts_.size(); ++c) starts_[c] += starts_[c - 1];
  }

  bool usable() const { return usable_; }

  // False where two rows want one place, or a place lies beyond the case's last.
  bool by_rank(std::int32_t* out) const {
    std::fill(out, out + table_.n, -1);
    bool outside = false;
    for (std::int64_t i = 0; i < table_.n; ++i) {
      const std::int64_t c = table_.cases[i] - low_, start = starts_[c], size = starts_[c + 1] - start;
      const auto place = static_cast<std::uint64_t>(table_.ranks[i]) - 1;
      const bool inside = place < static_cast<std::uint64_t>(size);
      outside |= !inside;
      out[start + (inside ? static_cast<std::int64_t>(place) : 0)] = static_cast<std::int32_t>(table_.items[i]);
    }
    // As many rows as places: if none is empty, each was filled once.
    return !outside && std::find(out, out + table_.n, -1) == out + table_.n;
  }

  void as_given(std::int32_t* out) const {
    std::vector<std::int32_t> next(starts_.begin(), starts_.end() - 1);
    for (std::int64_t i = 0; i < table_.n; ++i)
      out[next[table_.cases[i] - low_]++] = static_cast<std::int32_t>(table_.items[i]);
  }

  bool ascending(std::int32_t* out) const {
    as_given(out);
    for (std::size_t c = 0; c + 1 < starts_.size(); ++c) {
      sort_few(out + starts_[c], starts_[c + 1] - starts_[c]);
      if (!rises(out + starts_[c], starts_[c + 1] - starts_[c])) return false;
    }
    return true;
  }

  void name_cases(Placed& placed) const {
    for (std::size_t c = 0; c + 1 < starts_.size(); ++c) {
      if (starts_[c] == starts_[c + 1]) continue;
      placed.ids.push_back(low_ + static_cast<std::int64_t>(c));
      placed.indptr.push_back(starts_[c]);
    }
    placed.indptr.push_back(table_.n);
  }

 private:
  const Table& table_;
  std::int64_t low_ = 0;
  bool usable_ = false;
  std::vector<std::int32_t> starts_;
};

bool place_scattered(const Table& table, Order order, std::int64_t limit, std::int32_t* out, Placed& placed) {
  const Scatter scatter(table, limit);
  if (!scatter.usable()) return false;
  if (order == Order::by_rank && !scatter.by_rank(out)) return false;
  if (order == Order::ascending && !scatter.ascending(out)) return false;
  if (order == Order::given) scatter.as_given(out);
  scatter.name_cases(placed);
  placed.highest = highest_of(out, table.n);
  return true;
}

}  // namespace

Placed place(const Table& table, Order order, std::int64_t limit, std::int32_t* out) {
  Placed placed;
  if (table.n == 0 || table.n > kMostRows) return placed;
  placed.done = place_grouped(table, order, out, placed);
  if (!placed.done) {
    placed = Placed{};
    placed.done = place_scattered(table, order, limit, out, placed);
  }
  placed.done = placed.done && placed.highest < limit;
  return placed;
}

}  // namespace recsys
