// What a comparison of neighbouring rows of a table tells, where they may already be in order.
#pragma once

#include <cstdint>

namespace recsys {

// How the items of a case are put in order.
enum class Order { given, by_rank, ascending };

struct RowTable {
  const std::int64_t *cases, *items, *ranks;  // ranks: null unless by_rank
  std::int64_t n;
};

struct RowFacts {
  std::uint64_t falls = 0;   // a case comes before a smaller one
  std::uint64_t off = 0;     // a row is not in the wanted order after the one before it
  std::uint64_t bits = 0;    // of all items
  std::int32_t highest = 0;  // item, where bits are those of whole numbers below 2^31
};

constexpr std::int64_t kRowsPerPass = 4096;

}  // namespace recsys
