#include "catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "bound.hpp"

namespace recsys {
namespace {

constexpr std::align_val_t kLine{64};
constexpr std::int64_t kItemsPerBlock = 4096;
// A new zone starts where norms have fallen by this much, but not for a handful of panels.
constexpr double kZoneFall = 0.7;
constexpr std::int64_t kPanelsPerZone = 8;

// Row of an item in scaled units, the bias as its last term.
void read_scaled(const Items& items, std::int32_t item, const Scale& scale, double* out) {
  const std::int64_t f = items.factors.n_columns;
  items.factors.read(item, out);
  for (std::int64_t j = 0; j < f; ++j) out[j] = scale(out[j]);
  if (items.bias) out[f] = scale(items.bias[item]);
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

void Catalogue::Free::operator()(float* p) const { ::operator delete[](p, kLine); }

Measured measure(const Items& items, double largest, int threads) {
  Measured out{exponent_of(largest), {}, {}};
  const std::int64_t n_items = items.factors.n_rows, n_terms = items.n_terms();
  out.items.reserve(n_items);
  for (std::int32_t i = 0; i < n_items; ++i)
    if (!items.never || !items.never[i]) out.items.push_back(i);
  const auto n = static_cast<std::int64_t>(out.items.size());
  out.norms.resize(n);
  const Scale scale(out.exponent);
  const Body body = [&](int, std::int64_t block, const Cancel&) {
    std::vector<double> row(n_terms);
    for (std::int64_t i = block * kItemsPerBlock; i < std::min(n, (block + 1) * kItemsPerBlock); ++i) {
      read_scaled(items, out.items[i], scale, row.data());
      const double norm = norm_above(row.data(), n_terms);
      // Scaled factors are below 2; this is false for NaN too.
      if (!(norm <= 2.001 * std::sqrt(static_cast<double>(n_terms + 1))))
        throw std::invalid_argument("an item has a factor or bias that is NaN, infinite or above `largest`");
      out.norms[i] = rounded_up(norm);
    }
  };
  run_blocks((n + kItemsPerBlock - 1) / kItemsPerBlock, threads, body, {});
  return out;
}

Catalogue::Catalogue(const Items& items, Measured measured, int lanes, bool by_norm, int threads)
    : lanes_(lanes),
      exponent_(measured.exponent),
      n_terms_(items.n_terms()),
      in_item_order_(!by_norm),
      item_at_(std::move(measured.items)) {
  n_panels_ = (size() + lanes_ - 1) / lanes_;
  if (by_norm) order(measured.norms);
  position_of_.assign(items.factors.n_rows, -1);
  for (std::int64_t p = 0; p < size(); ++p) position_of_[item_at(p)] = static_cast<std::int32_t>(p);
  set_zones(measured.norms, by_norm);
  packed_.reset(new (kLine) float[n_panels_ * n_terms_ * lanes_ + 1]);
  pack(items, threads);
}

void Catalogue::order(std::vector<float>& norms) {
  // Norms are positive, so their bits sort as they do; the item breaks ties in the low half.
  std::vector<std::uint64_t> keys(norms.size());
  for (std::size_t p = 0; p < norms.size(); ++p)
    keys[p] = static_cast<std::uint64_t>(~bits_of(norms[p])) << 32 | static_cast<std::uint32_t>(p);
  std::sort(keys.begin(), keys.end());
  std::vector<std::int32_t> items(norms.size());
  std::vector<float> ordered(norms.size());
  for (std::size_t p = 0; p < keys.size(); ++p) {
    const auto from = static_cast<std::size_t>(keys[p] & 0xffffffffu);
    items[p] = item_at_[from];
    ordered[p] = norms[from];
  }
  item_at_.swap(items);
  norms.swap(ordered);
}

void Catalogue::set_zones(const std::vector<float>& norms, bool by_norm) {
  norm_from_.assign(n_panels_ + 1, 0.0);
  for (std::int64_t p = n_panels_ - 1; p >= 0; --p) {
    double longest = norm_from_[p + 1];
    for (std::int64_t q = p * lanes_; q < std::min(size(), (p + 1) * lanes_); ++q)
      longest = std::max(longest, static_cast<double>(norms[q]));
    norm_from_[p] = longest;
  }
  doubts_.assign(n_panels_ * lanes_, 0.0f);
  for (std::int64_t p = 0; p < size(); ++p) doubts_[p] = rounded_up(doubt_of(n_terms_, norms[p]));
  double norm = 0;
  for (std::int64_t p = 0; p < n_panels_; p += kPanelsPerZone)
    if (p == 0 || (by_norm && norm_from(p) < kZoneFall * norm)) {
      norm = norm_from(p);
      zones_.push_back({p, doubt_of(n_terms_, norm)});
    }
}

void Catalogue::pack(const Items& items, int threads) {
  const Scale scale(exponent_);
  constexpr std::int64_t kPanelsPerBlock = 64;
  const Body body = [&](int, std::int64_t block, const Cancel&) {
    std::vector<double> row(n_terms_);
    for (std::int64_t p = block * kPanelsPerBlock; p < std::min(n_panels_, (block + 1) * kPanelsPerBlock); ++p) {
      float* const out = packed_.get() + p * n_terms_ * lanes_;
      for (std::int64_t lane = 0; lane < lanes_; ++lane) {
        const std::int64_t position = p * lanes_ + lane;
        std::fill(row.begin(), row.end(), 0.0);
        if (position < size()) read_scaled(items, item_at(position), scale, row.data());
        for (std::int64_t j = 0; j < n_terms_; ++j) out[j * lanes_ + lane] = static_cast<float>(row[j]);
      }
    }
  };
  run_blocks((n_panels_ + kPanelsPerBlock - 1) / kPanelsPerBlock, threads, body, {});
}

}  // namespace recsys
