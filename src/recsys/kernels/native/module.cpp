// The Python face of the native kernels. It only converts: shapes and values were checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "match.hpp"
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
  m.def("cpu_levels", &recsys::level_names);
}
