// Neighbouring rows, each compared with the one before it: nothing waits for the row before and
// nothing branches on the data, so a compiler makes vectors of it. For the level files.
#pragma once

namespace recsys {
namespace {

// Rows [start, stop) of a table, start from 1. Items go to `out` as they are, and one byte per row says whether a
// case begins there.
template <Order Wanted>
RowFacts compare_with_previous(const RowTable& table, std::int64_t start, std::int64_t stop,
                               std::int32_t* RECSYS_RESTRICT out, std::uint8_t* RECSYS_RESTRICT begins) {
  const std::int64_t* const RECSYS_RESTRICT cases = table.cases + start;
  const std::int64_t* const RECSYS_RESTRICT items = table.items + start;
  const std::int64_t* const RECSYS_RESTRICT ranks = Wanted == Order::by_rank ? table.ranks + start : nullptr;
  const std::int64_t n = stop - start;
  std::uint64_t falls = 0, off = 0, bits = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t same = cases[i] == cases[i - 1] ? ~std::uint64_t{0} : 0;
    falls |= cases[i] < cases[i - 1] ? 1 : 0;
    if (Wanted == Order::by_rank)
      off |= static_cast<std::uint64_t>(ranks[i]) ^ ((static_cast<std::uint64_t>(ranks[i - 1]) & same) + 1);
    if (Wanted == Order::ascending) off |= same & (items[i] <= items[i - 1] ? 1 : 0);
    bits |= static_cast<std::uint64_t>(items[i]);
    out[i] = static_cast<std::int32_t>(items[i]);
  }
  for (std::int64_t i = 0; i < n; ++i) begins[i] = cases[i] != cases[i - 1];
  std::int32_t highest = 0;
  for (std::int64_t i = 0; i < n; ++i) highest = out[i] > highest ? out[i] : highest;
  return {falls, off, bits, highest};
}

RowFacts compare_rows(const RowTable& table, Order order, std::int64_t start, std::int64_t stop, std::int32_t* out,
                      std::uint8_t* begins) {
  if (order == Order::by_rank) return compare_with_previous<Order::by_rank>(table, start, stop, out, begins);
  if (order == Order::ascending) return compare_with_previous<Order::ascending>(table, start, stop, out, begins);
  return compare_with_previous<Order::given>(table, start, stop, out, begins);
}

}  // namespace
}  // namespace recsys
