// The Python binding of the native kernels. Whatever is passed, nothing here reads or writes past an array: every
// binding checks types, shapes, offsets and ranges itself, and what it returns is new memory, which no argument can
// share. The one thing it trusts is that no other thread changes the arguments while it runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bound.hpp"
#include "cpu.hpp"
#include "dense.hpp"
#include "fpstate.hpp"
#include "match.hpp"
#include "nested_dicts.hpp"
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
using Grid = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Csr = std::pair<In<std::int64_t>, In<std::int32_t>>;  // indptr, items

constexpr std::int64_t kMostItems = std::numeric_limits<std::int32_t>::max();
constexpr int kMostThreads = 1 << 10;

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument(message);
}

template <class Array>
std::int64_t size_of(const Array& array) {
  return static_cast<std::int64_t>(array.size());
}

// Loops over vectors count on aligned numbers.
void require_aligned(const void* data, std::size_t alignment) {
  require(reinterpret_cast<std::uintptr_t>(data) % alignment == 0, "an array is not aligned in memory");
}

template <class Array>
auto data_of(const Array& array) {
  require_aligned(array.data(), sizeof(*array.data()));
  return array.data();
}

template <class T>
const T* data_of(const char* name, const In<T>& array, std::int64_t size) {
  require(size_of(array) == size,
          std::string(name) + " has " + std::to_string(array.size()) + " entries, expected " + std::to_string(size));
  return data_of(array);
}

template <class T>
void require_within(const char* name, const In<T>& values, std::int64_t limit) {
  const T* const data = data_of(values);
  T low = 0, high = -1;
  for (std::int64_t i = 0; i < size_of(values); ++i) {
    low = std::min(low, data[i]);
    high = std::max(high, data[i]);
  }
  require(low >= 0 && high < limit, std::string(name) + " must lie in [0, " + std::to_string(limit) + ")");
}

// CSR rows of n_cases cases: offsets that rise from 0 to the number of items.
Rows rows_of(const char* name, const Csr& csr, std::int64_t n_cases) {
  const std::int64_t* const indptr = data_of(name, csr.first, n_cases + 1);
  bool falls = indptr[0] != 0 || indptr[n_cases] != size_of(csr.second);
  for (std::int64_t c = 0; c < n_cases; ++c) falls |= indptr[c + 1] < indptr[c];
  require(!falls, std::string(name) + ": indptr must rise from 0 to the number of items");
  return {indptr, data_of(csr.second)};
}

Rows rows_of(const char* name, const std::optional<Csr>& csr, std::int64_t n_cases, std::int64_t n_items) {
  if (!csr) return {};
  const Rows rows = rows_of(name, *csr, n_cases);
  require_within(name, csr->second, n_items);
  return rows;
}

// An item may be smaller than the one before it only where a row begins.
void require_ascending(const char* name, const Rows& rows, std::int64_t n_cases) {
  if (!rows.indptr) return;
  std::int64_t n_falls = 0;
  for (std::int64_t i = 1; i < rows.indptr[n_cases]; ++i) n_falls += rows.items[i] < rows.items[i - 1];
  for (std::int64_t c = 0; c < n_cases; ++c) {
    const std::int64_t start = rows.indptr[c];
    if (start > 0 && start < rows.indptr[c + 1]) n_falls -= rows.items[start] < rows.items[start - 1];
  }
  require(n_falls == 0, std::string(name) + ": the items of a case must be in ascending order");
}

const Level& checked_level(const std::string& cpu_level) { return level_of(level_named(cpu_level)); }

void require_threads(int threads) {
  require(threads >= 1 && threads <= kMostThreads, "threads must lie in [1, " + std::to_string(kMostThreads) + "]");
}

template <class T>
constexpr const char* kTypeName = "";
template <>
constexpr const char* kTypeName<std::int32_t> = "int32";
template <>
constexpr const char* kTypeName<std::int64_t> = "int64";
template <>
constexpr const char* kTypeName<double> = "float64";

// A new array that NumPy owns, so that Python may shorten it in place.
template <class T>
struct Fresh {
  explicit Fresh(std::int64_t n, const char* how = "zeros")
      : array(nb::module_::import_("numpy").attr(how)(n, kTypeName<T>)),
        view(nb::cast<nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array)) {
    require(size_of(view) == n, "NumPy made an array of another size");
  }
  T* data() const { return view.data(); }

  nb::object array;
  nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> view;
};

// The columns of a ScanResult: lists have k places per case, and their lengths are where Python puts the indptr.
struct Results {
  Results(std::int64_t n_cases, std::int64_t k, std::int64_t n_truth)
      : lengths(n_cases),
        list_items(places(n_cases, k), "empty"),
        list_scores(places(n_cases, k), "empty"),
        above(n_truth),
        tied(n_truth),
        ahead(n_truth),
        truth_scores(n_truth),
        n_candidates(n_cases) {}

  nb::tuple columns() const {
    return nb::make_tuple(lengths.array, list_items.array, list_scores.array, above.array, tied.array, ahead.array,
                          truth_scores.array, n_candidates.array);
  }

  Fresh<std::int64_t> lengths;
  Fresh<std::int32_t> list_items;
  Fresh<double> list_scores;
  Fresh<std::int64_t> above, tied, ahead;
  Fresh<double> truth_scores;
  Fresh<std::int64_t> n_candidates;

 private:
  static std::int64_t places(std::int64_t n_cases, std::int64_t k) {
    require(k == 0 || n_cases <= std::numeric_limits<std::int64_t>::max() / 8 / k, "k places per case are too many");
    return n_cases * k;
  }
};

// Hands a vector over to NumPy without a copy.
template <class T>
nb::object array_of(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  std::vector<T>* const kept = owned.release();  // the capsule deletes it
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
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

nb::tuple match_lists(const Csr& lists, const Csr& truth, int threads, const std::string& cpu_level) {
  const std::int64_t n_cases = size_of(lists.first) - 1;
  require(n_cases >= 0 && n_cases <= kMostItems, "lists: indptr needs 1 to 2^31 entries");
  require_threads(threads);
  const Rows listed = rows_of("lists", lists, n_cases), judged = rows_of("truth", truth, n_cases);
  const Level& level = checked_level(cpu_level);
  constexpr std::int64_t kCasesPerBlock = 1 << 15;
  const std::int64_t n_blocks = std::max<std::int64_t>(1, (n_cases + kCasesPerBlock - 1) / kCasesPerBlock);
  std::vector<Matched> parts(static_cast<std::size_t>(n_blocks));
  const nb::object silent = nb::none();
  Columns all;
  {
    nb::gil_scoped_release no_gil;
    const Body body = [&](int, std::int64_t block, const Cancel&) {
      const std::int64_t start = block * kCasesPerBlock;
      match_cases(listed, judged, start, std::min(n_cases, start + kCasesPerBlock), level, parts[block]);
    };
    run_blocks(n_blocks, threads, body, watching(silent));
    all = joined(parts, judged);
  }
  return nb::make_tuple(array_of(std::move(all.at)), array_of(std::move(all.truth)), array_of(std::move(all.of)),
                        array_of(std::move(all.repeat)), all.n_repeated, all.first_repeated);
}

template <class Table, class Id>
nb::object place_rows(const In<Id>& cases, const In<Id>& items, const std::optional<In<std::int64_t>>& ranks, int order,
                      std::int64_t limit, const std::string& cpu_level) {
  const std::int64_t n = size_of(cases);
  require(order >= 0 && order <= static_cast<int>(Order::ascending), "order must be 0, 1 or 2");
  require(ranks || order != static_cast<int>(Order::by_rank), "rows are ordered by rank, but there are no ranks");
  // Memory for the cases grows with the limit.
  require(limit >= 0 && limit <= kMostItems + 1, "limit must lie in [0, 2^31]");
  const Table table{data_of(cases), data_of("items", items, n), ranks ? data_of("ranks", *ranks, n) : nullptr, n};
  const Level& level = checked_level(cpu_level);
  const Fresh<std::int32_t> placed_items(n, "empty");
  Placed placed;
  {
    nb::gil_scoped_release no_gil;
    placed = place(table, static_cast<Order>(order), limit, level, placed_items.data());
  }
  if (!placed.done) return nb::none();
  return nb::make_tuple(array_of(std::move(placed.ids)), array_of(std::move(placed.indptr)), placed_items.array,
                        placed.highest);
}

const Dense<float>& dense_of(const Level& level, float) { return level.floats; }
const Dense<double>& dense_of(const Level& level, double) { return level.doubles; }

template <class T>
nb::tuple rank_scores_of(const Grid<T>& scores, const Grid<std::uint8_t>& candidate, const In<std::int64_t>& rank,
                         const Csr& truth, std::int64_t k, int threads, const std::string& cpu_level) {
  const auto n_rows = static_cast<std::int64_t>(scores.shape(0)), n_items = static_cast<std::int64_t>(scores.shape(1));
  require(n_items <= kMostItems, "the kernels count items in int32");
  require(candidate.shape(0) == scores.shape(0) && candidate.shape(1) == scores.shape(1),
          "candidate must have the shape of scores");
  require(k >= 0 && k <= n_items, "k must lie in [0, number of items]");
  require_threads(threads);
  const Rows judged = rows_of("truth", std::optional<Csr>(truth), n_rows, n_items);
  const ScoreRows<T> rows{data_of(scores), data_of(candidate), n_rows, n_items, data_of("rank", rank, n_items),
                          judged.indptr,   judged.items,       k};
  const Dense<T>& level = dense_of(checked_level(cpu_level), T{});
  const Results results(n_rows, k, size_of(truth.second));
  const ScoreAnswers answers{results.lengths.data(),      results.list_items.data(),  results.list_scores.data(),
                             results.above.data(),        results.tied.data(),        results.ahead.data(),
                             results.truth_scores.data(), results.n_candidates.data()};
  constexpr std::int64_t kScoresPerBlock = 1 << 18;
  const std::int64_t n_each = std::max<std::int64_t>(1, kScoresPerBlock / std::max<std::int64_t>(1, n_items));
  const nb::object silent = nb::none();
  {
    nb::gil_scoped_release no_gil;
    const Body body = [&](int, std::int64_t block, const Cancel&) {
      const ExactFloats exact;
      rank_scores(rows, block * n_each, std::min(n_rows, (block + 1) * n_each), level, answers);
    };
    run_blocks((n_rows + n_each - 1) / n_each, threads, body, watching(silent));
  }
  return results.columns();
}

nb::tuple sum_slices(const In<double>& values, double first, double second) {
  const Level& level = checked_level("");
  const double* const data = data_of(values);
  Slices sums{};
  {
    nb::gil_scoped_release no_gil;
    const ExactFloats exact;
    sums = level.slices(data, size_of(values), first, second);
  }
  return nb::make_tuple(sums.first, sums.second, sums.left);
}

// The code of each row, and the different strings.
nb::tuple coded(Coder& coder) {
  return nb::make_tuple(array_of(std::move(coder.codes())), nb::cast(coder.take_texts()));
}

nb::tuple merge_texts(const SortedTexts& texts, const SortedTexts& others) {
  Merged merged;
  {
    nb::gil_scoped_release no_gil;
    merged = merge(texts, others);
  }
  return nb::make_tuple(array_of(std::move(merged.first)), array_of(std::move(merged.second)),
                        nb::cast(std::move(merged.texts)));
}

nb::list strings_of(const SortedTexts& texts) {
  const std::int64_t n = texts.size();
  nb::list list = nb::steal<nb::list>(PyList_New(n));
  if (!list.is_valid()) throw nb::python_error();
  for (std::int64_t i = 0; i < n; ++i) {
    PyObject* const text = PyUnicode_DecodeUTF8(texts[i].begin, texts[i].size, nullptr);
    if (!text) throw nb::python_error();
    PyList_SetItem(list.ptr(), i, text);  // takes the reference
  }
  return list;
}

template <class Offset>
nb::object code_text(const In<Offset>& offsets, const In<std::uint8_t>& bytes) {
  const std::int64_t n = size_of(offsets) - 1, n_bytes = size_of(bytes);
  require(n >= 0, "offsets need at least one entry");
  const Offset* const at = data_of(offsets);
  const char* const start = n_bytes ? reinterpret_cast<const char*>(bytes.data()) : "";
  Coder coder(n);
  {
    nb::gil_scoped_release no_gil;
    Text batch[Coder::kBatch];
    for (std::int64_t i = 0; i < n;) {
      const int filled = static_cast<int>(std::min<std::int64_t>(Coder::kBatch, n - i));
      bool is_off = at[i] < 0 || at[i + filled] > n_bytes;
      for (int row = 0; row < filled; ++row) is_off |= at[i + row + 1] < at[i + row];
      if (is_off) throw std::invalid_argument("offsets must rise and stay within the bytes");
      for (int row = 0; row < filled; ++row, ++i) {
        const std::int64_t size = at[i + 1] - at[i];
        if (size >= INT32_MAX) throw std::length_error("a string of more than 2 GiB");
        batch[row] = {start + at[i], static_cast<std::uint32_t>(size)};
      }
      coder.add(batch, filled, reinterpret_cast<std::uintptr_t>(start + n_bytes));
    }
    coder.sort();
  }
  return coded(coder);
}

// The buffer of a one-dimensional NumPy array of objects.
class Objects {
 public:
  explicit Objects(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0) throw nb::python_error();
    const bool is_objects = view_.format && std::strcmp(view_.format, "O") == 0 && view_.ndim == 1 &&
                            view_.itemsize == static_cast<Py_ssize_t>(sizeof(PyObject*));
    if (is_objects && reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(PyObject*) == 0) return;
    PyBuffer_Release(&view_);
    throw nb::type_error("expected an aligned one-dimensional array of objects");
  }
  ~Objects() { PyBuffer_Release(&view_); }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  std::int64_t size() const { return view_.len / static_cast<std::int64_t>(sizeof(PyObject*)); }
  PyObject* operator[](std::int64_t i) const { return static_cast<PyObject**>(view_.buf)[i]; }

 private:
  Py_buffer view_{};
};

// None if one of the objects is not a plain str. The global lock is held all the time: the objects are borrowed
// from the array, and their UTF-8 from the objects.
nb::object code_objects(const nb::object& array) {
  const Objects objects(array);
  const std::int64_t n = objects.size();
  Coder coder(n);
  Text batch[Coder::kBatch];
  for (std::int64_t i = 0; i < n;) {
    int filled = 0;
    for (; filled < Coder::kBatch && i < n; ++filled, ++i) {
      RECSYS_PREFETCH(objects[std::min(i + Coder::kBatch, n - 1)]);
      PyObject* const value = objects[i];
      if (filled > 0 && value == objects[i - 1]) {  // what reads a file makes one object of equal strings
        batch[filled] = batch[filled - 1];
        continue;
      }
      if (!value || !PyUnicode_CheckExact(value)) return nb::none();
      const Utf8 text = utf8_of(value);
      if (!text.begin) throw nb::python_error();
      if (text.size >= INT32_MAX) return nb::none();
      batch[filled] = {text.begin, static_cast<std::uint32_t>(text.size)};
    }
    coder.add(batch, filled);
  }
  coder.sort();
  return coded(coder);
}

// Types that read like dict, float and int; they run no Python code. Of `own` numbers, those that are floats in Python.
KnownTypes known_types(bool own) {
  const auto type_of = [](const char* module, const char* name) {
    return reinterpret_cast<PyTypeObject*>(nb::module_::import_(module).attr(name).ptr());
  };
  KnownTypes types{{type_of("collections", "defaultdict")}, {type_of("numpy", "float64")}, {}};
  if (own) return types;
  types.floats.push_back(type_of("numpy", "float32"));
  types.ints = {type_of("numpy", "int64"), type_of("numpy", "int32")};
  return types;
}

nb::list list_of(Held& held) {
  nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(held.objects().size())));
  if (!list.is_valid()) throw nb::python_error();
  Py_ssize_t at = 0;
  for (PyObject* const object : held.release()) PyList_SetItem(list.ptr(), at++, object);  // takes the reference
  return list;
}

Coder coded_cases(const DictWalk& walk) {
  const std::vector<PyObject*>& names = walk.cases.objects();
  Coder coder(static_cast<std::int64_t>(names.size()));
  for (PyObject* const name : names) {
    const Utf8 text = utf8_of(name);
    if (!text.begin) throw nb::python_error();
    const Text one{text.begin, static_cast<std::uint32_t>(text.size)};
    coder.add(&one, 1);
  }
  coder.sort();
  return coder;
}

// The columns of the hits with the cases in the order of their ids; None where walk_dicts finds that it cannot.
nb::object rank_dicts(const nb::object& run, const nb::object& truth, bool shared, bool keep, bool float32) {
  DictWalk walk;
  const WalkOptions options{shared, keep, float32};
  const HeldTruth* held = nullptr;
  if (nb::try_cast(truth, held) && held) {
    require(shared && !keep, "a truth that is held goes with shared cases alone");
    if (!walk_dict(run.ptr(), *held, known_types(float32), options, walk)) return nb::none();
  } else if (!walk_dicts(run.ptr(), truth.ptr(), known_types(float32), options, walk)) {
    return nb::none();
  }
  Coder coder = coded_cases(walk);
  const std::vector<std::int64_t>& order = coder.firsts();
  const std::size_t n_cases = order.size(), n_hits = walk.hits.size();
  std::vector<std::int64_t> first_hit(n_cases + 1), first_grade(n_cases + 1), n_listed, indptr{0};
  for (std::size_t c = 0; c < n_cases; ++c) {
    first_hit[c + 1] = first_hit[c] + walk.n_hits[c];
    first_grade[c + 1] = first_grade[c] + walk.n_judged[c];
  }
  std::vector<double> truth_grade, grade;
  std::vector<std::int32_t> of;
  std::vector<std::int64_t> above, tied, ahead_by_id, ahead_given;
  truth_grade.reserve(walk.grades.size()), grade.reserve(n_hits), of.reserve(n_hits), above.reserve(n_hits);
  for (std::size_t code = 0; code < n_cases; ++code) {
    const std::int64_t from = order[code];
    n_listed.push_back(walk.lists.sizes[from]);
    for (std::int64_t i = first_grade[from]; i < first_grade[from + 1]; ++i) truth_grade.push_back(walk.grades[i]);
    indptr.push_back(static_cast<std::int64_t>(truth_grade.size()));
    for (std::int64_t i = first_hit[from]; i < first_hit[from + 1]; ++i) {
      const DictHit& hit = walk.hits[i];
      of.push_back(static_cast<std::int32_t>(code)), grade.push_back(hit.grade), above.push_back(hit.above);
      if (!walk.any_tied) continue;
      tied.push_back(hit.tied), ahead_by_id.push_back(hit.ahead_by_id), ahead_given.push_back(hit.ahead_given);
    }
  }
  nb::object ties = nb::none(), read = nb::none();
  if (walk.any_tied)
    ties =
        nb::make_tuple(array_of(std::move(tied)), array_of(std::move(ahead_by_id)), array_of(std::move(ahead_given)));
  if (keep)
    read = nb::make_tuple(array_of(std::move(walk.lists.sizes)), list_of(walk.lists.items),
                          array_of(std::move(walk.lists.numbers)), array_of(std::move(walk.in_truth)),
                          array_of(std::move(walk.truth.sizes)), list_of(walk.truth.items),
                          array_of(std::move(walk.truth.numbers)));
  return nb::make_tuple(list_of(walk.cases), array_of(std::move(coder.codes())), walk.n_of_run,
                        array_of(std::move(n_listed)), array_of(std::move(indptr)), array_of(std::move(truth_grade)),
                        array_of(std::move(of)), array_of(std::move(grade)), array_of(std::move(above)), ties,
                        walk.has_ties, walk.n_negative, walk.lowest, walk.highest, read);
}

// {name: {key: value}} of a row of values for each name.
nb::dict dict_rows(const nb::list& names, const nb::list& keys, const Grid<double>& rows) {
  require(rows.shape(0) == names.size() && rows.shape(1) == keys.size(),
          "rows must have a value for each name and key");
  const double* value = data_of(rows);
  const NoCollection pause;
  std::vector<nb::object> each, key;  // held: a dict that is filled may run code of its keys, and that anything
  for (const nb::handle name : names) each.push_back(nb::borrow(name));
  for (const nb::handle column : keys) key.push_back(nb::borrow(column));
  require(each.size() == rows.shape(0) && key.size() == rows.shape(1), "the lists changed");
  nb::dict out;
  for (const nb::object& name : each) {
    nb::dict row;
    for (const nb::object& column : key) {
      const nb::object number = nb::steal(PyFloat_FromDouble(*value++));
      if (!number.is_valid() || PyDict_SetItem(row.ptr(), column.ptr(), number.ptr()) != 0) throw nb::python_error();
    }
    if (PyDict_SetItem(out.ptr(), name.ptr(), row.ptr()) != 0) throw nb::python_error();
  }
  return out;
}

using Factors = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

Matrix matrix_of(const Factors& factors) {
  const bool is_double = factors.dtype() == nb::dtype<double>();
  if (!is_double && factors.dtype() != nb::dtype<float>()) throw nb::type_error("factors must be float32 or float64");
  require_aligned(factors.data(), is_double ? sizeof(double) : sizeof(float));
  return {factors.data(),
          is_double,
          static_cast<std::int64_t>(factors.shape(0)),
          static_cast<std::int64_t>(factors.shape(1)),
          factors.stride(0),
          factors.stride(1)};
}

Matrix chosen_of(const Factors& factors, const std::optional<In<std::int64_t>>& rows) {
  Matrix matrix = matrix_of(factors);
  if (!rows) return matrix;
  require_within("user_rows", *rows, matrix.n_rows);
  matrix.chosen = rows->data();
  matrix.n_rows = size_of(*rows);
  return matrix;
}

nb::tuple scan_factors(const Factors& users, const Factors& items, const std::optional<In<std::int64_t>>& user_rows,
                       std::int32_t k, std::int64_t deepest, const std::optional<Csr>& truth,
                       const std::optional<Csr>& seen, const std::optional<Csr>& eligible,
                       const std::optional<In<double>>& bias, const std::optional<In<std::uint8_t>>& never,
                       const In<std::int64_t>& tie_key, double largest, int threads, std::int64_t memory_budget,
                       int prune, const std::string& cpu_level, const nb::object& progress) {
  const Matrix rows = chosen_of(users, user_rows), columns = matrix_of(items);
  const std::int64_t n_cases = rows.n_rows, n_items = columns.n_rows;
  require(rows.n_columns == columns.n_columns && rows.n_columns < kMostFactors,
          "users and items must have equally many factors, fewer than 2^20");
  require(n_items <= kMostItems, "the kernels count items in int32");
  require(k >= 0 && k <= n_items, "k must lie in [0, number of items]");
  require(deepest >= 1, "deepest must be at least 1");
  require(largest >= 0 && std::isfinite(largest), "largest must be a finite number from 0");
  require(prune >= 0 && prune <= static_cast<int>(Prune::decide), "prune must be 0, 1 or 2");
  require_threads(threads);
  const Asked asked{rows,
                    k,
                    rows_of("truth", truth, n_cases, n_items),
                    rows_of("seen", seen, n_cases, n_items),
                    rows_of("eligible", eligible, n_cases, n_items),
                    deepest};
  require_ascending("seen", asked.seen, n_cases);
  require_ascending("eligible", asked.eligible, n_cases);
  const Items catalogue{columns, bias ? data_of("bias", *bias, n_items) : nullptr,
                        never ? data_of("never", *never, n_items) : nullptr, data_of("tie_key", tie_key, n_items)};
  const Plan plan{level_named(cpu_level), threads, std::max<std::int64_t>(0, memory_budget), static_cast<Prune>(prune),
                  largest};
  const Results results(n_cases, k, truth ? size_of(truth->second) : 0);
  const Answers answers{results.list_items.data(),   results.list_scores.data(), results.lengths.data(),
                        results.above.data(),        results.tied.data(),        results.ahead.data(),
                        results.truth_scores.data(), results.n_candidates.data()};
  {
    nb::gil_scoped_release no_gil;
    scan(asked, catalogue, answers, plan, watching(progress));
  }
  return results.columns();
}

std::vector<std::string> level_names() {
  std::vector<std::string> names;
  for (const CpuLevel level : cpu_levels()) names.push_back(name_of(level));
  return names;
}

// Arrays are taken as they are or not at all: a conversion would be a copy that the caller did not ask for.
auto array(const char* name) { return nb::arg(name).noconvert(); }

template <class T>
void define_rank_scores(nb::module_& m) {
  m.def("rank_scores", &rank_scores_of<T>, array("scores"), array("candidate"), nb::kw_only(), array("rank"),
        array("truth"), "k"_a, "threads"_a = 1, "cpu_level"_a = "");
}

}  // namespace
}  // namespace recsys

NB_MODULE(_native, m) {
  using recsys::array;
  m.doc() = "Native kernels; use them through recsys.kernels.";
  m.def("match_lists", &recsys::match_lists, array("lists"), array("truth"), nb::kw_only(), "threads"_a = 1,
        "cpu_level"_a = "");
  m.def("scan", &recsys::scan_factors, array("users"), array("items"), nb::kw_only(), array("user_rows") = nb::none(),
        "k"_a = 0, "deepest"_a = INT64_MAX, array("truth") = nb::none(), array("seen") = nb::none(),
        array("eligible") = nb::none(), array("bias") = nb::none(), array("never") = nb::none(), array("tie_key"),
        "largest"_a, "threads"_a = 1, "memory_budget"_a = 64 << 20, "prune"_a = 2, "cpu_level"_a = "",
        "progress"_a = nb::none());
  recsys::define_rank_scores<float>(m);
  recsys::define_rank_scores<double>(m);
  m.def("place_rows", &recsys::place_rows<recsys::RowTable, std::int64_t>, array("cases"), array("items"),
        array("ranks") = nb::none(), nb::kw_only(), "order"_a, "limit"_a, "cpu_level"_a = "");
  m.def("place_rows", &recsys::place_rows<recsys::CodeTable, std::int32_t>, array("cases"), array("items"),
        array("ranks") = nb::none(), nb::kw_only(), "order"_a, "limit"_a, "cpu_level"_a = "");
  nb::class_<recsys::SortedTexts>(m, "SortedTexts")
      .def("__len__", &recsys::SortedTexts::size)
      .def("is_ascii", &recsys::SortedTexts::is_ascii)
      .def("equals", &recsys::SortedTexts::equals, "others"_a)
      .def("merge", &recsys::merge_texts, "others"_a)
      .def("strings", &recsys::strings_of);
  m.def("code_text", &recsys::code_text<std::int32_t>, array("offsets"), array("bytes"));
  m.def("code_text", &recsys::code_text<std::int64_t>, array("offsets"), array("bytes"));
  m.def("code_objects", &recsys::code_objects, "array"_a);
  m.def("rank_dicts", &recsys::rank_dicts, "run"_a, "truth"_a, nb::kw_only(), "shared"_a = false, "keep"_a = false,
        "float32"_a = false);
  nb::class_<recsys::HeldTruth>(m, "HeldTruth").def("dicts", [](const recsys::HeldTruth& held) {
    const recsys::NoCollection pause;
    return held.dicts();
  });
  m.def(
      "hold_truth",
      [](const nb::object& truth) {
        auto held = std::make_unique<recsys::HeldTruth>();
        return held->read(truth.ptr()) ? nb::cast(std::move(held)) : nb::none();
      },
      "truth"_a);
  m.def("dict_rows", &recsys::dict_rows, "names"_a, "keys"_a, array("rows"));
  m.def("sum_slices", &recsys::sum_slices, array("values"), "first"_a, "second"_a);
  m.def("cpu_levels", &recsys::level_names);
}
