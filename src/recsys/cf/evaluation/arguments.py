"""What the arguments of the documents' functions may be, by their names, and who says so when a call fails.

`explained` looks at a threshold and at a number of items before the call, as a wrong one would give a number;
at the other arguments only after an error that is none of ours, so a valid call costs nothing. The first
argument that cannot be what its name says is named in an InputError. If all can, the error goes on as it is:
it comes from the caller's own model or function, or is a defect here. An error of the layers below that names
one of their parameters names that of the function called.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from recsys.errors import InputError, RecsysError

_FAILURES = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError)
_Explained = TypeVar("_Explained", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """What an argument may be: a test of a value, and what to pass instead."""

    holds: Callable[[Any], bool]
    expected: str


def describe(value: Any) -> str:
    """A value as an error shows it: the beginning of what was typed, or the type of a container."""
    if value is None or isinstance(value, str | bytes | int | float | np.generic):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"<{type(value).__name__}>"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))


def _is_id(value: Any) -> bool:
    value = value.item() if hasattr(value, "item") and not np.ndim(value) else value
    return _is_whole(value) or isinstance(value, str)


def _entries(values: Any) -> list[Any] | None:
    """What a list, a set, an array, a Series or a tensor holds; None for anything else."""
    values = values.tolist() if hasattr(values, "tolist") else values
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    return list(values) if is_list and not hasattr(values, "columns") else None


def _is_ids(values: Any) -> bool:
    entries = _entries(values)
    return entries is not None and all(
        _is_id(entry[0] if isinstance(entry, tuple) and entry else entry) for entry in entries
    )


def _as_mapping(values: Any) -> Mapping[Any, Any] | None:
    """A mapping, also of a Series."""
    values = values.to_dict() if hasattr(values, "to_dict") and not hasattr(values, "columns") else values
    return values if isinstance(values, Mapping) else None


def _maps_to(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def test(values: Any) -> bool:
        mapping = _as_mapping(values)
        return mapping is not None and all(holds(value) for value in mapping.values())

    return test


def _is_truth(values: Any) -> bool:
    return _is_ids(values) or _maps_to(_is_number)(values)


def _is_vector(values: Any) -> bool:
    values = values.detach().cpu() if hasattr(values, "detach") else values
    mapping = None if isinstance(values, np.ndarray) else _as_mapping(values)
    try:
        entries = values if mapping is None else list(mapping.values())
        array = np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return array.ndim == 1 and not any(entry is None for entry in entries)


def _numbers_in(values: Any) -> Iterable[Any]:
    mapping = _as_mapping(values)
    return values if mapping is None else mapping.values()


def _is_matrix(values: Any) -> bool:
    if hasattr(values, "tocsr"):
        return True
    values = values.detach().cpu() if hasattr(values, "detach") else values
    try:
        return np.asarray(values, dtype=np.float64).ndim == 2
    except (TypeError, ValueError):
        return False


def _is_names(values: Any) -> bool:
    if isinstance(values, str):
        return True
    entries = _entries(values)
    return entries is not None and all(
        isinstance(entry, str) or hasattr(entry, "metric") for entry in entries
    )


def _is_interactions(values: Any) -> bool:
    if hasattr(values, "columns") or hasattr(values, "tocsr") or hasattr(values, "cases"):
        return True
    lists = _entries(values)
    return all(map(_is_truth, lists)) if lists is not None else _maps_to(_is_truth)(values)


def _is_results(values: Any) -> bool:
    return hasattr(values, "columns") or _maps_to(lambda row: _as_mapping(row) is not None)(values)


WHOLE = Kind(_is_whole, "a whole number, such as 10")
_COUNT = Kind(lambda value: _is_whole(value) and value > 0, "a whole number above 0, such as 1000")
_NUMBER = Kind(_is_number, "a number")
_TEXT = Kind(lambda value: isinstance(value, str), "a text")
_NAMES = Kind(_is_names, "a list of names")
_PATH = Kind(lambda value: isinstance(value, str | os.PathLike), "a path")
_ID = Kind(_is_id, "an id, a whole number or a text")
IDS = Kind(_is_ids, "a list of ids")
LISTS = Kind(_maps_to(_is_ids), "{user: [items, best first]}")
_TRUTH = Kind(_is_truth, "a set of ids, or {item: grade}")
TRUTH_BY_USER = Kind(_maps_to(_is_truth), "{user: items}")
_VECTOR = Kind(_is_vector, "one number each, in a list, an array, a Series or a dict")
_FINITE = Kind(
    lambda value: _is_vector(value) and all(map(_is_number, _numbers_in(value))), "one finite number each"
)
_VECTORS = Kind(
    lambda value: (
        _is_matrix(value) or _maps_to(lambda row: _is_vector(row) and _as_mapping(row) is None)(value)
    ),
    "{user: vector}",
)
GRADES_BY_USER = Kind(_maps_to(_maps_to(_is_number)), "{user: {item: grade}}")
_MATRIX = Kind(_is_matrix, "a matrix of numbers, with one row per item")
_INTERACTIONS = Kind(_is_interactions, "{user: items} or a table")
_TABLE = Kind(lambda value: hasattr(value, "columns"), "a table")
RESULTS = Kind(_is_results, "{model: {metric: number}}")
_NUMBERS_BY_KEY = Kind(_maps_to(_is_whole), "{item: row}")
MAPPING = Kind(lambda value: _as_mapping(value) is not None, "a dict")
_FUNCTION = Kind(callable, "a function")
_MODEL = Kind(
    lambda value: callable(value) or any(hasattr(value, name) for name in ("predict", "recommend")),
    "a function of users and items, or a model with predict or recommend",
)
TEXT_OR_NUMBER = Kind(lambda value: isinstance(value, str) or _is_number(value), "a text or a number")
PAIRS = Kind(
    lambda values: all(len(pair) == 2 and all(map(_is_number, pair)) for pair in _entries(values) or [()]),
    "[(from, below), …]",
)
METRIC_LIST = Kind(
    lambda values: all(hasattr(metric, "compute") for metric in _entries(values) or [None]),
    "a list of metrics with a method compute",
)
SAMPLES = Kind(_maps_to(_is_vector), "{model: one number per user}")

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        ("k", "top_k", "bins", "catalog_size", "n_users", "n_bootstrap", "n_permutations", "seed",
         "random_seed", "random_state", "batch_size"),
        WHOLE,
    ),
    **dict.fromkeys(("num_items", "num_total_items"), _COUNT),
    **dict.fromkeys(
        ("threshold", "cold_threshold", "significance_level", "confidence", "dead_zone", "diversity", "alpha",
         "num_users", "half_life", "now"),
        _NUMBER,
    ),
    **dict.fromkeys(
        ("name", "metric", "metric_name", "metric_prefix", "model_name", "baseline_name", "baseline",
         "user_col", "item_col", "rating_col", "aggregation", "alternative", "method", "correction", "test",
         "candidates", "accuracy_metric", "coverage_metric", "format", "filename", "title", "on_tie", "ties",
         "duplicates"),
        _TEXT,
    ),
    **dict.fromkeys(("metrics", "formats", "methods"), _NAMES),
    **dict.fromkeys(
        ("path", "output_path", "output_dir", "model_dir", "test_csv", "test_negative_csv"), _PATH
    ),
    **dict.fromkeys(("user_idx", "get_item"), _ID),
    **dict.fromkeys(
        ("predictions", "recommended", "recommendations", "ranklist", "user_indices", "test_users",
         "exclude_items"),
        IDS,
    ),
    "all_recommendations": LISTS,
    **dict.fromkeys(("ground_truth", "relevant", "user_history_items"), _TRUTH),
    "baseline_recommendations": Kind(
        lambda value: _is_ids(value) or _maps_to(_is_ids)(value), "a list of ids, or {user: list}"
    ),
    **dict.fromkeys(("relevance_scores",), Kind(_maps_to(_is_number), "{item: grade}")),
    **dict.fromkeys(("test_data", "user_pos_train", "user_histories", "train"), _INTERACTIONS),
    "user_exclude_items": TRUTH_BY_USER,
    **dict.fromkeys(
        ("item_popularity", "item_counts", "sample", "sample1", "sample2", "model_scores", "baseline_scores",
         "metrics_a", "metrics_b", "metric_values", "p_values", "weights", "user_profile_emb"),
        _VECTOR,
    ),
    "user_interaction_counts": _FINITE,
    "n_items": Kind(lambda value: _is_whole(value) or _is_vector(value), "a whole number, such as 1000"),
    "user_profiles": _VECTORS,
    **dict.fromkeys(
        ("U", "V", "embeddings", "item_embeddings", "bert_embeddings", "item_features", "similarity_matrix",
         "user_item_matrix"),
        _MATRIX,
    ),
    **dict.fromkeys(("df_test", "df_train", "df", "model_comparison"), _TABLE),
    **dict.fromkeys(("results", "strata", "models", "baselines"), RESULTS),
    "item_to_idx": _NUMBERS_BY_KEY,
    **dict.fromkeys(("metadata", "hyperparams", "columns"), MAPPING),
    "statistic_fn": _FUNCTION,
    "model": _MODEL,
    "similarity_type": Kind(lambda value: isinstance(value, str) or callable(value), "a name or a function"),
    "replacement": Kind(lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "device": Kind(lambda value: isinstance(value, str) or hasattr(value, "type"), 'a device, such as "cpu"'),
    "user_pred_true": Kind(
        _maps_to(lambda pairs: np.shape(pairs)[1:] == (2,)), "{user: [(predicted, true), …]}"
    ),
}  # fmt: skip
_CHECKED_FIRST = ("num_items", "num_total_items", "threshold", "cold_threshold")
# What the layers below call a parameter, and the names it has in the documents.
_OWN_NAMES = {
    "catalogue": ("num_total_items", "catalog_size"),
    "users": ("num_users",),
    "test": ("test_ratio",),
    "user_pos_train": ("user_exclude_items", "exclude_items"),
    "user_exclude_items": ("exclude_items",),
}


def explain_all(module: dict[str, Any], but: Collection[str] = ()) -> None:
    """Decorate every class and every public function that a module has defined and not decorated itself."""
    for name, value in list(module.items()):
        is_function = inspect.isfunction(value) and not name.startswith("_") and name not in but
        is_own = getattr(value, "__module__", None) == module["__name__"]
        if is_own and (inspect.isclass(value) or (is_function and not hasattr(value, "__wrapped__"))):
            module[name] = explained()(value)


def explained(**kinds: Kind) -> Callable[[_Explained], _Explained]:
    """Decorate a function or the methods of a class; `kinds` are arguments unlike others of their name."""

    def decorate(target: Any) -> Any:
        if not inspect.isclass(target):
            return _explain(target, kinds)
        for name, member in list(vars(target).items()):
            kind = type(member) if isinstance(member, staticmethod | classmethod) else None
            function = member if kind is None else member.__func__
            is_public = name == "__init__" or not name.startswith("_")
            if is_public and inspect.isfunction(function) and not hasattr(function, "__wrapped__"):
                explained_function = _explain(function, kinds)
                setattr(target, name, explained_function if kind is None else kind(explained_function))
        return target

    return decorate


def _explain(function: Callable[..., Any], kinds: Mapping[str, Kind]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    parameters = signature.parameters
    first = [name for name in _CHECKED_FIRST if name in parameters and name not in kinds]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments if first else {}
        for name in first:
            if given.get(name) is not None:
                _check_kind(name, given[name], _KINDS[name], None)
        try:
            return function(*args, **kwargs)
        except RecsysError as error:
            _use_own_names(error, parameters)
            raise
        except _FAILURES as error:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:  # called with too few or unknown arguments, which Python says itself
                raise error from None
            for name, parameter in parameters.items():
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    more = given.get(name, {})
                else:
                    more = (
                        {name: given[name]} if name in given and given[name] is not parameter.default else {}
                    )
                for key, value in more.items():
                    _check_kind(key, value, kinds.get(key, _KINDS.get(key)), error)
            raise

    return call


def _use_own_names(error: RecsysError, parameters: Iterable[str]) -> None:
    """Let an error name the parameters of the function that was called."""
    for name, own_names in _OWN_NAMES.items():
        own = next((own for own in own_names if own in parameters and name not in parameters), None)
        if own is not None:
            word = rf"\b{name}\b" if "_" in name else rf"\b{name}(?==)"  # the others are words, too
            error.message = re.sub(word, own, error.message)
            error.hint = error.hint and re.sub(word, own, error.hint)
            error.table = own if error.table == name else error.table


def _check_kind(name: str, value: Any, kind: Kind | None, error: Exception | None) -> None:
    if kind is None:
        return
    try:
        holds = kind.holds(value)
    except _FAILURES:
        holds = False
    if not holds:
        raise InputError(
            f"{name}={describe(value)} cannot be read.", table=name, hint=f"Pass {kind.expected} as {name}=."
        ) from error
