// One pass where rows are grouped by ascending case, a counting sort otherwise: each row is then written
// once, straight to its place. Nothing is reported but that the quick way does not apply.
#include "place.hpp"

#include <algorithm>
#include <cstring>
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

// The rows in their own order.
class Grouped {
 public:
  Grouped(const RowTable& table, Placed& placed) : table_(table), placed_(placed) {}

  // False where anything is out of order.
  bool place(Order order, const Level& level, std::int32_t* out) {
    if (table_.items[0] >> 31 || (order == Order::by_rank && table_.ranks[0] != 1)) return false;
    out[0] = static_cast<std::int32_t>(table_.items[0]);
    placed_.highest = out[0];
    placed_.indptr.assign(1, 0);
    placed_.ids.assign(1, table_.cases[0]);
    std::uint8_t begins[kRowsPerPass];
    for (std::int64_t start = 1; start < table_.n; start += kRowsPerPass) {
      const std::int64_t stop = std::min(table_.n, start + kRowsPerPass);
      const RowFacts facts = level.compare_rows(table_, order, start, stop, out + start, begins);
      if (facts.falls || facts.off || facts.bits >> 31) return false;
      placed_.highest = std::max<std::int64_t>(placed_.highest, facts.highest);
      add(begins, start, stop);
    }
    placed_.indptr.resize(n_);
    placed_.ids.resize(n_);
    placed_.indptr.push_back(table_.n);
    return true;
  }

 private:
  static constexpr std::int64_t kWord = 8;

  // The cases that begin in rows [start, stop), of one byte per row; most words hold none.
  void add(const std::uint8_t* begins, std::int64_t start, std::int64_t stop) {
    const std::int64_t n = stop - start;
    make_room(static_cast<std::size_t>(n), start);
    const std::int64_t* const RECSYS_RESTRICT cases = table_.cases + start;
    std::int64_t* RECSYS_RESTRICT starts = placed_.indptr.data() + n_;
    std::int64_t* RECSYS_RESTRICT ids = placed_.ids.data() + n_;
    std::size_t found = 0;
    const auto note = [&](std::int64_t row) {
      starts[found] = start + row;
      ids[found] = cases[row];
      found += begins[row];
    };
    std::int64_t row = 0;
    for (; row + kWord <= n; row += kWord) {
      std::uint64_t word;
      std::memcpy(&word, begins + row, sizeof word);
      if (!word) continue;
      for (std::int64_t i = 0; i < kWord; ++i) note(row + i);
    }
    for (; row < n; ++row) note(row);
    n_ += found;
  }

  // As much as the rows so far let expect for all; the first pass expects nothing.
  void make_room(std::size_t more, std::int64_t n_rows) {
    if (placed_.ids.size() >= n_ + more) return;
    const double per_row = n_rows > kRowsPerPass ? 1.1 * static_cast<double>(n_) / static_cast<double>(n_rows) : 0;
    const auto expected = static_cast<std::size_t>(per_row * static_cast<double>(table_.n));
    const std::size_t room = std::max({2 * n_, n_ + more, std::min(expected, static_cast<std::size_t>(table_.n))});
    placed_.indptr.resize(room);
    placed_.ids.resize(room);
  }

  const RowTable& table_;
  Placed& placed_;
  std::size_t n_ = 1;
};

bool place_grouped(const RowTable& table, Order order, const Level& level, std::int32_t* out, Placed& placed) {
  return Grouped(table, placed).place(order, level, out);
}

template <class Table>
class Scatter {
 public:
  Scatter(const Table& table, std::int64_t limit) : table_(table) {
    std::int64_t high = table.cases[0];
    std::uint64_t bits = 0;
    low_ = high;
    for (std::int64_t i = 0; i < table.n; ++i) {
      low_ = std::min<std::int64_t>(low_, table.cases[i]);
      high = std::max<std::int64_t>(high, table.cases[i]);
      bits |= static_cast<std::uint64_t>(table.items[i]);
    }
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low_);
    usable_ = span < static_cast<std::uint64_t>(limit) && !(bits >> 31);
    if (!usable_) return;
    starts_.assign(span + 2, 0);
    for (std::int64_t i = 0, stop = 0; i < table.n; i = stop) {
      stop = end_of_run(i);
      starts_[table.cases[i] - low_ + 1] += static_cast<std::int32_t>(stop - i);
    }
    for (std::size_t c = 1; c < starts_.size(); ++c) starts_[c] += starts_[c - 1];
  }

  bool usable() const { return usable_; }

  // False where two rows want one place, or a place is beyond the case's last.
  bool by_rank(std::int32_t* out) const {
    if (in_rank_order(out)) return true;
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
    for (std::int64_t i = 0, stop = 0; i < table_.n; i = stop) {
      stop = end_of_run(i);
      std::int32_t& place = next[table_.cases[i] - low_];
      for (std::int64_t row = i; row < stop; ++row) out[place + row - i] = static_cast<std::int32_t>(table_.items[row]);
      place += static_cast<std::int32_t>(stop - i);
    }
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
  // False unless the rows of every case are together, from rank 1 on.
  bool in_rank_order(std::int32_t* out) const {
    for (std::int64_t i = 0, stop = 0; i < table_.n; i = stop) {
      stop = end_of_run(i);
      const std::int64_t c = table_.cases[i] - low_, n = stop - i;
      const std::int64_t* const ranks = table_.ranks + i;
      std::int32_t* const placed = out + starts_[c];
      bool off = starts_[c + 1] - starts_[c] != n;
      for (std::int64_t row = 0; row < n; ++row) {
        off |= ranks[row] != row + 1;
        placed[row] = static_cast<std::int32_t>(table_.items[i + row]);
      }
      if (off) return false;
    }
    return true;
  }

  // Behind the last of the rows from `i` on that are of one case.
  std::int64_t end_of_run(std::int64_t i) const {
    std::int64_t stop = i + 1;
    while (stop < table_.n && table_.cases[stop] == table_.cases[i]) ++stop;
    return stop;
  }

  const Table& table_;
  std::int64_t low_ = 0;
  bool usable_ = false;
  std::vector<std::int32_t> starts_;
};

template <class Table>
bool place_scattered(const Table& table, Order order, std::int64_t limit, std::int32_t* out, Placed& placed) {
  const Scatter<Table> scatter(table, limit);
  if (!scatter.usable()) return false;
  if (order == Order::by_rank && !scatter.by_rank(out)) return false;
  if (order == Order::ascending && !scatter.ascending(out)) return false;
  if (order == Order::given) scatter.as_given(out);
  scatter.name_cases(placed);
  placed.highest = highest_of(out, table.n);
  return true;
}

}  // namespace

Placed place(const RowTable& table, Order order, std::int64_t limit, const Level& level, std::int32_t* out) {
  Placed placed;
  if (table.n == 0 || table.n > kMostRows) return placed;
  placed.done = place_grouped(table, order, level, out, placed);
  if (!placed.done) {
    placed = Placed{};
    placed.done = place_scattered(table, order, limit, out, placed);
  }
  placed.done = placed.done && placed.highest < limit;
  return placed;
}

Placed place(const CodeTable& table, Order order, std::int64_t limit, const Level& level, std::int32_t* out) {
  if (std::is_sorted(table.cases, table.cases + table.n)) {
    const std::vector<std::int64_t> cases(table.cases, table.cases + table.n);
    const std::vector<std::int64_t> items(table.items, table.items + table.n);
    return place(RowTable{cases.data(), items.data(), table.ranks, table.n}, order, limit, level, out);
  }
  Placed placed;
  if (table.n > kMostRows) return placed;
  placed.done = place_scattered(table, order, limit, out, placed) && placed.highest < limit;
  return placed;
}

}  // namespace recsys
