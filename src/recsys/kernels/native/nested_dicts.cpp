// Places among few scores are counted, among many they are looked up in sorted ones. Only items that share a score are
// compared by their text, whose UTF-8 bytes sort as Python sorts strings.
#include "nested_dicts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "portability.hpp"
#include "strings.hpp"

namespace recsys {
namespace {

constexpr long long kInexact = 1LL << 53;  // the first whole number after which double skips one
constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr std::size_t kFewScores = 32;  // places among so few are counted
constexpr std::size_t kManyCases = 4096;

// glibc gives memory back to the kernel once more is free than twice the largest block it was handed back, and the
// next call waits for every page of it again. It is handed back a block as large as what such calls take.
void keep_pages(std::size_t n_cases) {
  constexpr std::size_t kBytesOfCase = 1024, kMost = std::size_t{24} * 1024 * 1024;
  if (n_cases >= kManyCases) std::vector<char>().reserve(std::min(n_cases * kBytesOfCase, kMost));
}

bool has(const std::vector<PyTypeObject*>& types, PyObject* object) {
  return std::find(types.begin(), types.end(), Py_TYPE(object)) != types.end();
}

// The bytes of a str; none if it is of another type, of 2 GiB or holds half a character.
Text text_of(PyObject* object) {
  if (!PyUnicode_CheckExact(object)) return {nullptr, 0};
  const Utf8 text = utf8_of(object);
  if (!text.begin) PyErr_Clear();
  return {text.size < INT32_MAX ? text.begin : nullptr, static_cast<std::uint32_t>(text.size)};
}

bool is_text(PyObject* object) { return text_of(object).begin != nullptr; }

bool is_before(PyObject* a, PyObject* b) { return before(text_of(a), text_of(b)); }

bool read_number(PyObject* object, const KnownTypes& types, double& number) {
  if (PyFloat_CheckExact(object)) {
#ifdef Py_LIMITED_API
    number = PyFloat_AsDouble(object);
#else
    number = PyFloat_AS_DOUBLE(object);
#endif
    return std::isfinite(number);
  }
  if (PyLong_CheckExact(object) || PyBool_Check(object)) {
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    number = static_cast<double>(whole);
    return overflow == 0 && whole < kInexact && whole > -kInexact;
  }
  const bool is_int = has(types.ints, object);
  if (!is_int && !has(types.floats, object)) return false;
  number = PyFloat_AsDouble(object);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return std::isfinite(number) && (!is_int || std::abs(number) < static_cast<double>(kInexact));
}

// Reads one case after the other, into the same memory.
class Walker {
 public:
  Walker(const KnownTypes& types, const WalkOptions& options, DictWalk& walk)
      : types_(types), options_(options), walk_(walk) {}

  bool is_dict(PyObject* object) const { return PyDict_CheckExact(object) || has(types_.dicts, object); }

  // Memory for the columns of so many cases; what is not used of it costs nothing.
  void expect(std::size_t n_cases) {
    keep_pages(n_cases);
    walk_.hits.reserve(8 * n_cases), walk_.grades.reserve(16 * n_cases);
    for (auto* const column : {&walk_.lists.sizes, &walk_.truth.sizes, &walk_.n_judged, &walk_.n_hits})
      column->reserve(n_cases);
  }

  // A case and its two dicts, of which one may be missing.
  bool add(PyObject* name, PyObject* listed, PyObject* judged) {
    if (!gather(listed, listed_) || !gather(judged, judged_) || !read_scores() || !read_truth()) return false;
    return add(name, listed, judged != nullptr, {judgements_.data(), judgements_.data() + judgements_.size()});
  }

  // A case, its list and what is judged of it.
  bool add(PyObject* name, PyObject* listed, std::pair<const Judgement*, const Judgement*> judged) {
    for (const Judgement* one = judged.first; one != judged.second; ++one) RECSYS_PREFETCH(one->item);
    return gather(listed, listed_) && read_scores() && add(name, listed, true, judged);
  }

 private:
  struct Entry {
    PyObject *key, *value;
  };
  struct Found {
    PyObject* key;
    double score;
    DictHit hit;
  };
  struct Member {
    PyObject* key;
    std::int32_t place;
  };

  bool add(PyObject* name, PyObject* listed, bool in_truth, std::pair<const Judgement*, const Judgement*> judged) {
    if (!look_up(listed, judged)) return false;
    find_places();
    walk_.cases.add(name);
    walk_.in_truth.push_back(in_truth);
    walk_.lists.sizes.push_back(static_cast<std::int64_t>(listed_.size()));
    walk_.truth.sizes.push_back(judged.second - judged.first);
    walk_.n_judged.push_back(static_cast<std::int64_t>(grades_.size()));
    walk_.n_hits.push_back(static_cast<std::int64_t>(found_.size()));
    std::sort(grades_.begin(), grades_.end(), std::greater<>());
    walk_.grades.insert(walk_.grades.end(), grades_.begin(), grades_.end());
    for (const Found& found : found_) walk_.hits.push_back(found.hit);
    return true;
  }

  // All objects of a case are asked for before the first is read, so that waiting for memory overlaps.
  bool gather(PyObject* dict, std::vector<Entry>& entries) const {
    entries.clear();
    if (!dict) return true;
    if (!is_dict(dict)) return false;
    Entry entry{};
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &entry.key, &entry.value);) {
      RECSYS_PREFETCH(entry.key);
      RECSYS_PREFETCH(entry.value);
      entries.push_back(entry);
    }
    return true;
  }

  bool read_score(PyObject* value, double& score) const {
    if (!read_number(value, types_, score)) return false;
    if (options_.float32)
      score = std::abs(score) > kLargestFloat ? HUGE_VAL : static_cast<double>(static_cast<float>(score));
    return std::isfinite(score);
  }

  bool read_scores() {
    double score = 0;
    scores_.clear();
    for (const Entry& entry : listed_) {
      if (!is_text(entry.key) || !read_score(entry.value, score)) return false;
      scores_.push_back(score);
      if (options_.keep) walk_.lists.items.add(entry.key), walk_.lists.numbers.push_back(score);
    }
    return true;
  }

  bool read_truth() {
    double grade = 0;
    judgements_.clear();
    for (const Entry& entry : judged_) {
      if (!is_text(entry.key) || !read_number(entry.value, types_, grade)) return false;
      if (options_.keep) walk_.truth.items.add(entry.key), walk_.truth.numbers.push_back(grade);
      judgements_.push_back({entry.key, grade});
    }
    return true;
  }

  // All keys of `listed` are plain strings here, so that no comparison of a lookup runs Python code.
  bool look_up(PyObject* listed, std::pair<const Judgement*, const Judgement*> judged) {
    double score = 0;
    grades_.clear(), found_.clear();
    for (const Judgement* one = judged.first; one != judged.second; ++one) {
      const double grade = one->grade;
      walk_.lowest = std::min(walk_.lowest, grade);
      walk_.highest = std::max(walk_.highest, grade);
      walk_.n_negative += grade < 0;
      if (grade < 0) continue;
      grades_.push_back(grade);
      PyObject* const value = listed ? PyDict_GetItemWithError(listed, one->item) : nullptr;
      if (!value) continue;
      if (!read_score(value, score)) return false;
      found_.push_back({one->item, score, {grade, 0, 1, 0, 0}});
    }
    return true;
  }

  void find_places() {
    const bool is_sorted = std::is_sorted(scores_.begin(), scores_.end(), std::greater<>());
    const bool is_counted = !is_sorted && scores_.size() <= kFewScores;
    if (!is_counted) {
      sorted_ = scores_;
      if (!is_sorted) std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
    }
    if (!walk_.has_ties) walk_.has_ties = is_counted ? any_equal() : has_repeat(sorted_);
    bool is_tied = false;
    for (Found& found : found_) {
      std::int32_t above = 0, tied = 0;
      if (is_counted) {
        for (const double score : scores_) above += score > found.score, tied += score == found.score;
      } else {
        const auto equal = std::equal_range(sorted_.begin(), sorted_.end(), found.score, std::greater<>());
        above = static_cast<std::int32_t>(equal.first - sorted_.begin());
        tied = static_cast<std::int32_t>(equal.second - equal.first);
      }
      found.hit.above = above, found.hit.tied = tied;
      is_tied |= tied > 1;
    }
    if (is_tied) order_ties();
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.hit.above, a.hit.ahead_by_id) < std::tie(b.hit.above, b.hit.ahead_by_id);
    });
    walk_.any_tied |= is_tied;
  }

  bool any_equal() const {
    int n_equal = 0;
    for (std::size_t i = 1; i < scores_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) n_equal += scores_[i] == scores_[j];
    return n_equal > 0;
  }

  static bool has_repeat(const std::vector<double>& sorted) {
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }

  void order_ties() {
    const auto by_score = [](const Found& a, const Found& b) { return a.score > b.score; };
    std::sort(found_.begin(), found_.end(), by_score);
    for (auto first = found_.begin(); first != found_.end();) {
      const auto last = std::upper_bound(first, found_.end(), *first, by_score);
      if (first->hit.tied > 1) order_group(first->score, first, last);
      first = last;
    }
  }

  // The judged items of one score among all that have it.
  template <class Iterator>
  void order_group(double score, Iterator first, Iterator last) {
    members_.clear();
    for (std::size_t i = 0; i < scores_.size(); ++i)
      if (scores_[i] == score) members_.push_back({listed_[i].key, static_cast<std::int32_t>(members_.size())});
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return is_before(a.key, b.key); });
    for (auto found = first; found != last; ++found) {
      const auto own = std::lower_bound(members_.begin(), members_.end(), found->key,
                                        [](const Member& a, PyObject* key) { return is_before(a.key, key); });
      found->hit.ahead_by_id = static_cast<std::int32_t>(own - members_.begin());
      found->hit.ahead_given = own == members_.end() ? 0 : own->place;  // it is always there
    }
  }

  const KnownTypes& types_;
  const WalkOptions& options_;
  DictWalk& walk_;
  std::vector<Entry> listed_, judged_;
  std::vector<Judgement> judgements_;
  std::vector<double> scores_, grades_, sorted_;
  std::vector<Found> found_;
  std::vector<Member> members_;
};

// The entries of a dict by their keys, most of which come in the order of the dict: a lookup waits for memory.
class InStep {
 public:
  explicit InStep(PyObject* dict) : dict_(dict) {}

  PyObject* entry_of(PyObject* name) {
    PyObject *next = nullptr, *entry = nullptr;
    Py_ssize_t at = at_;
    for (int step = 0; step < kMostSkipped && PyDict_Next(dict_, &at, &next, &entry); ++step) {
      if (!equal(text_of(next), text_of(name))) continue;
      at_ = at;
      return entry;
    }
    return PyDict_GetItemWithError(dict_, name);
  }

 private:
  static constexpr int kMostSkipped = 3;

  PyObject* dict_;
  Py_ssize_t at_ = 0;
};

}  // namespace

bool walk_dicts(PyObject* run, PyObject* truth, const KnownTypes& types, const WalkOptions& options, DictWalk& walk) {
  Walker walker(types, options, walk);
  if (!walker.is_dict(run) || !walker.is_dict(truth)) return false;
  PyObject *name = nullptr, *entry = nullptr;
  for (PyObject* const side : {run, truth})
    for (Py_ssize_t at = 0; PyDict_Next(side, &at, &name, &entry);)
      if (!is_text(name)) return false;
  walker.expect(static_cast<std::size_t>(PyDict_Size(run)));
  InStep truths(truth);
  for (Py_ssize_t at = 0; PyDict_Next(run, &at, &name, &entry);) {
    PyObject* const judged = truths.entry_of(name);
    if ((judged || !options.shared) && !walker.add(name, entry, judged)) return false;
  }
  walk.n_of_run = static_cast<std::int64_t>(walk.cases.objects().size());
  if (options.shared) return true;
  for (Py_ssize_t at = 0; PyDict_Next(truth, &at, &name, &entry);)
    if (!PyDict_GetItemWithError(run, name) && !walker.add(name, nullptr, entry)) return false;
  return true;
}

bool walk_dict(PyObject* run, const HeldTruth& truth, const KnownTypes& types, const WalkOptions& options,
               DictWalk& walk) {
  Walker walker(types, options, walk);
  if (!walker.is_dict(run)) return false;
  PyObject *name = nullptr, *entry = nullptr;
  walker.expect(truth.size());
  std::size_t next = 0;  // most cases come in the order of the truth
  for (Py_ssize_t at = 0; PyDict_Next(run, &at, &name, &entry);) {
    const Text text = text_of(name);
    if (!text.begin) return false;
    if (next == truth.size() || !equal(text, text_of(truth.name(next)))) next = truth.find(name);
    if (next == truth.size()) continue;
    if (!walker.add(name, entry, truth.judgements(next))) return false;
    ++next;
  }
  walk.n_of_run = static_cast<std::int64_t>(walk.cases.objects().size());
  return true;
}

bool HeldTruth::read(PyObject* truth) {
  if (!PyDict_CheckExact(truth)) return false;
  const KnownTypes no_others;
  PyObject *name = nullptr, *entry = nullptr, *item = nullptr, *number = nullptr;
  std::size_t n_items = 0;
  for (Py_ssize_t at = 0; PyDict_Next(truth, &at, &name, &entry);) {
    if (!is_text(name) || !PyDict_CheckExact(entry)) return false;
    n_items += static_cast<std::size_t>(PyDict_Size(entry));
  }
  judgements_.reserve(n_items), items_.reserve(n_items);
  for (Py_ssize_t at = 0; PyDict_Next(truth, &at, &name, &entry);) {
    for (Py_ssize_t in = 0; PyDict_Next(entry, &in, &item, &number);) {
      RECSYS_PREFETCH(item);
      judgements_.push_back({item, 0});
      double grade = 0;
      if (!PyLong_Check(number) || !read_number(number, no_others, grade)) return false;
      judgements_.back().grade = grade;
    }
    if (judgements_.size() == starts_.back()) continue;
    for (std::size_t i = starts_.back(); i < judgements_.size(); ++i) {
      if (!is_text(judgements_[i].item)) return false;
      items_.add(judgements_[i].item);
    }
    names_.add(name);
    starts_.push_back(judgements_.size());
  }
  return true;
}

std::size_t HeldTruth::find(PyObject* name) const {
  const auto view = [](PyObject* object) {
    const Text text = text_of(object);
    return std::string_view(text.begin, text.size);
  };
  if (places_.empty())
    for (std::size_t at = 0; at < size(); ++at) places_.emplace(view(this->name(at)), at);
  const auto found = places_.find(view(name));
  return found == places_.end() ? size() : found->second;
}

nanobind::dict HeldTruth::dicts() const {
  namespace nb = nanobind;
  nb::dict all;
  for (std::size_t at = 0; at < size(); ++at) {
    nb::dict judged;
    const auto [first, last] = judgements(at);
    for (const Judgement* one = first; one != last; ++one) {
      const nb::object grade = nb::steal(PyFloat_FromDouble(one->grade));
      if (!grade.is_valid() || PyDict_SetItem(judged.ptr(), one->item, grade.ptr()) != 0) throw nb::python_error();
    }
    if (PyDict_SetItem(all.ptr(), name(at), judged.ptr()) != 0) throw nb::python_error();
  }
  return all;
}

}  // namespace recsys
