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

std::int64_t cases_per_block(const Asked& asked, const Items& items, const Level& level, const Plan& plan) {
  const std::int64_t each = Block::bytes_per_case(level, asked.k, items.n_terms());
  const std::int64_t fitting = plan.memory_budget / plan.threads / each;
  // Several blocks a thread, so that the last ones end together.
  const std::int64_t fair = asked.users.n_rows / (4 * plan.threads);
  const std::int64_t most = std::min(fitting, plan.threads > 1 ? std::max<std::int64_t>(fair, 96) : kCasesPerBlock);
  return rounded_to(std::clamp<std::int64_t>(most, 1, kCasesPerBlock), level.rows);
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
  const std::int64_t n = asked.users.n_rows, step = cases_per_block(asked, items, level, plan);
  std::vector<std::unique_ptr<Block>> scratch(plan.threads);
  const Body body = [&](int worker, std::int64_t block, const Cancel& cancel) {
    if (!scratch[worker]) scratch[worker] = std::make_unique<Block>(asked, items, catalogue, level, answers);
    scratch[worker]->run(block * step, std::min(n, (block + 1) * step), cancel);
  };
  run_blocks((n + step - 1) / step, plan.threads, body, watch);
}

}  // namespace recsys
