// Rows of a table with whole numbers for ids, brought into CSR order.
#pragma once

#include <cstdint>
#include <vector>

#include "level.hpp"

namespace recsys {

struct Placed {
  bool done = false;  // false: this table needs a slower way, which also knows the words for what is wrong
  std::vector<std::int64_t> ids, indptr;
  std::int64_t highest = 0;  // item
};

// Items go to `out`, n of them. Done only if items lie in [0, limit), ranks of every case are 1, 2, 3, … in
// some order, ascending items do not repeat, and cases are in ascending groups or span less than `limit`.
Placed place(const RowTable& table, Order order, std::int64_t limit, const Level& level, std::int32_t* out);

// The same of codes.
struct CodeTable {
  const std::int32_t *cases, *items;
  const std::int64_t* ranks;
  std::int64_t n;
};

Placed place(const CodeTable& table, Order order, std::int64_t limit, const Level& level, std::int32_t* out);

}  // namespace recsys
