// A whole list against one item at a time, in vectors; for the level files of x86 (V: I, ints, Met, meet,
// lanes, may_repeat).
#pragma once

namespace recsys {
namespace {

template <int N>
void meet_vectors(const std::int32_t* entries, int n, const std::int32_t* judged, int n_judged, std::uint64_t* found,
                  std::uint64_t* again) {
  V::I list[N];
  RECSYS_UNROLL
  for (int c = 0; c < N; ++c) list[c] = V::ints(entries + c * V::kWidth);
  const auto lanes_with = [&](std::int32_t item) {
    std::uint64_t lanes = 0;
    RECSYS_UNROLL
    for (int c = 0; c < N; ++c)
      lanes |= static_cast<std::uint64_t>(V::lanes(V::meet(V::Met{}, list[c], item))) << (c * V::kWidth);
    return lanes;
  };
  const std::uint64_t valid = ~std::uint64_t{0} >> (64 - n);
  V::Met met[N] = {};
  for (int t = 0; t < n_judged; ++t) {
    RECSYS_UNROLL
    for (int c = 0; c < N; ++c) met[c] = V::meet(met[c], list[c], judged[t]);
  }
  std::uint64_t hit = 0, later = 0;
  RECSYS_UNROLL
  for (int c = 0; c < N; ++c) hit |= static_cast<std::uint64_t>(V::lanes(met[c])) << (c * V::kWidth);
  if (V::template may_repeat<N>(list, entries, n))
    for (int i = 0; i + 1 < n; ++i) later |= lanes_with(entries[i]) & (~std::uint64_t{1} << i);
  *found = hit & valid;
  *again = later & valid;
}

// n from 1.
void meet(const std::int32_t* entries, int n, const std::int32_t* judged, int n_judged, std::uint64_t* found,
          std::uint64_t* again) {
  if (n <= 16)
    meet_vectors<16 / V::kWidth>(entries, n, judged, n_judged, found, again);
  else if (n <= 32)
    meet_vectors<32 / V::kWidth>(entries, n, judged, n_judged, found, again);
  else
    meet_vectors<64 / V::kWidth>(entries, n, judged, n_judged, found, again);
}

}  // namespace
}  // namespace recsys
