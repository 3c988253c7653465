#include "workers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "fpstate.hpp"

namespace recsys {
namespace {

struct Flag final : Cancel {
  std::atomic<bool> set{false};
  bool asked() const override { return set.load(std::memory_order_relaxed); }
};

class Crew {
 public:
  Crew(std::int64_t n_blocks, const Body& body) : n_blocks_(n_blocks), body_(body) {}

  ~Crew() { join(); }

  void start(int threads) {
    for (int worker = 0; worker < threads; ++worker) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        ++running_;
      }
      try {
        threads_.emplace_back([this, worker] { work(worker); });
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        --running_;
        // Fewer threads than asked for still do all the work; none at all is an error.
        if (worker == 0) throw;
        return;
      }
    }
  }

  void watch(const Watch& watch) {
    const auto pause = std::chrono::duration<double>(watch.every_seconds);
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        if (idle_.wait_for(lock, pause, [this] { return running_ == 0; })) break;
      }
      if (watch.report) watch.report(done_.load(), n_blocks_);
    }
    join();
    if (error_) std::rethrow_exception(error_);
    if (watch.report) watch.report(n_blocks_, n_blocks_);
  }

 private:
  void work(int worker) {
    const ExactFloats exact;
    try {
      for (std::int64_t block = next_++; block < n_blocks_ && !cancel_.asked(); block = next_++) {
        body_(worker, block, cancel_);
        ++done_;
      }
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      cancel_.set = true;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) idle_.notify_all();
  }

  void join() {
    if (threads_.empty()) return;
    if (done_.load() < n_blocks_) cancel_.set = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  const std::int64_t n_blocks_;
  const Body& body_;
  std::vector<std::thread> threads_;
  std::atomic<std::int64_t> next_{0}, done_{0};
  Flag cancel_;
  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
  std::exception_ptr error_;
};

// Without threads of its own the work reports itself: a long block is left by what `report` throws.
class ReportingCancel final : public Cancel {
 public:
  ReportingCancel(const Watch& watch, const std::int64_t& done, std::int64_t n_blocks)
      : watch_(watch), done_(done), n_blocks_(n_blocks), last_(Clock::now()) {}

  bool asked() const override {
    if (watch_.report && Clock::now() - last_ >= std::chrono::duration<double>(watch_.every_seconds)) {
      watch_.report(done_, n_blocks_);
      last_ = Clock::now();
    }
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Watch& watch_;
  const std::int64_t& done_;
  const std::int64_t n_blocks_;
  mutable Clock::time_point last_;
};

void run_here(std::int64_t n_blocks, const Body& body, const Watch& watch) {
  const ExactFloats exact;
  std::int64_t done = 0;
  const ReportingCancel cancel(watch, done, n_blocks);
  while (done < n_blocks) {
    body(0, done, cancel);
    ++done;
    if (watch.report) watch.report(done, n_blocks);
  }
}

}  // namespace

void run_blocks(std::int64_t n_blocks, int threads, const Body& body, const Watch& watch) {
  threads = static_cast<int>(std::min<std::int64_t>(threads, n_blocks));
  if (threads <= 1) {
    run_here(n_blocks, body, watch);
    return;
  }
  Crew crew(n_blocks, body);
  crew.start(threads);
  crew.watch(watch);
}

}  // namespace recsys
