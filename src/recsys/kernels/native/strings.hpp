// Strings to codes that follow their sorted order.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace recsys {

struct Text {
  const char* begin;
  std::uint32_t size;
};

// Gives each different string a number on first sight, and sorts them at the end. Strings must stay where they
// are until then.
class Coder {
 public:
  static constexpr int kBatch = 64;

  explicit Coder(std::int64_t n_rows) : slots_(kFewest, Slot{0, 0, -1}) { codes_.reserve(n_rows); }

  // The next rows, up to kBatch of them.
  void add(const Text* texts, int n);

  // Codes by UTF-8 bytes, which is the order of code points; afterwards firsts() is in that order too.
  void sort();

  std::vector<std::int32_t>& codes() { return codes_; }
  std::vector<std::int64_t>& firsts() { return firsts_; }

 private:
  struct Slot {
    std::uint64_t head;  // with the size this is all of a string of up to eight bytes
    std::uint32_t size;
    std::int32_t code;
  };
  static constexpr std::size_t kFewest = 1 << 12;

  std::int32_t find(Text text, std::uint64_t head, std::uint64_t hash);
  void grow();

  std::vector<Slot> slots_;
  std::vector<Text> texts_;
  std::vector<std::int64_t> firsts_;  // row where each was first seen
  std::vector<std::int32_t> codes_;
};

}  // namespace recsys
