// Strings to codes that follow their sorted order.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace recsys {

struct Text {
  const char* begin;
  std::uint32_t size;
};

bool equal(Text a, Text b);

// By UTF-8 bytes, which is the order of code points.
bool before(Text a, Text b);

// Different strings, one after the other.
class SortedTexts {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  Text operator[](std::int64_t i) const {
    return {bytes_.data() + starts_[i], static_cast<std::uint32_t>(starts_[i + 1] - starts_[i])};
  }
  void add(Text text) {
    bytes_.insert(bytes_.end(), text.begin, text.begin + text.size);
    starts_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  void reserve_like(const SortedTexts& other) {
    bytes_.reserve(other.bytes_.size()), starts_.reserve(other.starts_.size());
  }
  bool is_ascii() const;
  bool equals(const SortedTexts& other) const { return starts_ == other.starts_ && bytes_ == other.bytes_; }

 private:
  std::vector<char> bytes_;
  std::vector<std::int64_t> starts_{0};  // where each starts, and where the last one ends
};

// Gives each different string a number on first sight, and sorts them at the end. It keeps a copy of each, so that
// those it compares with are close together.
class Coder {
 public:
  static constexpr int kBatch = 64;

  explicit Coder(std::int64_t n_rows)
      : shift_(n_rows < kManyRows ? 52 : 48), slots_(std::size_t{1} << (64 - shift_), Slot{0, 0, -1}) {
    codes_.reserve(n_rows);
  }

  // The next rows, up to kBatch of them; up to `end` memory can be read, if they come before it.
  void add(const Text* texts, int n, std::uintptr_t end = 0);

  // Codes by UTF-8 bytes, which is the order of code points; afterwards all below are in that order too.
  void sort();

  std::vector<std::int32_t>& codes() { return codes_; }
  std::vector<std::int64_t>& firsts() { return firsts_; }

  // The different strings, once they are sorted; the coder has them no longer.
  SortedTexts take_texts() { return std::move(texts_); }

 private:
  struct Slot {
    std::uint64_t key;  // a string of up to eight bytes whole, the hash of a longer one
    std::uint32_t size;
    std::int32_t code;
  };
  struct Keyed {
    std::uint64_t key;
    std::int32_t code;
  };
  static constexpr std::int64_t kManyRows = 1 << 18;

  static std::uint64_t hash_of(const Slot& slot);
  std::int32_t find(Text text, const Slot& wanted, std::uint64_t hash, std::size_t row);
  void grow();
  void sort(Keyed* first, std::size_t n, Keyed* spare, std::uint32_t depth) const;

  int shift_;  // of a hash that leaves the place of a slot
  std::vector<Slot> slots_;
  SortedTexts texts_;                 // the different strings; until sort() in the order they were seen
  std::vector<std::int64_t> firsts_;  // row where each was first seen
  std::vector<std::int32_t> codes_;
};

// Two sets of strings in one: the place of each string of either, and the strings.
struct Merged {
  std::vector<std::int32_t> first, second;
  SortedTexts texts;
};

Merged merge(const SortedTexts& first, const SortedTexts& second);

}  // namespace recsys
