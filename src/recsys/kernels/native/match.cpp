// Three ways, all O(list + truth) for any range of ids, none ever clears its memory between cases.
// With vectors a short list is compared with one item at a time. Without, short rows note in which slot of a fixed
// table an item was last seen; a slot last written before this case is empty. A first loop without branches sets one
// bit per entry whose slot is taken by a judged item, and tells whether two entries met in a slot; only those are then
// looked at. Long rows go through an open-addressing table where every case writes its own stamp.
#include "match.hpp"

#include <algorithm>
#include <stdexcept>

#include "portability.hpp"

namespace recsys {
namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 29;
constexpr std::int64_t kShortList = 64, kShortTruth = 32;
// Above this many judged items per entry a binary search beats entering them all.
constexpr std::int64_t kLongTruth = 8;
constexpr std::uint32_t kSpread = 0x9E3779B1u;

struct Slot {
  std::uint32_t stamp;
  std::int32_t item;
  std::int64_t truth;  // the position of the item in the truth, -1 for an entry that is not judged
  bool listed;
};

class Table {
 public:
  void open(std::int64_t n_entries) {
    if (n_entries > kMostEntries) throw std::length_error("a case with more than 2^29 entries");
    int bits = 4;
    while ((std::int64_t{1} << bits) < 2 * n_entries) ++bits;
    if (slots_.size() < (std::size_t{1} << bits)) {
      slots_.assign(std::size_t{1} << bits, Slot{0, 0, -1, false});
      stamp_ = 0;
    }
    if (++stamp_ == 0) {
      std::fill(slots_.begin(), slots_.end(), Slot{0, 0, -1, false});
      stamp_ = 1;
    }
    shift_ = 32 - bits;
    mask_ = (std::uint32_t{1} << bits) - 1;
  }

  // The slot of `item`, made if it was not there.
  Slot& at(std::int32_t item, bool& fresh) {
    std::uint32_t place = (static_cast<std::uint32_t>(item) * kSpread) >> shift_;
    for (;; place = (place + 1) & mask_) {
      Slot& slot = slots_[place];
      fresh = slot.stamp != stamp_;
      if (fresh) slot = Slot{stamp_, item, -1, false};
      if (slot.item == item) return slot;
    }
  }

 private:
  std::vector<Slot> slots_;
  std::uint32_t stamp_ = 0, mask_ = 0;
  int shift_ = 0;
};

int lowest_bit(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  return low ? __builtin_ctz(low) : 32 + __builtin_ctz(static_cast<std::uint32_t>(bits >> 32));
}

int popcount(std::uint64_t bits) {
  int n = 0;
  for (; bits; bits &= bits - 1) ++n;
  return n;
}

// Where an item was last seen: 1 + its position counted from the first case of the block.
template <int Bits>
class LastSeen {
 public:
  LastSeen() : places_(std::size_t{1} << Bits, 0) {}

  std::uint32_t& of(std::int32_t item) { return places_[(static_cast<std::uint32_t>(item) * kSpread) >> (32 - Bits)]; }

 private:
  std::vector<std::uint32_t> places_;
};

class Matcher {
 public:
  Matcher(const Rows& lists, const Rows& truth, std::int64_t first_case, std::int64_t n_entries, const Level& level,
          Matched& out)
      : lists_(lists),
        truth_(truth),
        level_(level),
        last_full_(n_entries - kMeetEntries),
        first_entry_(lists.indptr[first_case]),
        first_judged_(truth.indptr[first_case]),
        out_(out) {}

  void match(std::int64_t c) {
    const std::int64_t n = lists_.size(c), n_judged = truth_.size(c);
    if (n == 0) return;
    if (n > kShortList || n_judged > kShortTruth) return match_long(c);
    if (level_.meet && lists_.indptr[c] <= last_full_) {
      std::uint64_t found, again;
      level_.meet(lists_.begin(c), static_cast<int>(n), truth_.begin(c), static_cast<int>(n_judged), &found, &again);
      return emit(c, found, again);
    }
    const bool is_near =
        lists_.indptr[c + 1] - first_entry_ < UINT32_MAX && truth_.indptr[c + 1] - first_judged_ < UINT32_MAX;
    if (!is_near || !match_short(c)) match_long(c);
  }

 private:
  // False, with nothing emitted, if two judged items share a slot.
  bool match_short(std::int64_t c) {
    const auto truth_start = static_cast<std::uint32_t>(truth_.indptr[c] - first_judged_);
    const std::int32_t* const judged = truth_.items + first_judged_;
    for (std::uint32_t t = truth_start, n = truth_start + static_cast<std::uint32_t>(truth_.size(c)); t < n; ++t) {
      std::uint32_t& place = judged_at_.of(judged[t]);
      if (place > truth_start) return false;
      place = t + 1;
    }
    const auto start = static_cast<std::uint32_t>(lists_.indptr[c] - first_entry_);
    const auto n = static_cast<std::uint32_t>(lists_.size(c));
    const std::int32_t* const entries = lists_.items + lists_.indptr[c];
    std::uint64_t maybe = 0;
    std::uint32_t latest = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint32_t& place = listed_at_.of(entries[i]);
      latest = std::max(latest, place);
      place = start + i + 1;
      maybe |= static_cast<std::uint64_t>(judged_at_.of(entries[i]) > truth_start) << i;
    }
    emit(c, maybe, latest > start ? repeated(entries, n) : 0);
    return true;
  }

  // One bit per entry that occurred before.
  static std::uint64_t repeated(const std::int32_t* entries, std::uint32_t n) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 1; i < n; ++i)
      found |= static_cast<std::uint64_t>(std::find(entries, entries + i, entries[i]) != entries + i) << i;
    return found;
  }

  void match_long(std::int64_t c) {
    const std::int64_t n = lists_.size(c);
    const bool search = truth_.size(c) > kLongTruth * n;
    table_.open(n + (search ? 0 : truth_.size(c)));
    bool fresh = false;
    if (!search)
      for (std::int64_t t = truth_.indptr[c]; t < truth_.indptr[c + 1]; ++t)
        table_.at(truth_.items[t], fresh).truth = t;
    for (std::int64_t at = lists_.indptr[c]; at < lists_.indptr[c + 1]; ++at) {
      Slot& slot = table_.at(lists_.items[at], fresh);
      if (search && fresh) slot.truth = find(c, slot.item);
      if (slot.listed) note_repeats(at, 1);
      if (slot.truth >= 0) add(c, at, slot.truth, slot.listed);
      slot.listed = true;
    }
  }

  std::int64_t find(std::int64_t c, std::int32_t item) const {
    const std::int32_t* place = std::lower_bound(truth_.begin(c), truth_.end(c), item);
    return place != truth_.end(c) && *place == item ? place - truth_.items : -1;
  }

  // The entries of a short list that may be judged, and those that occurred before, a bit each.
  void emit(std::int64_t c, std::uint64_t maybe, std::uint64_t repeats) {
    const std::int64_t start = lists_.indptr[c];
    if (repeats) note_repeats(start + lowest_bit(repeats), popcount(repeats));
    for (; maybe; maybe &= maybe - 1) {
      const int i = lowest_bit(maybe);
      const std::int64_t t = find(c, lists_.items[start + i]);
      if (t >= 0) add(c, start + i, t, (repeats >> i & 1) != 0);
    }
  }

  void add(std::int64_t c, std::int64_t at, std::int64_t truth, bool repeat) {
    Match& match = out_.found.emplace_back();  // filled in place: a copy would wait for its parts to be stored
    match.at = at;
    match.truth = static_cast<std::uint32_t>(truth - truth_.indptr[c]);
    match.of = static_cast<std::uint32_t>(c);
    match.repeat = repeat;
  }

  void note_repeats(std::int64_t first, int n) {
    if (out_.first_repeated < 0) out_.first_repeated = first;
    out_.n_repeated += n;
  }

  const Rows& lists_;
  const Rows& truth_;
  const Level& level_;
  const std::int64_t last_full_;  // up to here kMeetEntries entries can be read
  const std::int64_t first_entry_, first_judged_;
  Matched& out_;
  Table table_;
  LastSeen<12> listed_at_;
  LastSeen<11> judged_at_;
};

}  // namespace

void match_cases(const Rows& lists, const Rows& truth, std::int64_t start, std::int64_t stop, const Level& level,
                 Matched& out) {
  out.found.reserve(static_cast<std::size_t>(stop - start));
  Matcher matcher(lists, truth, start, lists.indptr[stop], level, out);
  for (std::int64_t c = start; c < stop; ++c) matcher.match(c);
}

}  // namespace recsys
