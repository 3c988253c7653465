#include "scan.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "bound.hpp"
#include "order.hpp"

namespace recsys {
namespace {

// Users of a block share each panel of items while it is in the innermost cache.
constexpr std::int64_t kCasesPerBlock = 480, kEligiblePerBlock = 64;

std::int64_t rounded_to(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

// As many threads as there is memory for, which only very long lists leave less than asked for.
int threads_that_fit(const Asked& asked, const Items& items, const Level& level, const Plan& plan) {
  const std::int64_t least = Block::bytes_per_case(asked, items, level) + Block::kBytesPerPlace * asked.k;
  return static_cast<int>(std::clamp<std::int64_t>(plan.memory_budget / least, 1, plan.threads));
}

// Where each block starts, and the end: whole tiles, within a thread's share of the memory if at all possible.
std::vector<std::int64_t> block_starts(const Asked& asked, const Items& items, const Level& level, int threads,
                                       std::int64_t memory_budget) {
  const std::int64_t n = asked.users.n_rows, each = Block::bytes_per_case(asked, items, level);
  const std::int64_t room = memory_budget / threads - Block::kBytesPerPlace * asked.k;
  // Several blocks a thread, so that the last ones end together.
  const std::int64_t fair = threads > 1 ? std::max<std::int64_t>(n / (4 * threads), 96) : kCasesPerBlock;
  const std::int64_t step = rounded_to(std::min(fair, kCasesPerBlock), level.rows);
  std::vector<std::int64_t> starts{0};
  for (std::int64_t first = 0, stop = 0; first < n; first = stop) {
    for (std::int64_t bytes = 0; stop < std::min(n, first + step); ++stop) {
      bytes += each + (asked.seen.indptr ? Block::kBytesPerSeen * asked.seen.size(stop) : 0) +
               (asked.truth.indptr ? Block::kBytesPerTruth * asked.truth.size(stop) : 0);
      if (bytes > room && stop > first) break;
    }
    if (stop < n && stop - first > level.rows) stop -= (stop - first) % level.rows;
    starts.push_back(stop);
  }
  return starts;
}

// Cases with their own candidate lists: everything is scored exactly, there is nothing to prune.
void run_eligible(const Asked& asked, const Items& items, const Level& level, const Answers& answers,
                  std::int64_t first, std::int64_t stop, const Cancel& cancel) {
  Scorer scorer(items, level);
  Tally tally(items);
  std::vector<double> user(asked.users.n_columns), scores, truth_scores;
  std::vector<std::int32_t> wanted;
  std::vector<std::int64_t> judged;
  for (std::int64_t c = first; c < stop && !cancel.asked(); ++c) {
    asked.users.read(c, user.data());
    wanted.clear();
    const std::int32_t* seen = asked.seen.indptr ? asked.seen.begin(c) : nullptr;
    const std::int32_t* const seen_end = asked.seen.indptr ? asked.seen.end(c) : nullptr;
    for (const std::int32_t* item = asked.eligible.begin(c); item != asked.eligible.end(c); ++item) {
      while (seen != seen_end && *seen < *item) ++seen;
      const bool is_seen = seen != seen_end && *seen == *item, is_double = !wanted.empty() && wanted.back() == *item;
      if (!is_seen && !is_double && !(items.never && items.never[*item])) wanted.push_back(*item);
    }
    const auto n = static_cast<std::int64_t>(wanted.size());
    answers.n_candidates[c] = n;
    scores.resize(n);
    scorer.score(user.data(), wanted.data(), n, scores.data());
    if (asked.k) {
      Best best(items, asked.k);
      for (std::int64_t i = 0; i < n; ++i) best.offer({scores[i], wanted[i]});
      answers.write_list(c, asked.k, best.sorted());
    }
    if (!asked.truth.indptr) continue;
    const std::int64_t start = asked.truth.indptr[c], n_truth = asked.truth.size(c);
    truth_scores.resize(n_truth);
    scorer.score(user.data(), asked.truth.begin(c), n_truth, truth_scores.data());
    judged.clear();
    for (std::int64_t t = start; t < start + n_truth; ++t) {
      answers.truth_scores[t] = truth_scores[t - start];
      answers.write_counts(t, -1, 0, 0);
      if (std::binary_search(wanted.begin(), wanted.end(), asked.truth.items[t])) judged.push_back(t);
    }
    const auto own = [&](std::int64_t t) { return Entry{answers.truth_scores[t], asked.truth.items[t]}; };
    std::sort(judged.begin(), judged.end(), [&](std::int64_t a, std::int64_t b) {
      const Entry one = own(a), other = own(b);
      return one.score != other.score ? one.score < other.score : items.before(one.item, other.item);
    });
    std::vector<Entry> entries;
    entries.reserve(judged.size());
    for (const std::int64_t t : judged) entries.push_back(own(t));
    tally.start(std::move(entries));
    for (std::int64_t i = 0; i < n && !judged.empty(); ++i) tally.add({scores[i], wanted[i]});
    tally.finish([&](std::size_t i, std::int64_t above, std::int64_t tied, std::int64_t before) {
      answers.write_counts(judged[i], above, tied, before);
    });
  }
}

void scan_eligible(const Asked& asked, const Items& items, const Answers& answers, const Plan& plan,
                   const Watch& watch) {
  const std::int64_t n = asked.users.n_rows;
  const Body body = [&](int, std::int64_t block, const Cancel& cancel) {
    const std::int64_t first = block * kEligiblePerBlock;
    run_eligible(asked, items, level_of(plan.level), answers, first, std::min(n, first + kEligiblePerBlock), cancel);
  };
  run_blocks((n + kEligiblePerBlock - 1) / kEligiblePerBlock, plan.threads, body, watch);
}

}  // namespace

void scan(const Asked& asked, const Items& items, const Answers& answers, const Plan& plan, const Watch& watch) {
  if (asked.eligible.indptr) return scan_eligible(asked, items, answers, plan, watch);
  const Level& level = level_of(plan.level);
  Measured measured = measure(items, plan.largest, plan.threads);
  const bool by_norm =
      plan.prune == Prune::yes || (plan.prune == Prune::decide && worth_ordering(asked, items, measured, level));
  const Catalogue catalogue(items, std::move(measured), level.lanes, by_norm, plan.threads);
  const int threads = threads_that_fit(asked, items, level, plan);
  const std::vector<std::int64_t> starts = block_starts(asked, items, level, threads, plan.memory_budget);
  std::vector<std::unique_ptr<Block>> scratch(threads);
  const Body body = [&](int worker, std::int64_t block, const Cancel& cancel) {
    if (!scratch[worker]) scratch[worker] = std::make_unique<Block>(asked, items, catalogue, level, answers);
    scratch[worker]->run(starts[block], starts[block + 1], cancel);
  };
  run_blocks(static_cast<std::int64_t>(starts.size()) - 1, threads, body, watch);
}

}  // namespace recsys
