// The Python binding of the native kernels. It only converts: shapes and values were checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "dense.hpp"
#include "fpstate.hpp"
#include "match.hpp"
#include "place.hpp"
#include "portability.hpp"
#include "scan.hpp"
#include "strings.hpp"
#include "workers.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace recsys {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

// The matches of all blocks, a column each.
struct Columns {
  std::vector<std::int64_t> at, truth;
  std::vector<std::int32_t> of;
  std::vector<std::uint8_t> repeat;
  std::int64_t n_repeated = 0, first_repeated = -1;
};

Columns joined(const std::vector<Matched>& parts, const Rows& truth) {
  Columns all;
  std::size_t size = 0;
  for (const Matched& part : parts) size += part.found.size();
  all.at.reserve(size), all.truth.reserve(size), all.of.reserve(size), all.repeat.reserve(size);
  for (const Matched& part : parts) {
    for (const Match& match : part.found) {
      all.at.push_back(match.at);
      all.truth.push_back(truth.indptr[match.of] + match.truth);
      all.of.push_back(static_cast<std::int32_t>(match.of));
      all.repeat.push_back(match.repeat);
    }
    all.n_repeated += part.n_repeated;
    if (all.first_repeated < 0) all.first_repeated = part.first_repeated;
  }
  return all;
}

nb::tuple match_lists(In<std::int64_t> list_indptr, In<std::int32_t> list_items, In<std::int64_t> truth_indptr,
                      In<std::int32_t> truth_items, int threads, const std::string& cpu_level) {
  const Rows lists{list_indptr.data(), list_items.data()}, truth{truth_indptr.data(), truth_items.data()};
  const Level& level = level_of(level_named(cpu_level));
  const auto n_cases = static_cast<std::int64_t>(list_indptr.size()) - 1;
  constexpr std::int64_t kCasesPerBlock = 1 << 15;
  const std::int64_t n_blocks = std::max<std::int64_t>(1, (n_cases + kCasesPerBlock - 1) / kCasesPerBlock);
  std::vector<Matched> parts(static_cast<std::size_t>(n_blocks));
  const nb::object silent = nb::none();
  Columns all;
  {
    nb::gil_scoped_release no_gil;
    const Body body = [&](int, std::int64_t block, const Cancel&) {
      const std::int64_t start = block * kCasesPerBlock;
      match_cases(lists, truth, start, std::min(n_cases, start + kCasesPerBlock), level, parts[block]);
    };
    run_blocks(n_blocks, threads, body, watching(silent));
    all = joined(parts, truth);
  }
  return nb::make_tuple(array_of(std::move(all.at)), array_of(std::move(all.truth)), array_of(std::move(all.of)),
                        array_of(std::move(all.repeat)), all.n_repeated, all.first_repeated);
}

nb::object place_rows(In<std::int64_t> cases, In<std::int64_t> items, std::optional<In<std::int64_t>> ranks, int order,
                      std::int64_t limit, Out<std::int32_t> out, const std::string& cpu_level) {
  const Level& level = level_of(level_named(cpu_level));
  const RowTable table{cases.data(), items.data(), ranks ? ranks->data() : nullptr,
                    static_cast<std::int64_t>(cases.size())};
  Placed placed;
  {
    nb::gil_scoped_release no_gil;
    placed = place(table, static_cast<Order>(order), limit, level, out.data());
  }
  if (!placed.done) return nb::none();
  return nb::make_tuple(array_of(std::move(placed.ids)), array_of(std::move(placed.indptr)), placed.highest);
}

template <class T>
using Grid = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const Dense<float>& dense_of(const Level& level, float) { return level.floats; }
const Dense<double>& dense_of(const Level& level, double) { return level.doubles; }

template <class T>
void rank_scores_of(Grid<T> scores, Grid<std::uint8_t> candidate, In<std::int64_t> rank,
                    In<std::int64_t> truth_indptr, In<std::int32_t> truth_items, std::int64_t k,
                    Out<std::int64_t> lengths, Out<std::int32_t> list_items, Out<double> list_scores,
                    Out<std::int64_t> above, Out<std::int64_t> tied, Out<std::int64_t> ahead, Out<double> own,
                    Out<std::int64_t> n_candidates, int threads, const std::string& cpu_level) {
  const Dense<T>& level = dense_of(level_of(level_named(cpu_level)), T{});
  const auto n_rows = static_cast<std::int64_t>(scores.shape(0)), n_items = static_cast<std::int64_t>(scores.shape(1));
  const ScoreRows<T> rows{scores.data(), candidate.data(),    n_rows,            n_items,
                          rank.data(),   truth_indptr.data(), truth_items.data(), k};
  const ScoreAnswers answers{lengths.data(), list_items.data(), list_scores.data(), above.data(),
                             tied.data(),    ahead.data(),      own.data(),         n_candidates.data()};
  constexpr std::int64_t kScoresPerBlock = 1 << 18;
  const std::int64_t n_each = std::max<std::int64_t>(1, kScoresPerBlock / std::max<std::int64_t>(1, n_items));
  const nb::object silent = nb::none();
  nb::gil_scoped_release no_gil;
  const Body body = [&](int, std::int64_t block, const Cancel&) {
    const ExactFloats exact;
    rank_scores(rows, block * n_each, std::min(n_rows, (block + 1) * n_each), level, answers);
  };
  run_blocks((n_rows + n_each - 1) / n_each, threads, body, watching(silent));
}

nb::tuple sum_slices(In<double> values, double first, double second) {
  const Level& level = level_of(level_named(""));
  Slices sums;
  {
    nb::gil_scoped_release no_gil;
    const ExactFloats exact;
    sums = level.slices(values.data(), static_cast<std::int64_t>(values.size()), first, second);
  }
  return nb::make_tuple(sums.first, sums.second, sums.left);
}

nb::tuple coded(Coder& coder) {
  return nb::make_tuple(array_of(std::move(coder.codes())), array_of(std::move(coder.firsts())));
}

template <class Offset>
nb::object code_text(In<Offset> offsets, In<std::uint8_t> bytes) {
  const auto n = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto* const start = reinterpret_cast<const char*>(bytes.data());
  const Offset* const at = offsets.data();
  Coder coder(n);
  {
    nb::gil_scoped_release no_gil;
    Text batch[Coder::kBatch];
    for (std::int64_t i = 0; i < n;) {
      int filled = 0;
      for (; filled < Coder::kBatch && i < n; ++filled, ++i) {
        const auto size = static_cast<std::int64_t>(at[i + 1]) - at[i];
        if (size >= INT32_MAX) throw std::length_error("a string of more than 2 GiB");
        batch[filled] = {start + at[i], static_cast<std::uint32_t>(size)};
      }
      coder.add(batch, filled);
    }
    coder.sort();
  }
  return coded(coder);
}

// The buffer of a NumPy array of objects.
class Objects {
 public:
  explicit Objects(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0) throw nb::python_error();
  }
  ~Objects() { PyBuffer_Release(&view_); }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  std::int64_t size() const { return view_.len / static_cast<std::int64_t>(sizeof(PyObject*)); }
  PyObject* operator[](std::int64_t i) const { return static_cast<PyObject**>(view_.buf)[i]; }

 private:
  Py_buffer view_{};
};

// None if one of the objects is not a plain str.
nb::object code_objects(nb::object array) {
  const Objects objects(array);
  const std::int64_t n = objects.size();
  Coder coder(n);
  Text batch[Coder::kBatch];
  for (std::int64_t i = 0; i < n;) {
    int filled = 0;
    for (; filled < Coder::kBatch && i < n; ++filled, ++i) {
      RECSYS_PREFETCH(objects[std::min(i + Coder::kBatch, n - 1)]);
      PyObject* const value = objects[i];
      if (!value || !PyUnicode_CheckExact(value)) return nb::none();
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
      if (!text) throw nb::python_error();
      if (size >= INT32_MAX) return nb::none();
      batch[filled] = {text, static_cast<std::uint32_t>(size)};
    }
    coder.add(batch, filled);
  }
  coder.sort();
  return coded(coder);
}

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

Matrix chosen_of(const Factors& factors, const std::optional<In<std::int64_t>>& rows) {
  Matrix matrix = matrix_of(factors);
  if (!rows) return matrix;
  matrix.chosen = rows->data();
  matrix.n_rows = static_cast<std::int64_t>(rows->size());
  return matrix;
}

void scan_factors(Factors users, std::optional<In<std::int64_t>> user_rows, Factors items, std::int32_t k, std::int64_t deepest, MaybeStarts truth_indptr, MaybeItems truth_items,
                  MaybeStarts seen_indptr, MaybeItems seen_items, MaybeStarts eligible_indptr,
                  MaybeItems eligible_items, std::optional<In<double>> bias, std::optional<In<std::uint8_t>> never,
                  In<std::int64_t> tie_key, double largest, Out<std::int32_t> list_items, Out<double> list_scores,
                  Out<std::int64_t> list_lengths, Out<std::int64_t> above, Out<std::int64_t> tied,
                  Out<std::int64_t> ahead, Out<double> truth_scores, Out<std::int64_t> n_candidates, int threads, std::int64_t memory_budget,
                  int prune, const std::string& cpu_level, nb::object progress) {
  const Asked asked{chosen_of(users, user_rows), k, rows_of(truth_indptr, truth_items), rows_of(seen_indptr, seen_items),
                    rows_of(eligible_indptr, eligible_items), deepest};
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
        "threads"_a, "cpu_level"_a);
  m.def("scan", &recsys::scan_factors, "users"_a, "user_rows"_a.none(), "items"_a, "k"_a, "deepest"_a,
        "truth_indptr"_a.none(), "truth_items"_a.none(),
        "seen_indptr"_a.none(), "seen_items"_a.none(), "eligible_indptr"_a.none(), "eligible_items"_a.none(),
        "bias"_a.none(), "never"_a.none(), "tie_key"_a, "largest"_a, "list_items"_a.noconvert(),
        "list_scores"_a.noconvert(), "list_lengths"_a.noconvert(), "above"_a.noconvert(), "tied"_a.noconvert(), "ahead"_a.noconvert(),
        "truth_scores"_a.noconvert(), "n_candidates"_a.noconvert(), "threads"_a, "memory_budget"_a, "prune"_a,
        "cpu_level"_a, "progress"_a.none());
  m.def("place_rows", &recsys::place_rows, "cases"_a, "items"_a, "ranks"_a.none(), "order"_a, "limit"_a,
        "out"_a.noconvert(), "cpu_level"_a);
  m.def("code_text", &recsys::code_text<std::int32_t>, "offsets"_a.noconvert(), "bytes"_a);
  m.def("code_text", &recsys::code_text<std::int64_t>, "offsets"_a.noconvert(), "bytes"_a);
  m.def("code_objects", &recsys::code_objects, "array"_a);
  m.def("sum_slices", &recsys::sum_slices, "values"_a, "first"_a, "second"_a);
  m.def("rank_scores", &recsys::rank_scores_of<float>, "scores"_a.noconvert(), "candidate"_a.noconvert(), "rank"_a, "truth_indptr"_a, "truth_items"_a,
        "k"_a, "lengths"_a.noconvert(), "list_items"_a.noconvert(), "list_scores"_a.noconvert(),
        "above"_a.noconvert(), "tied"_a.noconvert(), "ahead"_a.noconvert(), "own"_a.noconvert(),
        "n_candidates"_a.noconvert(), "threads"_a, "cpu_level"_a);
  m.def("rank_scores", &recsys::rank_scores_of<double>, "scores"_a.noconvert(), "candidate"_a.noconvert(), "rank"_a, "truth_indptr"_a, "truth_items"_a,
        "k"_a, "lengths"_a.noconvert(), "list_items"_a.noconvert(), "list_scores"_a.noconvert(),
        "above"_a.noconvert(), "tied"_a.noconvert(), "ahead"_a.noconvert(), "own"_a.noconvert(),
        "n_candidates"_a.noconvert(), "threads"_a, "cpu_level"_a);
  m.def("cpu_levels", &recsys::level_names);
}
