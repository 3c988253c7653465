// An open-addressing table whose slots hold short strings whole. Rows come in batches: all slots of a batch are
// asked for before the first is read, so that waiting for memory overlaps.
#include "strings.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "portability.hpp"

namespace recsys {
namespace {

constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15u, kSecond = 0xD6E8FEB86659FD93u;
constexpr std::uint32_t kShort = 8;  // bytes that fit a slot
constexpr std::size_t kFew = 64;     // strings that are sorted by comparing them
constexpr std::uint32_t kDeep = 256;

// The first byte lowest, on every machine; compilers make one load of it.
template <int kBytes>
std::uint64_t word(const char* p) {
  std::uint64_t bits = 0;
  for (int i = 0; i < kBytes; ++i) bits |= std::uint64_t{static_cast<unsigned char>(p[i])} << 8 * i;
  return bits;
}

std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 32)) * kSecond;
  bits = (bits ^ (bits >> 29)) * kFirst;
  return bits ^ (bits >> 32);
}

// A string of up to eight bytes, filled with zeros.
std::uint64_t whole_of(Text text) {
  const char* const p = text.begin;
  const std::uint32_t n = text.size;
  if (n >= 4) return word<4>(p) | word<4>(p + n - 4) << 8 * (n - 4);
  if (n == 0) return 0;
  return word<1>(p) | word<1>(p + n / 2) << 8 * (n / 2) | word<1>(p + n - 1) << 8 * (n - 1);
}

// The same of a string behind whose start eight bytes can be read.
std::uint64_t whole_of_eight(Text text) {
  return text.size ? word<kShort>(text.begin) << 8 * (kShort - text.size) >> 8 * (kShort - text.size) : 0;
}

std::uint64_t long_hash(Text text) {
  std::uint64_t hash = text.size * kFirst;
  for (std::uint32_t at = 0; at + kShort < text.size; at += kShort) {
    hash = (hash ^ word<kShort>(text.begin + at)) * kSecond;
    hash ^= hash >> 32;
  }
  return mixed(hash ^ word<kShort>(text.begin + text.size - kShort));  // it may overlap the word before it
}

// Eight bytes as a number that sorts as they do; a string that ends earlier is filled with zeros.
std::uint64_t sort_key(Text text, std::uint32_t depth) {
  unsigned char bytes[kShort] = {};
  if (depth < text.size) std::memcpy(bytes, text.begin + depth, std::min(text.size - depth, kShort));
  std::uint64_t head = 0;
  for (const unsigned char byte : bytes) head = head << 8 | byte;
  return head;
}

}  // namespace

bool equal(Text a, Text b) { return a.size == b.size && (a.size == 0 || std::memcmp(a.begin, b.begin, a.size) == 0); }

bool before(Text a, Text b) {
  const std::uint32_t shared = std::min(a.size, b.size);
  const int order = shared ? std::memcmp(a.begin, b.begin, shared) : 0;  // an empty text may have no address
  return order ? order < 0 : a.size < b.size;
}

// Every byte of the string moves its highest bits, which say where it is looked for.
std::uint64_t Coder::hash_of(const Slot& slot) {
  return slot.size > kShort ? slot.key : (slot.key + slot.size) * kFirst;
}

void Coder::add(const Text* texts, int n, std::uintptr_t end) {
  // In a table grouped by user most strings equal the one before: runs of equal ones are looked up once.
  Slot wanted[kBatch];
  std::uint64_t hashes[kBatch];
  std::uint8_t first_of[kBatch], run_of[kBatch];
  int n_runs = 0;
  Slot last{0, UINT32_MAX, -1};
  for (int i = 0; i < n; ++i) {
    const Text text = texts[i];
    bool repeats = text.size == last.size;
    if (text.size <= kShort) {
      const bool readable = reinterpret_cast<std::uintptr_t>(text.begin) + kShort <= end;
      const std::uint64_t whole = readable ? whole_of_eight(text) : whole_of(text);
      repeats &= whole == last.key;
      last.key = whole;
    } else {
      repeats = repeats && equal(text, texts[i - 1]);
      if (!repeats) last.key = long_hash(text);
    }
    if (!repeats) {
      last.size = text.size;
      wanted[n_runs] = last;
      hashes[n_runs] = hash_of(last);
      RECSYS_PREFETCH(&slots_[hashes[n_runs] >> shift_]);
      first_of[n_runs++] = static_cast<std::uint8_t>(i);
    }
    run_of[i] = static_cast<std::uint8_t>(n_runs - 1);
  }
  const std::size_t start = codes_.size();
  std::int32_t code_of[kBatch];
  for (int run = 0; run < n_runs; ++run) {
    const Slot& slot = slots_[hashes[run] >> shift_];  // where most strings are that are no longer new
    const bool is_there = slot.key == wanted[run].key && slot.size == wanted[run].size && slot.size <= kShort;
    const int first = first_of[run];
    code_of[run] = is_there && slot.code >= 0 ? slot.code : find(texts[first], wanted[run], hashes[run], start + first);
  }
  codes_.resize(start + n);
  for (int i = 0; i < n; ++i) codes_[start + i] = code_of[run_of[i]];
}

std::int32_t Coder::find(Text text, const Slot& wanted, std::uint64_t hash, std::size_t row) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = hash >> shift_;; place = (place + 1) & mask) {
    Slot& slot = slots_[place];
    if (slot.code < 0) {
      if (firsts_.size() == INT32_MAX) throw std::length_error("more than 2^31 different strings");
      const auto code = static_cast<std::int32_t>(firsts_.size());
      slot = {wanted.key, wanted.size, code};
      texts_.add(text);
      firsts_.push_back(static_cast<std::int64_t>(row));
      if (2 * firsts_.size() > slots_.size()) grow();
      return code;
    }
    const bool same_start = slot.key == wanted.key && slot.size == wanted.size;
    if (same_start && (wanted.size <= kShort || equal(texts_[slot.code], text))) return slot.code;
  }
}

void Coder::grow() {
  std::vector<Slot> wider(2 * slots_.size(), Slot{0, 0, -1});
  const std::size_t mask = wider.size() - 1;
  --shift_;
  for (const Slot& slot : slots_) {
    if (slot.code < 0) continue;
    std::size_t place = hash_of(slot) >> shift_;
    while (wider[place].code >= 0) place = (place + 1) & mask;
    wider[place] = slot;
  }
  slots_.swap(wider);
}

// Strings that are equal up to `depth`: by their next eight bytes, byte by byte from the last one, then those that are
// equal still.
void Coder::sort(Keyed* first, std::size_t n, Keyed* spare, std::uint32_t depth) const {
  if (n <= kFew || depth > kDeep) {
    std::sort(first, first + n,
              [this](const Keyed& a, const Keyed& b) { return before(texts_[a.code], texts_[b.code]); });
    return;
  }
  std::array<std::array<std::size_t, 256>, kShort> counts{};
  bool ends = true;
  for (std::size_t i = 0; i < n; ++i) {
    const Text own = texts_[first[i].code];
    first[i].key = sort_key(own, depth);
    ends &= own.size <= depth + kShort;
    for (std::uint32_t byte = 0; byte < kShort; ++byte) ++counts[byte][first[i].key >> 8 * byte & 255];
  }
  Keyed *from = first, *to = spare;
  for (std::uint32_t byte = 0; byte < kShort; ++byte) {
    std::array<std::size_t, 256>& at = counts[byte];
    if (at[from[0].key >> 8 * byte & 255] == n) continue;
    std::size_t sum = 0;
    for (std::size_t& count : at) sum += std::exchange(count, sum);
    for (std::size_t i = 0; i < n; ++i) to[at[from[i].key >> 8 * byte & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != first) std::copy(from, from + n, first);
  for (std::size_t start = 0, stop = 0; start < n; start = stop) {
    for (stop = start + 1; stop < n && first[stop].key == first[start].key;) ++stop;
    // Where all end here, equal keys differ by zeros at the end alone.
    if (stop - start > 1) sort(first + start, stop - start, spare, ends ? kDeep + 1 : depth + kShort);
  }
}

void Coder::sort() {
  std::vector<Keyed> order(firsts_.size()), spare(firsts_.size());
  for (std::size_t code = 0; code < order.size(); ++code) order[code] = {0, static_cast<std::int32_t>(code)};
  sort(order.data(), order.size(), spare.data(), 0);
  std::vector<std::int32_t> place(order.size());
  std::vector<std::int64_t> firsts(order.size());
  SortedTexts sorted;
  sorted.reserve_like(texts_);
  for (std::size_t to = 0; to < order.size(); ++to) {
    const std::int32_t code = order[to].code;
    place[code] = static_cast<std::int32_t>(to);
    firsts[to] = firsts_[code];
    sorted.add(texts_[code]);
  }
  firsts_.swap(firsts);
  texts_ = std::move(sorted);
  for (std::int32_t& code : codes_) code = place[code];
}

bool SortedTexts::is_ascii() const {
  char bits = 0;
  for (const char byte : bytes_) bits |= byte;
  return !(bits & 0x80);
}

Merged merge(const SortedTexts& first, const SortedTexts& second) {
  if (first.size() + second.size() >= INT32_MAX) throw std::length_error("more than 2^31 strings");
  Merged merged;
  std::int64_t i = 0, j = 0;
  while (i < first.size() || j < second.size()) {
    const bool only_first = j == second.size() || (i < first.size() && before(first[i], second[j]));
    const bool only_second = !only_first && (i == first.size() || before(second[j], first[i]));
    const auto place = static_cast<std::int32_t>(merged.texts.size());
    merged.texts.add(only_second ? second[j] : first[i]);
    if (!only_second) merged.first.push_back(place), ++i;
    if (!only_first) merged.second.push_back(place), ++j;
  }
  return merged;
}

}  // namespace recsys
