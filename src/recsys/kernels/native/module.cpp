// The Python face of the native kernels. It only converts: shapes and values were checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "match.hpp"
#include "scan.hpp"
#include "workers.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace recsys {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Hands a vector over to NumPy without a copy.
template <class T>
nb::object array_of(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

Watch watching(const nb::object& progress) {
  return {[&progress](std::int64_t done, std::int64_t total) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(done, total);
  }};
}

Matched joined(std::vector<Matched>& parts) {
  Matched all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Matched& part = parts[i];
    all.at.insert(all.at.end(), part.at.begin(), part.at.end());
    all.truth.insert(all.truth.end(), part.truth.begin(), part.truth.end());
    all.repeat.insert(all.repeat.end(), part.repeat.begin(), part.repeat.end());
    all.n_repeated += part.n_repeated;
    if (all.first_repeated < 0) all.first_repeated = part.first_repeated;
  }
  return all;
}

nb::tuple match_lists(In<std::int64_t> list_indptr, In<std::int32_t> list_items, In<std::int64_t> truth_indptr,
                      In<std::int32_t> truth_items, int threads) {
  const Rows lists{list_indptr.data(), list_items.data()}, truth{truth_indptr.data(), truth_items.data()};
  const auto n_cases = static_cast<std::int64_t>(list_indptr.size()) - 1;
  constexpr std::int64_t kCasesPerBlock = 1 << 15;
  const std::int64_t n_blocks = std::max<std::int64_t>(1, (n_cases + kCasesPerBlock - 1) / kCasesPerBlock);
  std::vector<Matched> parts(static_cast<std::size_t>(n_blocks));
  const nb::object silent = nb::none();
  Matched all;
  {
    nb::gil_scoped_release no_gil;
    const Body body = [&](int, std::int64_t block, const Cancel&) {
      const std::int64_t start = block * kCasesPerBlock;
      match_cases(lists, truth, start, std::min(n_cases, start + kCasesPerBlock), parts[block]);
    };
    run_blocks(n_blocks, threads, body, watching(silent));
    all = joined(parts);
  }
  return nb::make_tuple(array_of(std::move(all.at)), array_of(std::move(all.truth)), array_of(std::move(all.repeat)),
                        all.n_repeated, all.first_repeated);
}

template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

Matrix matrix_of(const Factors& factors) {
  const bool is_double = factors.dtype() == nb::dtype<double>();
  if (!is_double && factors.dtype() != nb::dtype<float>()) throw nb::type_error("factors must be float32 or float64");
  return {factors.data(),
          is_double,
          static_cast<std::int64_t>(factors.shape(0)),
          static_cast<std::int64_t>(factors.shape(1)),
          factors.stride(0),
          factors.stride(1)};
}

using MaybeStarts = std::optional<In<std::int64_t>>;
using MaybeItems = std::optional<In<std::int32_t>>;

Rows rows_of(const MaybeStarts& indptr, const MaybeItems& items) {
  return indptr ? Rows{indptr->data(), items->data()} : Rows{};
}

void scan_factors(Factors users, Factors items, std::int32_t k, MaybeStarts truth_indptr, MaybeItems truth_items,
                  MaybeStarts seen_indptr, MaybeItems seen_items, MaybeStarts eligible_indptr,
                  MaybeItems eligible_items, std::optional<In<double>> bias, std::optional<In<std::uint8_t>> never,
                  In<std::int64_t> tie_key, double largest, Out<std::int32_t> list_items, Out<double> list_scores,
                  Out<std::int64_t> list_lengths, Out<std::int64_t> above, Out<std::int64_t> tied,
                  Out<std::int64_t> ahead,                  Out<double> truth_scores, Out<std::int64_t> n_candidates, int threads, std::int64_t memory_budget,
                  int prune, const std::string& cpu_level, nb::object progress) {
  const Asked asked{matrix_of(users), k, rows_of(truth_indptr, truth_items), rows_of(seen_indptr, seen_items),
                    rows_of(eligible_indptr, eligible_items)};
  const Items catalogue{matrix_of(items), bias ? bias->data() : nullptr, never ? never->data() : nullptr,
                        tie_key.data()};
  const Answers answers{list_items.data(), list_scores.data(),  list_lengths.data(), above.data(),
                        tied.data(),       ahead.data(),        truth_scores.data(), n_candidates.data()};
  const Plan plan{level_named(cpu_level), threads, memory_budget, static_cast<Prune>(prune), largest};
  nb::gil_scoped_release no_gil;
  scan(asked, catalogue, answers, plan, watching(progress));
}

std::vector<std::string> level_names() {
  std::vector<std::string> names;
  for (const CpuLevel level : cpu_levels()) names.push_back(name_of(level));
  return names;
}

}  // namespace
}  // namespace recsys

NB_MODULE(_native, m) {
  m.doc() = "Native kernels; use them through recsys.kernels.";
  m.def("match_lists", &recsys::match_lists, "list_indptr"_a, "list_items"_a, "truth_indptr"_a, "truth_items"_a,
        "threads"_a);
  m.def("scan", &recsys::scan_factors, "users"_a, "items"_a, "k"_a, "truth_indptr"_a.none(), "truth_items"_a.none(),
        "seen_indptr"_a.none(), "seen_items"_a.none(), "eligible_indptr"_a.none(), "eligible_items"_a.none(),
        "bias"_a.none(), "never"_a.none(), "tie_key"_a, "largest"_a, "list_items"_a.noconvert(),
        "list_scores"_a.noconvert(), "list_lengths"_a.noconvert(), "above"_a.noconvert(), "tied"_a.noconvert(), "ahead"_a.noconvert(),
        "truth_scores"_a.noconvert(), "n_candidates"_a.noconvert(), "threads"_a, "memory_budget"_a, "prune"_a,
        "cpu_level"_a, "progress"_a.none());
  m.def("cpu_levels", &recsys::level_names);
}
