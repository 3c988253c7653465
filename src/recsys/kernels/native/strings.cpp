// An open-addressing table whose slots hold short strings whole. Rows come in batches: all slots of a batch are
// asked for before the first is read, so that waiting for memory overlaps.
#include "strings.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "portability.hpp"

namespace recsys {
namespace {

constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15u, kSecond = 0xD6E8FEB86659FD93u;

std::uint64_t word(const char* p, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, size);
  return bits;
}

std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 32)) * kSecond;
  bits = (bits ^ (bits >> 29)) * kFirst;
  return bits ^ (bits >> 32);
}

// A number that tells strings of one size up to eight apart, and begins longer ones.
std::uint64_t head_of(Text text) {
  const char* const p = text.begin;
  if (text.size >= 8) return word(p, 8);
  if (text.size >= 4) return word(p, 4) | word(p + text.size - 4, 4) << 32;
  if (text.size == 0) return 0;
  return word(p, 1) | word(p + text.size / 2, 1) << 8 | word(p + text.size - 1, 1) << 16;
}

std::uint64_t hash_of(Text text, std::uint64_t head) {
  std::uint64_t hash = mixed(head ^ text.size * kFirst);
  for (std::uint32_t at = 8; at + 8 < text.size; at += 8) hash = mixed(hash ^ word(text.begin + at, 8));
  // The last word may overlap the one before it.
  return text.size > 8 ? mixed(hash ^ word(text.begin + text.size - 8, 8)) : hash;
}

bool equal(Text a, Text b) { return a.size == b.size && std::memcmp(a.begin, b.begin, a.size) == 0; }

// The first eight bytes as a number that sorts as they do; shorter strings are filled with zeros.
std::uint64_t sort_key(Text text) {
  unsigned char bytes[8] = {};
  std::memcpy(bytes, text.begin, std::min<std::uint32_t>(text.size, 8));
  std::uint64_t head = 0;
  for (const unsigned char byte : bytes) head = head << 8 | byte;
  return head;
}

bool before(Text a, Text b) {
  const int order = std::memcmp(a.begin, b.begin, std::min(a.size, b.size));
  return order ? order < 0 : a.size < b.size;
}

}  // namespace

void Coder::add(const Text* texts, int n) {
  std::uint64_t heads[kBatch], hashes[kBatch];
  for (int i = 0; i < n; ++i) {
    heads[i] = head_of(texts[i]);
    hashes[i] = hash_of(texts[i], heads[i]);
    RECSYS_PREFETCH(&slots_[hashes[i] & (slots_.size() - 1)]);
  }
  for (int i = 0; i < n; ++i) {
    // In a table grouped by user most strings equal the one before.
    const bool same = i > 0 && hashes[i] == hashes[i - 1] && equal(texts[i], texts[i - 1]);
    codes_.push_back(same ? codes_.back() : find(texts[i], heads[i], hashes[i]));
  }
}

std::int32_t Coder::find(Text text, std::uint64_t head, std::uint64_t hash) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = hash & mask;; place = (place + 1) & mask) {
    Slot& slot = slots_[place];
    if (slot.code < 0) {
      if (texts_.size() == INT32_MAX) throw std::length_error("more than 2^31 different strings");
      const auto code = static_cast<std::int32_t>(texts_.size());
      slot = {head, text.size, code};
      texts_.push_back(text);
      firsts_.push_back(static_cast<std::int64_t>(codes_.size()));
      if (2 * texts_.size() > slots_.size()) grow();
      return code;
    }
    if (slot.head == head && slot.size == text.size && (text.size <= 8 || equal(texts_[slot.code], text)))
      return slot.code;
  }
}

void Coder::grow() {
  std::vector<Slot> wider(2 * slots_.size(), Slot{0, 0, -1});
  const std::size_t mask = wider.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.code < 0) continue;
    std::size_t place = hash_of(texts_[slot.code], slot.head) & mask;
    while (wider[place].code >= 0) place = (place + 1) & mask;
    wider[place] = slot;
  }
  slots_.swap(wider);
}

void Coder::sort() {
  std::vector<std::pair<std::uint64_t, std::int32_t>> order(texts_.size());
  for (std::size_t code = 0; code < order.size(); ++code)
    order[code] = {sort_key(texts_[code]), static_cast<std::int32_t>(code)};
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : before(texts_[a.second], texts_[b.second]);
  });
  std::vector<std::int32_t> place(order.size());
  std::vector<std::int64_t> firsts(order.size());
  for (std::size_t to = 0; to < order.size(); ++to) {
    place[order[to].second] = static_cast<std::int32_t>(to);
    firsts[to] = firsts_[order[to].second];
  }
  firsts_.swap(firsts);
  for (std::int32_t& code : codes_) code = place[code];
}

}  // namespace recsys
