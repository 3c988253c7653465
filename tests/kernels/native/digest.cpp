// Runs every kernel on made-up data and prints one number for all their answers. scripts/cross.sh compares the
// number of this machine's CPU levels with that of another architecture, run in an emulator.
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cpu.hpp"
#include "dense.hpp"
#include "match.hpp"
#include "place.hpp"
#include "scan.hpp"
#include "strings.hpp"

namespace {

using recsys::Rows;

struct Digest {
  std::uint64_t value = 0xcbf29ce484222325u;

  template <class T>
  void add(const std::vector<T>& values) {
    for (const T& each : values) {
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &each, sizeof(T));
      for (const unsigned char byte : bytes) value = (value ^ byte) * 0x100000001b3u;
    }
  }
};

struct Draw {
  std::uint64_t state;

  std::uint32_t next(std::uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((state >> 33) % below);
  }

  // Few different values, so that exact ties and near ties both occur.
  template <class T>
  std::vector<T> factors(std::size_t n) {
    std::vector<T> values(n);
    for (T& value : values) value = (static_cast<T>(next(4001)) - 2000) / 977 * (next(8) ? 1 : T(1e-7));
    return values;
  }
};

struct Lists {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> items;

  // Ascending and unique within a case.
  Lists(Draw& draw, int n_cases, int n_items, int most) {
    for (int c = 0; c < n_cases; ++c) {
      std::int32_t item = -1;
      for (std::uint32_t i = draw.next(most + 1); i > 0 && item + 1 < n_items; --i) {
        item += 1 + static_cast<std::int32_t>(draw.next(2 * n_items / most));
        if (item < n_items) items.push_back(item);
      }
      indptr.push_back(static_cast<std::int64_t>(items.size()));
    }
  }

  Rows rows() const { return {indptr.data(), items.data()}; }
};

template <class T>
void scan(Digest& digest, recsys::CpuLevel level, int k, std::int64_t deepest) {
  constexpr int kUsers = 150, kItems = 700, kFactors = 19;
  Draw draw{7};
  const std::vector<T> users = draw.factors<T>(kUsers * kFactors), items = draw.factors<T>(kItems * kFactors);
  const std::vector<double> bias = draw.factors<double>(kItems);
  const Lists truth(draw, kUsers, kItems, 9), seen(draw, kUsers, kItems, 40);
  std::vector<std::int64_t> key(kItems);
  for (int i = 0; i < kItems; ++i) key[i] = i;
  const bool is_double = sizeof(T) == sizeof(double);
  const auto matrix = [&](const std::vector<T>& values, std::int64_t n) {
    return recsys::Matrix{values.data(), is_double, n, kFactors, kFactors, 1};
  };
  const std::size_t n_truth = truth.items.size();
  std::vector<std::int32_t> listed(kUsers * k, -1);
  std::vector<double> scores(kUsers * k), truth_scores(n_truth);
  std::vector<std::int64_t> lengths(kUsers), above(n_truth), tied(n_truth), ahead(n_truth), candidates(kUsers);
  const recsys::Asked asked{matrix(users, kUsers), k, truth.rows(), seen.rows(), {}, deepest};
  const recsys::Items catalogue{matrix(items, kItems), bias.data(), nullptr, key.data()};
  const recsys::Answers answers{listed.data(), scores.data(), lengths.data(),      above.data(),
                                tied.data(),   ahead.data(),  truth_scores.data(), candidates.data()};
  for (const recsys::Prune prune : {recsys::Prune::no, recsys::Prune::yes}) {
    recsys::scan(asked, catalogue, answers, {level, 2, 1 << 20, prune, 2000.0}, {});
    for (std::int64_t& count : above) count = std::min(count, deepest);
    for (std::size_t i = 0; i < n_truth; ++i)
      if (above[i] == deepest) tied[i] = ahead[i] = 0;
    digest.add(listed), digest.add(scores), digest.add(lengths), digest.add(candidates);
    digest.add(above), digest.add(tied), digest.add(ahead), digest.add(truth_scores);
  }
}

void match(Digest& digest, const recsys::Level& level, int longest) {
  constexpr int kCases = 900, kItems = 300;
  Draw draw{11};
  const Lists truth(draw, kCases, kItems, 12);
  Lists lists(draw, kCases, kItems, longest);
  for (std::int32_t& item : lists.items) item = static_cast<std::int32_t>(draw.next(kItems));
  recsys::Matched matched;
  recsys::match_cases(lists.rows(), truth.rows(), 0, kCases, level, matched);
  for (const recsys::Match& each : matched.found) digest.add<std::int64_t>({each.at, each.truth, each.of, each.repeat});
  digest.add<std::int64_t>({matched.n_repeated, matched.first_repeated});
}

void place(Digest& digest, const recsys::Level& level, bool grouped) {
  Draw draw{13};
  constexpr std::int64_t kRows = 9000;
  std::vector<std::int64_t> cases(kRows), items(kRows), ranks(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) {
    cases[i] = grouped ? i / 7 : draw.next(400);
    items[i] = (grouped ? i % 7 << 17 : 0) + draw.next(1 << 17);
    ranks[i] = i % 7 + 1;
  }
  for (const recsys::Order order : {recsys::Order::given, recsys::Order::ascending, recsys::Order::by_rank}) {
    std::vector<std::int32_t> out(kRows);
    const recsys::RowTable table{cases.data(), items.data(), ranks.data(), kRows};
    const recsys::Placed placed = recsys::place(table, order, 1 << 21, level, out.data());
    if (placed.done) digest.add(out), digest.add(placed.ids), digest.add(placed.indptr);
    digest.add<std::int64_t>({placed.done, placed.highest});
  }
}

template <class T>
void rank_scores(Digest& digest, const recsys::Dense<T>& level) {
  constexpr int kCases = 40, kItems = 2500, kBest = 20;
  Draw draw{23};
  const Lists truth(draw, kCases, kItems, 12);
  std::vector<T> scores(kCases * kItems);
  std::vector<std::uint8_t> candidate(scores.size());
  std::vector<std::int64_t> rank(kItems), lengths(kCases), n_candidates(kCases);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<T>(draw.next(1 << 10)) / 7;  // few enough for ties
    candidate[i] = draw.next(10) > 0;
  }
  for (int i = 0; i < kItems; ++i) rank[i] = (i * 1009) % kItems;
  std::vector<std::int32_t> list_items(kCases * kBest);
  std::vector<std::int64_t> above(truth.items.size()), tied(above), ahead(above);
  std::vector<double> list_scores(list_items.size()), own(above.size());
  const recsys::Rows rows = truth.rows();
  const recsys::ScoreRows<T> given{scores.data(), candidate.data(), kCases,     kItems,
                                   rank.data(),   rows.indptr,      rows.items, kBest};
  recsys::rank_scores(given, 0, kCases, level,
                      {lengths.data(), list_items.data(), list_scores.data(), above.data(), tied.data(), ahead.data(),
                       own.data(), n_candidates.data()});
  digest.add(lengths), digest.add(list_items), digest.add(list_scores), digest.add(above), digest.add(tied);
  digest.add(ahead), digest.add(own), digest.add(n_candidates);
}

void strings(Digest& digest) {
  Draw draw{17};
  std::vector<std::string> words(6000);
  for (std::string& word : words)
    for (std::uint32_t i = draw.next(21); i > 0; --i) word += static_cast<char>('a' + draw.next(3));
  recsys::Coder coder(static_cast<std::int64_t>(words.size()));
  for (const std::string& word : words) {
    const recsys::Text text{word.data(), static_cast<std::uint32_t>(word.size())};
    coder.add(&text, 1);
  }
  coder.sort();
  digest.add(coder.codes()), digest.add(coder.firsts());
}

std::uint64_t digest_of(recsys::CpuLevel named) {
  const recsys::Level& level = recsys::level_of(named);
  Digest digest;
  for (const int k : {0, 1, 20})
    for (const std::int64_t deepest : {std::int64_t{5}, std::numeric_limits<std::int64_t>::max()}) {
      scan<float>(digest, named, k, deepest);
      scan<double>(digest, named, k, deepest);
    }
  for (const int longest : {20, 60, 200}) match(digest, level, longest);
  for (const bool grouped : {false, true}) place(digest, level, grouped);
  rank_scores(digest, level.floats);
  rank_scores(digest, level.doubles);
  strings(digest);
  Draw draw{19};
  const std::vector<double> values = draw.factors<double>(10007);
  const recsys::Slices sums = level.slices(values.data(), 10007, 1.5 * 0x1p24, 1.5 * 0x1p-6);
  digest.add<double>({sums.first, sums.second, sums.left ? 1.0 : 0.0});
  return digest.value;
}

}  // namespace

int main() {
  for (const recsys::CpuLevel level : recsys::cpu_levels())
    std::printf("%016llx\n", static_cast<unsigned long long>(digest_of(level)));
}
