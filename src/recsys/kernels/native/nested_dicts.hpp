// Two nested dicts of text, {case: {item: number}}: the ranks of the judged items among the scores of their case.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace recsys {

// References to Python objects.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    for (PyObject* const object : objects_) Py_DECREF(object);
  }

  void add(PyObject* object) {
    objects_.push_back(object);
    Py_INCREF(object);
  }
  void reserve(std::size_t n) { objects_.reserve(n); }
  const std::vector<PyObject*>& objects() const { return objects_; }

  // The caller owns the references from then on.
  std::vector<PyObject*> release() { return std::exchange(objects_, {}); }

 private:
  std::vector<PyObject*> objects_;
};

// The types that are read like dict, float and int. Reading a value of theirs runs no Python code.
struct KnownTypes {
  std::vector<PyTypeObject*> dicts, floats, ints;
};

// A judged item that was found: how many scores are above its own and how many equal it, its own among them, and how
// many of the equal ones go first by id and in the order of the dict.
struct DictHit {
  double grade;
  std::int32_t above, tied, ahead_by_id, ahead_given;
};

// One side as it was read, case after case in the order of the dicts.
struct DictSide {
  std::vector<std::int64_t> sizes;
  std::vector<double> numbers;
  Held items;
};

// The cases of the run in its order, then those of the truth alone. Judged items of a negative grade are counted, and
// left out of all else but the side that was read.
struct DictWalk {
  Held cases;
  std::int64_t n_of_run = 0;
  std::vector<std::uint8_t> in_truth;
  DictSide lists, truth;  // without `keep` only the sizes
  std::vector<std::int64_t> n_judged, n_hits;
  std::vector<double> grades;  // of each case, highest first
  std::vector<DictHit> hits;   // of each case, by place
  std::int64_t n_negative = 0;
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;  // of all grades
  bool has_ties = false;  // whether any two items of a case share a score
  bool any_tied = false;  // whether a judged item shares its score
};

struct WalkOptions {
  bool shared = false;   // only cases of both
  bool keep = false;     // what was read is kept
  bool float32 = false;  // scores are rounded to 32 bits
};

// False if anything is not plain: an id that is not a str or not a valid one, a number that is not finite, a whole one
// from 2^53 on, an entry that is not a dict. The global lock is held and no Python code runs, so nothing changes.
bool walk_dicts(PyObject* run, PyObject* truth, const KnownTypes& types, const WalkOptions& options, DictWalk& walk);

struct Judgement {
  PyObject* item;
  double grade;
};

// A truth of whole grades, read once for many runs. Cases without items are left out.
class HeldTruth {
 public:
  // False if anything is not a dict of dicts from text to whole numbers of Python.
  bool read(PyObject* truth);

  std::size_t size() const { return names_.objects().size(); }
  PyObject* name(std::size_t at) const { return names_.objects()[at]; }
  std::pair<const Judgement*, const Judgement*> judgements(std::size_t at) const {
    return {judgements_.data() + starts_[at], judgements_.data() + starts_[at + 1]};
  }

  // Where a case is, or size().
  std::size_t find(PyObject* name) const;

  nanobind::dict dicts() const;

 private:
  Held names_, items_;
  std::vector<std::size_t> starts_{0};
  std::vector<Judgement> judgements_;
  mutable std::unordered_map<std::string_view, std::size_t> places_;  // filled when a case is first looked for
};

// walk_dicts over the cases of both.
bool walk_dict(PyObject* run, const HeldTruth& truth, const KnownTypes& types, const WalkOptions& options,
               DictWalk& walk);

// No collection of garbage while objects are made that cannot be garbage.
class NoCollection {
 public:
  NoCollection() : was_on_(PyGC_Disable()) {}
  ~NoCollection() {
    if (was_on_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;

 private:
  int was_on_;
};

// The UTF-8 bytes of a str; none, and an error is set, if it holds half a character.
struct Utf8 {
  const char* begin;
  Py_ssize_t size;
};

inline Utf8 utf8_of(PyObject* text) {
#ifndef Py_LIMITED_API
  if (PyUnicode_IS_COMPACT_ASCII(text))
    return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), PyUnicode_GET_LENGTH(text)};
#endif
  Py_ssize_t size = 0;
  const char* const begin = PyUnicode_AsUTF8AndSize(text, &size);
  return {begin, size};
}

}  // namespace recsys
