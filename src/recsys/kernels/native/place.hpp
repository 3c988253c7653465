// Rows of a table with whole numbers for ids, brought into CSR order.
#pragma once

#include <cstdint>
#include <vector>

namespace recsys {

// How the items of a case are put in order.
enum class Order { given, by_rank, ascending };

struct Table {
  const std::int64_t *cases, *items, *ranks;  // ranks: null unless by_rank
  std::int64_t n;
};

struct Placed {
  bool done = false;  // false: this table needs a slower way, which also knows the words for what is wrong
  std::vector<std::int64_t> ids, indptr;
  std::int64_t highest = 0;  // item
};

// Items go to `out`, n of them. Done only if items lie in [0, limit), ranks of every case are 1, 2, 3, … in
// some order, ascending items do not repeat, and cases stand in ascending groups or span less than `limit`.
Placed place(const Table& table, Order order, std::int64_t limit, std::int32_t* out);

}  // namespace recsys
