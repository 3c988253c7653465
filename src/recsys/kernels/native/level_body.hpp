// The innermost loops, written over the small vector type `V` its includer defines (F, kWidth, kRows,
// zero, load, store, set, fma, sub, mul, less, at_least, nearest, n_negative, only, within, push). Everything is in an
// unnamed namespace: see level.hpp. Scores are compared while still in registers and never written to memory as a
// matrix.

namespace recsys {
namespace {

constexpr int kVectors = 2;
constexpr int kLanes = V::kWidth * kVectors;
constexpr std::int32_t kEnd = INT32_MAX;
constexpr auto kAllLanes = static_cast<std::uint32_t>((std::uint64_t{1} << kLanes) - 1);

struct Tile {
  V::F score[V::kRows][kVectors];
};

// On its own, so that what follows cannot push the sums out of registers.
RECSYS_NOINLINE void multiply(const float* RECSYS_RESTRICT users, const float* RECSYS_RESTRICT panel,
                              std::int64_t n_factors, Tile& tile) {
  V::F sum[V::kRows][kVectors];
  RECSYS_UNROLL
  for (int r = 0; r < V::kRows; ++r) RECSYS_UNROLL
  for (int c = 0; c < kVectors; ++c) sum[r][c] = V::zero();
  for (std::int64_t j = 0; j < n_factors; ++j) {
    V::F y[kVectors];
    RECSYS_UNROLL
    for (int c = 0; c < kVectors; ++c) y[c] = V::load(panel + j * kLanes + c * V::kWidth);
    RECSYS_UNROLL
    for (int r = 0; r < V::kRows; ++r) {
      const V::F x = V::set(users[j * V::kRows + r]);
      RECSYS_UNROLL
      for (int c = 0; c < kVectors; ++c) sum[r][c] = V::fma(x, y[c], sum[r][c]);
    }
  }
  RECSYS_UNROLL
  for (int r = 0; r < V::kRows; ++r) RECSYS_UNROLL
  for (int c = 0; c < kVectors; ++c) tile.score[r][c] = sum[r][c];
}

RECSYS_INLINE std::uint32_t lanes_at_least(const V::F* score, float cut) {
  const V::F cuts = V::set(cut);
  return V::at_least(score[0], score[1], cuts);
}

// Lanes of this panel that are candidates of the case; moves its cursor on.
RECSYS_INLINE std::uint32_t candidates(Row& row, std::int32_t base, std::uint32_t valid) {
  std::uint32_t lanes = valid;
  const std::int32_t limit = base <= kEnd - kLanes ? base + kLanes : kEnd;
  while (*row.excluded < limit) lanes &= ~(std::uint32_t{1} << (*row.excluded++ - base));
  return lanes;
}

RECSYS_INLINE void offer(const Sweep& s, Row& row, const V::F* score, std::uint32_t lanes) {
  const V::F length = V::set(row.length);
  for (int c = 0; c < kVectors; ++c) {
    const std::uint32_t part = (lanes >> (c * V::kWidth)) & V::kAll;
    const V::F low = V::less(score[c], length, V::load(s.doubts + c * V::kWidth));
    if (part) row.n += V::push(low, part, s.base + c * V::kWidth, row.low + row.n, row.at + row.n);
  }
  if (row.n > s.room) s.full(s.owner, row);
}

// The rare part of `count`: a score too near a truth item is taken out of its count and handed over.
RECSYS_NOINLINE void name_doubts(const Sweep& s, Row& row, const V::F* score, std::uint32_t lanes) {
  alignas(64) float scores[kLanes];
  for (int c = 0; c < kVectors; ++c) V::store(scores + c * V::kWidth, score[c]);
  for (; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    // Somewhat more than `count` found open, so that no rounding here can miss one of them.
    const float doubt = row.length * s.doubts[lane] * (1 + 0x1p-18f);
    std::int32_t t = 0;
    for (std::int32_t end = row.n_truth; t < end;) {
      const std::int32_t middle = t + (end - t) / 2;
      if (scores[lane] - row.truth[middle].score > doubt)
        t = middle + 1;
      else
        end = middle;
    }
    for (; t < row.n_truth && row.truth[t].score - scores[lane] <= doubt; ++t) {
      row.truth[t].above -= scores[lane] > row.truth[t].score;
      s.doubtful(s.owner, row, t, s.base + lane);
    }
  }
}

// A score counts where it is higher as a float32; the nearest any lane pair comes to any truth item tells,
// once for all of them, whether that can be relied on. Lanes that do not count hold -inf.
RECSYS_INLINE void count(const Sweep& s, Row& row, const V::F* score) {
  const std::int32_t n = row.n_truth;
  if (n == 0) return;
  V::F nearest = V::set(3e38f);
  for (std::int32_t t = 0; t < n; ++t) {
    Threshold& truth = row.truth[t];
    const V::F cut = V::set(truth.score);
    const V::F first = V::sub(cut, score[0]), second = V::sub(cut, score[1]);
    nearest = V::nearest(nearest, first, second);
    truth.above += V::n_negative(first, second);
  }
  const std::uint32_t open = V::within(nearest, V::mul(V::set(row.length), V::load(s.pair_doubts)));
  if (__builtin_expect(open != 0, 0)) name_doubts(s, row, score, open | open << V::kWidth);
}

template <bool Lists, bool Counts>
void sweep(const Sweep& s) {
  for (std::int32_t q = 0; q < s.n_tiles; ++q) {
    const std::int32_t t = s.tiles[q];
    Row* const rows = s.rows + static_cast<std::int64_t>(t) * V::kRows;
    Tile tile;
    multiply(s.users + t * s.n_factors * V::kRows, s.panel, s.n_factors, tile);
    RECSYS_UNROLL
    for (int r = 0; r < V::kRows; ++r) {
      Row& row = rows[r];
      std::uint32_t lanes = s.valid;
      if (__builtin_expect(*row.excluded - s.base < kLanes, 0)) lanes = candidates(row, s.base, s.valid);
      if (Lists) {
        const std::uint32_t passing = lanes_at_least(tile.score[r], row.pass) & lanes;
        if (__builtin_expect(passing != 0, 0)) offer(s, row, tile.score[r], passing);
      }
      if (Counts) {
        if (lanes != kAllLanes)
          for (int c = 0; c < kVectors; ++c) tile.score[r][c] = V::only(tile.score[r][c], lanes >> (c * V::kWidth));
        count(s, row, tile.score[r]);
      }
    }
  }
}

std::int32_t n_at_least(const float* low, std::int32_t n, float cut) {
  std::int32_t found = 0;
  for (std::int32_t i = 0; i < n; ++i) found += low[i] >= cut;
  return found;
}

// Any cut that k bounds reach is a valid one, so a few halvings of the range do instead of a selection.
float best_cut(const float* low, std::int32_t n, std::int32_t k) {
  float bottom = low[0], top = low[0];
  for (std::int32_t i = 1; i < n; ++i) {
    bottom = low[i] < bottom ? low[i] : bottom;
    top = low[i] > top ? low[i] : top;
  }
  for (int step = 0; step < 12; ++step) {
    const float middle = bottom + (top - bottom) * 0.5f;
    const std::int32_t found = n_at_least(low, n, middle);
    if (found >= k) {
      bottom = middle;
      if (found <= k + k / 16) break;
    } else {
      top = middle;
    }
  }
  return bottom;
}

std::int32_t lift(float* low, std::int32_t* at, std::int32_t n, std::int32_t k, float width, float* cut) {
  if (n < k) return n;
  const float reached = best_cut(low, n, k);
  if (reached > *cut) *cut = reached;
  // The difference is rounded, by less than one part in 2^23 of the larger operand: step below it.
  float keep = *cut - width;
  keep -= (keep < 0 ? -keep : keep) * 0x1p-22f + 0x1p-140f;
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    low[kept] = low[i];
    at[kept] = at[i];
    kept += low[i] >= keep;
  }
  return kept;
}

bool in_vectors(const double*, std::int64_t, const double* const*, std::int64_t, double*) { return false; }

bool in_vectors(const double* user, std::int64_t n_factors, const float* const* rows, std::int64_t n, double* scores) {
#if defined(RECSYS_EXACT_X86)
  if (n > 4)
    exact_groups<2>(user, n_factors, rows, scores);
  else
    exact_groups<1>(user, n_factors, rows, scores);
  return true;
#else
  (void)user, (void)n_factors, (void)rows, (void)n, (void)scores;
  return false;
#endif
}

template <class T>
void exact_rows(const double* user, std::int64_t n_factors, const T* const* rows, std::int64_t stride, std::int64_t n,
                double* scores) {
  constexpr int kChains = 8;  // independent sums, to hide the latency of an addition
  for (std::int64_t i = 0; i < n; i += kChains) {
    const T* y[kChains];
    double sum[kChains] = {};
    for (int z = 0; z < kChains; ++z) y[z] = rows[i + z < n ? i + z : n - 1];
    if (stride != 1 || !in_vectors(user, n_factors, y, n - i, sum))
      for (std::int64_t j = 0; j < n_factors; ++j)
        for (int z = 0; z < kChains; ++z) sum[z] += user[j] * static_cast<double>(y[z][j * stride]);
    for (int z = 0; z < kChains && i + z < n; ++z) scores[i + z] = sum[z];
  }
}

void exact(const double* user, std::int64_t n_factors, ItemRows items, std::int64_t n, double* scores) {
  if (items.is_double)
    exact_rows(user, n_factors, reinterpret_cast<const double* const*>(items.rows), items.stride, n, scores);
  else
    exact_rows(user, n_factors, reinterpret_cast<const float* const*>(items.rows), items.stride, n, scores);
}

void exact_tile(const double* const* users, int n_users, std::int64_t n_factors, const double* panel, double* scores) {
  const double* x[kExactUsers];
  for (int u = 0; u < kExactUsers; ++u) x[u] = users[u < n_users ? u : 0];
  double sum[kExactUsers][kExactLanes] = {};
  for (std::int64_t j = 0; j < n_factors; ++j)
    for (int u = 0; u < kExactUsers; ++u)
      for (int z = 0; z < kExactLanes; ++z) sum[u][z] += x[u][j] * panel[j * kExactLanes + z];
  for (int u = 0; u < n_users; ++u)
    for (int z = 0; z < kExactLanes; ++z) scores[u * kExactLanes + z] = sum[u][z];
}

struct Parts {
  static constexpr int kChains = 32;  // independent sums, so that additions need not wait for each other
  double high[kChains] = {}, low[kChains] = {};
  std::uint64_t left[kChains] = {};  // all bits of what remained; x - x is +0.0, which has none

  RECSYS_INLINE void add(int z, double value, double first, double second) {
    const double head = (value + first) - first, rest = value - head, next = (rest + second) - second;
    const double over = rest - next;
    std::uint64_t bits;
    std::memcpy(&bits, &over, sizeof bits);
    high[z] += head;
    low[z] += next;
    left[z] |= bits;
  }
};

Slices slices(const double* values, std::int64_t n, double first, double second) {
  Parts parts;
  std::int64_t i = 0;
  for (; i + Parts::kChains <= n; i += Parts::kChains)
    for (int z = 0; z < Parts::kChains; ++z) parts.add(z, values[i + z], first, second);
  for (int z = 0; i < n; ++i, ++z) parts.add(z, values[i], first, second);
  Slices all{0, 0, false};
  for (int z = 0; z < Parts::kChains; ++z) {
    all.first += parts.high[z];
    all.second += parts.low[z];
    all.left = all.left || parts.left[z] != 0;
  }
  return all;
}

#if !defined(RECSYS_EXACT_X86)
constexpr decltype(Level::meet) meet = nullptr;
#endif

constexpr Level make_level() {
  return {V::kRows,
          kLanes,
          &sweep<true, false>,
          &sweep<false, true>,
          &sweep<true, true>,
          &lift,
          &exact,
          &exact_tile,
          meet,
          &slices,
          &compare_rows,
          {&masked<float>, &count<float>, &reaches<float>},
          {&masked<double>, &count<double>, &reaches<double>}};
}

}  // namespace
}  // namespace recsys
