// List entries that are judged items of their case.
#pragma once

#include <cstdint>
#include <vector>

#include "level.hpp"

namespace recsys {

struct Rows {  // CSR: row c is items[indptr[c]] .. items[indptr[c + 1] - 1]
  const std::int64_t* indptr = nullptr;
  const std::int32_t* items = nullptr;

  const std::int32_t* begin(std::int64_t c) const { return items + indptr[c]; }
  const std::int32_t* end(std::int64_t c) const { return items + indptr[c + 1]; }
  std::int64_t size(std::int64_t c) const { return indptr[c + 1] - indptr[c]; }
};

struct Match {
  std::int64_t at;
  std::uint32_t truth;  // counted from the first judged item of the case
  std::uint32_t of : 31, repeat : 1;
};

struct Matched {
  std::vector<Match> found;
  std::int64_t n_repeated = 0, first_repeated = -1;
};

// Cases [start, stop); positions are those of the whole arrays.
void match_cases(const Rows& lists, const Rows& truth, std::int64_t start, std::int64_t stop, const Level& level,
                 Matched& out);

}  // namespace recsys
