// Two ways, both O(list + truth) for any range of ids, neither ever clears its memory between cases.
// Short rows note in which slot of a fixed table an item was last seen; a slot last written before this
// case is empty. Two items in one slot are told apart by looking back. Long rows go through an
// open-addressing table where every case writes its own stamp.
#include "match.hpp"

#include <algorithm>
#include <stdexcept>

namespace recsys {
namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 29;
constexpr std::int64_t kShortList = 128, kShortTruth = 32;
// Above this many judged items per entry a binary search beats entering them all.
constexpr std::int64_t kLongTruth = 8;
constexpr std::uint32_t kSpread = 0x9E3779B1u;

struct Slot {
  std::uint32_t stamp;
  std::int32_t item;
  std::int64_t truth;  // where the item stands in the truth, -1 for an entry that is not judged
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
  Matcher(const Rows& lists, const Rows& truth, std::int64_t first_case, Matched& out)
      : lists_(lists),
        truth_(truth),
        first_entry_(lists.indptr[first_case]),
        first_judged_(truth.indptr[first_case]),
        out_(out) {}

  void match(std::int64_t c) {
    const bool is_short = lists_.size(c) <= kShortList && truth_.size(c) <= kShortTruth &&
                          lists_.indptr[c + 1] - first_entry_ < UINT32_MAX &&
                          truth_.indptr[c + 1] - first_judged_ < UINT32_MAX;
    if (!is_short || !match_short(c)) match_long(c);
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
    const std::int32_t* const entries = lists_.items + first_entry_;
    for (std::uint32_t i = start, n = start + static_cast<std::uint32_t>(lists_.size(c)); i < n; ++i) {
      const std::int32_t item = entries[i];
      std::uint32_t& place = listed_at_.of(item);
      const bool repeat = place > start && std::find(entries + start, entries + i, item) != entries + i;
      place = i + 1;
      if (repeat) note_repeat(first_entry_ + i);
      const std::uint32_t t = judged_at_.of(item);
      if (t > truth_start && judged[t - 1] == item) emit(first_entry_ + i, first_judged_ + t - 1, repeat);
    }
    return true;
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
      if (slot.listed) note_repeat(at);
      if (slot.truth >= 0) emit(at, slot.truth, slot.listed);
      slot.listed = true;
    }
  }

  std::int64_t find(std::int64_t c, std::int32_t item) const {
    const std::int32_t* place = std::lower_bound(truth_.begin(c), truth_.end(c), item);
    return place != truth_.end(c) && *place == item ? place - truth_.items : -1;
  }

  void emit(std::int64_t at, std::int64_t truth, bool repeat) {
    out_.at.push_back(at);
    out_.truth.push_back(truth);
    out_.repeat.push_back(repeat);
  }

  void note_repeat(std::int64_t at) {
    if (out_.first_repeated < 0) out_.first_repeated = at;
    ++out_.n_repeated;
  }

  const Rows& lists_;
  const Rows& truth_;
  const std::int64_t first_entry_, first_judged_;
  Matched& out_;
  Table table_;
  LastSeen<12> listed_at_;
  LastSeen<11> judged_at_;
};

}  // namespace

void match_cases(const Rows& lists, const Rows& truth, std::int64_t start, std::int64_t stop, Matched& out) {
  Matcher matcher(lists, truth, start, out);
  for (std::int64_t c = start; c < stop; ++c) matcher.match(c);
}

}  // namespace recsys
