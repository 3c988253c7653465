// Worker threads that live for one call: blocks are handed out one by one, the calling thread watches
// for interrupts and reports progress, and nothing is left running when the call ends or throws.
#pragma once

#include <cstdint>
#include <functional>

namespace recsys {

struct Watch {
  // Called now and then by the calling thread only, also from within a block; throws to cancel.
  std::function<void(std::int64_t done, std::int64_t total)> report;
  double every_seconds = 0.05;
};

class Cancel {
 public:
  virtual bool asked() const = 0;

 protected:
  ~Cancel() = default;
};

// body(worker, block, cancel): worker < threads tells scratch memory apart; a long block asks `cancel`
// now and then and returns early if it is set.
using Body = std::function<void(int worker, std::int64_t block, const Cancel& cancel)>;

void run_blocks(std::int64_t n_blocks, int threads, const Body& body, const Watch& watch);

}  // namespace recsys
