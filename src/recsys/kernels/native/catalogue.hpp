// The items, packed for the fast pass: float32, panel by panel, in the order they are visited.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "matrix.hpp"
#include "workers.hpp"

namespace recsys {

struct Items {
  Matrix factors;
  const double* bias = nullptr;
  const std::uint8_t* never = nullptr;
  const std::int64_t* tie_key = nullptr;

  std::int64_t n_terms() const { return factors.n_columns + (bias != nullptr); }
  bool before(std::int32_t a, std::int32_t b) const {
    return tie_key[a] != tie_key[b] ? tie_key[a] < tie_key[b] : a < b;
  }
};

// A run of panels that share one bound on the error of their fast scores.
struct Zone {
  std::int64_t first_panel;
  double doubt;  // for a user of norm 1
};

// The items that may be recommended, and the norms of their scaled vectors, rounded up.
struct Measured {
  int exponent;
  std::vector<std::int32_t> items;
  std::vector<float> norms;
};

// `largest` is the largest magnitude of any factor or bias.
Measured measure(const Items& items, double largest, int threads);

class Catalogue {
 public:
  // by_norm visits the longest vectors first, otherwise items are visited in their own order.
  Catalogue(const Items& items, Measured measured, int lanes, bool by_norm, int threads);

  std::int64_t size() const { return static_cast<std::int64_t>(item_at_.size()); }
  std::int64_t n_panels() const { return n_panels_; }
  const float* panel(std::int64_t p) const { return packed_.get() + p * n_terms_ * lanes_; }
  std::int32_t item_at(std::int64_t position) const { return item_at_[position]; }
  // -1 for an item that is never recommended.
  std::int32_t position_of(std::int32_t item) const { return position_of_[item]; }
  const float* doubts(std::int64_t p) const { return doubts_.data() + p * lanes_; }
  float doubt_at(std::int64_t position) const { return doubts_[position]; }
  // No item from panel p on has a longer vector.
  double norm_from(std::int64_t p) const { return norm_from_[p]; }
  const std::vector<Zone>& zones() const { return zones_; }
  int exponent() const { return exponent_; }
  bool in_item_order() const { return in_item_order_; }

 private:
  void order(std::vector<float>& norms);
  void pack(const Items& items, int threads);
  void set_zones(const std::vector<float>& norms, bool by_norm);

  const int lanes_, exponent_;
  const std::int64_t n_terms_;
  bool in_item_order_;
  std::int64_t n_panels_ = 0;
  std::vector<std::int32_t> item_at_, position_of_;
  std::vector<double> norm_from_;
  std::vector<float> doubts_;
  std::vector<Zone> zones_;
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float[], Free> packed_;
};

}  // namespace recsys
