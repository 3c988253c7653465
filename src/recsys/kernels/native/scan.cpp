#include "scan.hpp"

#include <algorithm>
#include <memory>
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
