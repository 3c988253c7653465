"""The numbers that scripts/same_bytes.py compares, computed in one way and printed as JSON.

    python scripts/same_values.py '{"backend": "cuda", "pieces": "models"}' > cuda.json
    python scripts/same_values.py --digest          a hash of each piece, and one of all
    python scripts/same_values.py --digest --store  and keep them in same_values.json, which a test reads

The values are those of every registered metric, with every word its parameters know, and of what stands
beside the metrics. The made-up data come from Python's own random(), which is the same in every version. The
piece "models" needs NumPy alone: what needs a package that is not there has the value "needs" and its name.

A setting is a JSON object; all of it is optional:
    form       how the input is handed over: dict, pandas, polars, arrow, sparse, ranked, csv, shuffled, or
               the engine it goes through: batches, duckdb, spark
    pieces     a pattern of the pieces to compute
    kinds      ["int"] for a form that has no text ids
    threads, backend          keywords of evaluate
    cpu_level, block, pure    a CPU level, users in a block, no compiled kernels
    native     true: compiled kernels must be there
    device     "cpu": the steps of the GPU in plain torch
    locale     the locale that the process must be in
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
STORED = Path(__file__).with_suffix(".json")
Values = dict[str, Any]
Setting = Mapping[str, Any]
Rows = list[tuple[Any, ...]]
PIECES: dict[str, Callable[[Setting], Iterator[tuple[str, Any]]]] = {}


# --- the data -------------------------------------------------------------------------------------------

N_USERS, N_ITEMS, N_FACTORS = 200, 24, 7
# Sorted by code points these stand in another order than in any alphabet.
LETTERS = ("I", "i", "İ", "\u0131", "ß", "ss", "é", "e\u0301", "日", "🎬", "1,5", "1.5")


@dataclass(frozen=True)
class World:
    """Every item in the list of almost every user, with equal scores; graded truth; all else metrics read."""

    lists: Rows
    truth: Rows
    train: Rows
    reference: Rows
    users: list[Any]
    items: list[Any]
    vectors: np.ndarray
    worth: dict[Any, float]


def numbers(seed: int) -> Callable[[], float]:
    """Numbers between 0 and 1, one at a call."""
    return random.Random(seed).random  # noqa: S311


@cache
def world(kind: str) -> World:
    """Ids are whole numbers or text; the numbers are the same."""
    draw = numbers(2)
    text = kind == "text"
    users = [f"{LETTERS[n % 12]}{n}" if text else n for n in range(N_USERS)]
    items = [f"{LETTERS[n % 12]} {n}" if text else n for n in range(N_ITEMS)]

    def some(n: int) -> list[Any]:
        return sorted(items, key=lambda _: draw())[:n]

    lists = [(u, i, int(40 * draw()) / 7) for u in users[3:] for i in some(N_ITEMS)]
    grades = (0.0, 1.0, 2.0, 3.0, 0.7)
    truth = [(u, i, grades[int(5 * draw())]) for u in users[:-4] for i in some(1 + int(5 * draw()))]
    train = [(u, i, 1.0 + int(3 * draw())) for u in users[5:] for i in some(1 + int(5 * draw()))]
    reference = [(u, i, at + 1) for u in users for at, i in enumerate(some(5))]
    vectors = normals(draw, N_ITEMS, N_FACTORS)
    worth = {i: 0.1 + n % 3 for n, i in enumerate(items)}
    return World(lists, truth, train, reference, users, items, vectors, worth)


def normals(draw: Callable[[], float], *shape: int) -> np.ndarray:
    """Numbers that are roughly normal: sums of four, so that no function of a C library is needed."""
    n = math.prod(shape)
    return np.array([draw() + draw() - draw() - draw() for _ in range(n)]).reshape(shape)


# --- the forms it may come in ---------------------------------------------------------------------------


def nested(rows: Rows) -> dict[Any, dict[Any, float]]:
    out: dict[Any, dict[Any, float]] = {}
    for user, item, value in rows:
        out.setdefault(user, {})[item] = value
    return out


def columns_of(rows: Rows, names: Sequence[str]) -> dict[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def table(form: str, rows: Rows, names: Sequence[str]) -> Any:
    """The rows as a table of this kind; pandas where the form is no table."""
    columns = columns_of(rows, names)
    if form == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    if form == "arrow":
        import pyarrow as pa

        return pa.table(columns)
    import pandas as pd

    return pd.DataFrame(columns)


def sparse(rows: Rows, w: World) -> Any:
    from scipy.sparse import csr_matrix

    users, items, values = zip(*rows, strict=True)
    return csr_matrix((values, (users, items)), shape=(len(w.users), len(w.items)))


def ranked(rows: Rows) -> dict[Any, list[Any]]:
    """The items of each user by score, equal ones by id: what ties="by_id" makes of the scores."""
    held: dict[Any, list[tuple[float, Any]]] = {}
    for user, item, score in rows:
        held.setdefault(user, []).append((-score, item))
    return {user: [item for _, item in sorted(pairs)] for user, pairs in held.items()}


def shuffled(rows: Rows, form: str) -> Rows:
    draw = numbers(9)
    return sorted(rows, key=lambda _: draw()) if form == "shuffled" else rows


@contextmanager
def given(form: str, kind: str) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """The verb, and lists, truth and what is known in this form."""
    import recsys

    w, names = world(kind), ("user", "item")
    lists, truth, train, reference = (
        shuffled(rows, form) for rows in (w.lists, w.truth, w.train, w.reference)
    )
    known = {
        "items": {"worth": w.worth},
        "embeddings": dict(zip(w.items[:-1], w.vectors[:-1], strict=True)),
        "intents": "worth",
        "full_ranking": True,
        "catalogue": 1100,
        "train": nested(train),
        "reference": ranked([(user, item, -at) for user, item, at in w.reference]),
    }
    verb: Callable[..., Any] = recsys.evaluate
    if form in {"pandas", "polars", "arrow", "shuffled"}:
        known["train"] = table(form, train, (*names, "grade"))
        known["reference"] = table(form, reference, (*names, "rank"))
        known["embeddings"] = w.items[:-1], w.vectors[:-1].copy(order="F")
        both = table(form, lists, (*names, "score")), table(form, truth, (*names, "grade"))
        yield verb, {"lists": both[0], "truth": both[1], **known}
    elif form == "sparse":
        known["train"] = sparse(train, w)
        stored = [(u, i, score + 1) for u, i, score in lists]  # a zero would be no entry
        yield verb, {"lists": sparse(stored, w), "truth": nested(truth), **known}
    elif form == "ranked":
        yield verb, {"lists": ranked(lists), "truth": nested(truth), **known}
    elif form == "batches":
        known["conventions"] = {"max_grade": 3}  # a batch does not know it
        yield partial(in_batches, 37), {"lists": nested(lists), "truth": nested(truth), **known}
    elif form in {"csv", "duckdb"}:
        with tempfile.TemporaryDirectory() as folder:
            paths = written(Path(folder), form, lists, truth)
            verb = recsys.evaluate if form == "csv" else partial(beyond_memory, Path(folder))
            ids = "int" if form == "csv" and kind == "int" else "auto"
            yield verb, {"lists": paths[0], "truth": paths[1], "ids": ids, **known}
    elif form == "spark":
        with spark_session() as spark, tempfile.TemporaryDirectory() as folder:
            import recsys.spark

            frames = [
                spark.createDataFrame(table("pandas", rows, (*names, value)))
                for rows, value in ((lists, "score"), (truth, "grade"))
            ]
            out = {"partitions": 5, "per_user_path": Path(folder) / "out", "overwrite": True}
            yield partial(recsys.spark.evaluate, **out), {"lists": frames[0], "truth": frames[1], **known}
    else:
        yield verb, {"lists": nested(lists), "truth": nested(truth), **known}


def written(folder: Path, form: str, lists: Rows, truth: Rows) -> list[str]:
    """Both tables in files, three for each."""
    paths = []
    for name, value, rows in (("lists", "score", lists), ("truth", "grade", truth)):
        whole = table("pandas", rows, ("user", "item", value))
        suffix = "csv" if form == "csv" else "parquet"
        for at in range(3):
            path, part = folder / f"{name}-{at}.{suffix}", whole.iloc[at::3]
            write = part.to_csv if form == "csv" else part.to_parquet
            write(path, index=False)
        paths.append(str(folder / f"{name}-*.{suffix}"))
    return paths


def in_batches(size: int, lists: Any, truth: Any, metrics: Any, **known: Any) -> Any:
    import recsys

    whole = recsys.Evaluator(metrics, **known)
    users = [*dict.fromkeys([*lists, *truth])]
    for start in range(0, len(users), size):
        part = users[start : start + size]
        whole.update(*({u: rows[u] for u in part if u in rows} for rows in (lists, truth)))
    return whole.result()


def beyond_memory(folder: Path, lists: Any, truth: Any, **known: Any) -> Any:
    """Pieces of few users, so that there are many of them."""
    import recsys
    from recsys.evaluation.in_pieces import out_of_core

    out_of_core._PIECE_USERS = 37  # noqa: SLF001
    path = folder / f"out-{time.monotonic_ns()}"
    return recsys.evaluate(lists, truth, **known, memory="8GB", per_user=path)


@contextmanager
def spark_session() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tests" / "nightly"))
    from cluster_walk import session_of

    with tempfile.TemporaryDirectory() as folder:
        spark = session_of("local[2]", Path(folder))
        try:
            yield spark
        finally:
            spark.stop()


# --- the values -----------------------------------------------------------------------------------------


def piece(function: Callable[[Setting], Iterator[tuple[str, Any]]]) -> Any:
    PIECES[function.__name__] = function
    return function


def bits(value: Any) -> str:
    """Numbers, text and containers of them, to the last bit: the first number, and a hash of all."""
    numbers: list[str] = []

    def walk(part: Any) -> str:
        if isinstance(part, np.ndarray):
            part = part.tolist()
        kinds = {*map(type, part)} if isinstance(part, list) else set()
        if kinds == {float}:
            numbers.append(part[0].hex())
            return "[" + ",".join(map(float.hex, part)) + "]"
        if kinds == {str}:
            return "[" + ",".join(map(repr, part)) + "]"
        if isinstance(part, Mapping):
            part = [*part.items()]
        if isinstance(part, list | tuple):
            return "[" + ",".join(map(walk, part)) + "]"
        if isinstance(part, float | np.floating):
            numbers.append(float(part).hex())
            return numbers[-1]
        return repr(part.item() if isinstance(part, np.generic) else part)

    text = hashlib.sha256(walk(value).encode()).hexdigest()[:12]
    return f"{numbers[0]} {text}" if numbers else text


def bits_of(result: Any) -> Iterator[tuple[str, str]]:
    """Each metric: its value, its values by group and those of every user, with the users' ids."""
    rows = result.per_case
    ids = [str(each) for each in rows.ids.tolist()]
    for name, value in result.items():
        groups = {str(group): values[name] for group, values in (result.by or {}).items()}
        yield name, bits([value, groups, rows.columns.get(name, np.zeros(0)), ids])


@cache
def requests(kind: str = "all") -> list[str]:
    """Every metric, without and with a cut-off, and at the cut-off with every word its parameters know."""
    from recsys.metrics.registry import METRICS

    found = []
    for name, metric in sorted(METRICS.items()):
        if (kind == "places" and metric.needs) or (kind == "by group" and metric.pooling.summary is not None):
            continue
        cut = "" if metric.at_k == "never" else "@3"
        found += [name] if metric.at_k != "required" else []
        found += [f"{name}{cut}"] if cut else []
        if kind in {"all", "places"}:
            found += [
                f"{name}({word}={choice}){cut}"
                for word, choices in metric.choices.items()
                for choice in (choices if isinstance(choices, tuple) else ())
                if choice != metric.params[word] and isinstance(choice, str) and ":" not in choice
            ]
    return found


REFUSED: set[str] = set()


def values_of(verb: Callable[..., Any], asked: Sequence[str], **options: Any) -> Iterator[tuple[str, str]]:
    """All metrics in one call; in halves where one is refused, whose value is then the kind of error."""
    from recsys.errors import ConventionError

    try:
        yield from bits_of(verb(metrics=list(asked), **options))
    except (ConventionError, ModuleNotFoundError) as error:
        if len(asked) == 1:
            REFUSED.add(asked[0])
            lacks = isinstance(error, ModuleNotFoundError)
            yield asked[0], f"needs {error.name}" if lacks else type(error).__name__
            return
        middle = len(asked) // 2
        before = [name for name in asked if name in REFUSED]  # these are apart the next time
        after = [name for name in asked if name not in REFUSED]
        for half in (before, after) if before and after else (asked[:middle], asked[middle:]):
            yield from values_of(verb, half, **options)


@piece
def lists(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Every metric on scored lists; the same by groups of users."""
    form, how = setting["form"], execution(setting)
    for kind in setting["kinds"]:
        with given(form, kind) as (verb, data):
            for name, value in values_of(verb, requests(), **data, **how):
                yield f"{kind} {name}", value
            for name, value in values_of(verb, requests("by group"), by="activity", **data, **how):
                yield f"{kind} {name} by activity", value


@piece
def places(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Metrics that need no more than places: dicts have a way of their own then."""
    for kind in setting["kinds"]:
        with given(setting["form"], kind) as (verb, data):
            pair = {name: data[name] for name in ("lists", "truth", "ids", "conventions") if name in data}
            for name, value in values_of(verb, requests("places"), **pair, **execution(setting)):
                yield f"{kind} {name}", value


def values_under(rules: Mapping[str, Any], setting: Setting) -> Iterator[tuple[str, Any]]:
    """Every metric under each of some conventions."""
    with given(setting["form"], "text") as (verb, data):
        for rule, chosen in rules.items():
            options = data | {"conventions": chosen} | execution(setting)
            yield from ((f"{rule} {n}", value) for n, value in values_of(verb, requests("plain"), **options))


@piece
def ties(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Every metric under every rule for equal scores, and pooled: what no order of the rows may change."""
    rules: dict[str, dict[str, Any]] = {
        rule: {"ties": rule} for rule in ("by_id_desc", "expected", "best", "worst")
    }
    rules["pooled"] = {"average": "pooled"}
    # The highest grade is the data's, but a batch does not know it.
    return values_under({rule: chosen | {"max_grade": 3} for rule, chosen in rules.items()}, setting)


@piece
def presets(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Every metric under every preset."""
    from recsys.conventions.presets import PRESETS

    return values_under({preset: preset for preset in PRESETS}, setting)


@piece
def models(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Factors of both widths and score matrices: metrics of all places and of lists, and the lists."""
    import recsys

    n_users, n, draw = 400, 900, numbers(3)
    users, items, bias = normals(draw, n_users, 9), normals(draw, n, 9), normals(draw, n)
    items[100:140], bias[100:140] = items[200], bias[200]  # equal scores
    truth = {u: {int(n * draw()): 1.0 + int(3 * draw()) for _ in range(5)} for u in range(0, n_users, 2)}
    seen, reference = ({u: [*{int(n * draw()) for _ in range(30)}] for u in range(n_users)} for _ in range(2))
    known = {
        "items": {"worth": {i: 0.1 + i % 3 for i in range(n)}},
        "embeddings": items[:, :5],
        "intents": "worth",
        "train": seen,
        "reference": reference,
    }
    sources = {
        "float64": recsys.Factors(users, items, item_bias=bias),
        "float32": recsys.Factors(users.astype(np.float32), items.astype(np.float32)),
        "scores": recsys.Scores(np.rint(8 * users[:, :1] * items[:, 0])),
    }
    for name, source in sources.items():
        data = {"lists": source, "truth": truth, "seen": seen, **known, **execution(setting)}
        for request, value in values_of(recsys.evaluate, requests("plain"), **data):
            yield f"{name} {request}", value
        data["conventions"] = {"ties": "by_id_desc"}
        for request, value in values_of(recsys.evaluate, ["ndcg@10", "recall@10"], **data):
            yield f"{name} {request} by_id_desc", value
        found = recsys.recommend(source, 12, seen=seen, exclude=[5], **execution(setting))
        yield f"{name} lists", bits([found.indptr, found.codes, found.scores])


@piece
def ratings(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Every metric of predicted ratings and probabilities."""
    import recsys
    from recsys.metrics.registry import RATINGS

    draw, w = numbers(4), world("text")
    rows = [(u, i, draw(), float(draw() < 0.4)) for u in w.users for i in w.items[:9]]
    frame = table(setting["form"], shuffled(rows, setting["form"]), ("user", "item", "prediction", "rating"))
    for name in RATINGS:
        found = recsys.evaluate_ratings(frame, metrics=[name])
        yield name, bits([found[name], found.per_case.columns[name]])


@piece
def splits(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Which rows every strategy puts where, and the negatives that are drawn."""
    import recsys
    from recsys.splits import STRATEGIES

    draw = numbers(5)
    rows = [(u, i, int(1e6 * draw())) for u, i, _ in world("text").lists[::2]]
    frame = table(setting["form"], shuffled(rows, setting["form"]), ("user", "item", "timestamp"))
    for how in STRATEGIES:
        made = recsys.split(frame, how, **({"length": 100_000} if how == "rolling_windows" else {}))
        for at, part in enumerate([made] if hasattr(made, "train") else made):
            for side, half in (("train", part.train), ("test", part.test)):
                columns = [half[name] for name in ("user", "item")]
                if setting["form"] == "arrow":
                    columns = [column.to_pylist() for column in columns]
                yield f"{how} {at} {side}", bits(sorted(zip(*columns, strict=True)))
    positives = {u: [i for _, i, _ in held] for u, held in groupby(rows, itemgetter(0))}
    for how in ("uniform", "popularity"):
        drawn = recsys.negatives.sample(positives, 5, how=how, too_few="fewer", seed=4)
        yield f"negatives {how}", bits(drawn.to_dict())


@piece
def fusion(setting: Setting) -> Iterator[tuple[str, Any]]:
    """The lists of every way to fuse two, under every normalisation; equal scores stand as they are given."""
    import recsys
    from recsys.ranks.fusion import FUSIONS, NORMALISATIONS

    form, w = setting["form"], world("text")
    unequal = [(u, i, score + at / 9973) for at, (u, i, score) in enumerate(w.lists)]
    scored = table(form, shuffled(unequal, form), ("user", "item", "score"))
    other = nested([(u, i, 6.0 - at) for u, i, at in w.reference])
    runs = [nested(unequal) if form == "dict" else scored, other]
    tuned = {"weights": (0.3, 0.7), "gamma": 1.3, "phi": 0.8}
    methods = [name for name, way in FUSIONS.items() if not way.trained]
    for method, norm in product(methods, (*NORMALISATIONS, "default")):
        options = {name: value for name, value in tuned.items() if name == FUSIONS[method].tuned}
        frame = recsys.fuse(runs, method, norm, **options).to_frame().sort_values("user", kind="stable")
        yield f"{method} {norm}", bits([frame[column].tolist() for column in frame])


@piece
def others(setting: Setting) -> Iterator[tuple[str, Any]]:
    """One list alone, candidates, sampled ranks, propensities, policies."""
    import recsys

    w, draw = world("int"), numbers(6)
    rows, truth = ranked(w.lists), nested(w.truth)
    for name in [name for name in requests("places") if "(" not in name]:
        found = [recsys.score_list(rows[u], truth[u], name, full_ranking=True) for u in w.users[9:29]]
        yield f"one list {name}", bits(found)
    cases = [(u, 0, [*range(1, 21)]) for u in w.users]
    scored = recsys.evaluate_candidates(np.rint(4 * normals(draw, N_USERS, 21)), cases, k=[1, 5])
    yield from ((f"candidates {name}", value) for name, value in bits_of(scored))
    ranks = [1 + int(100 * draw() ** 3) for _ in range(500)]
    for metric, by_method in recsys.sampled.estimate_all(ranks, 100, 2000).items():
        for method, one in by_method.items():
            found = [one.value, one.low, one.high]
            # The equations of this one are nearly singular: solvers agree to seven or eight digits.
            digits = " ".join(f"{number:.5g}" for number in found)
            yield f"sampled {metric} {method}", digits if method == "cls" else found
    for metric in ("recall@3", "dcg@3"):
        found = recsys.debias.evaluate(nested(w.lists), truth, metric, train=nested(w.train))
        for key, one in found.estimates.items():
            yield f"debiased {key}", [one.value, one.interval.low, one.interval.high]
    log = [(int(3 * draw()), int(2 * draw()), int(4 * draw()) / 7, 0.5) for _ in range(900)]
    logged = table(setting["form"], log, ("context", "action", "reward", "propensity"))
    for name, one in recsys.debias.off_policy(logged, {0: 0.8, 1: 0.2}).estimates.items():
        yield f"off policy {name}", [one.value, one.interval.low, one.interval.high]


@piece
def statistics(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Intervals, tests and comparisons."""
    import recsys

    asked = ["ndcg@3", "recall@3", "coverage@3", "precision(average=pooled)@3"]
    with given(setting["form"], "int") as (verb, data):
        pair = {name: data[name] for name in ("lists", "truth", "ids", "conventions") if name in data}
        result = verb(metrics=asked, **pair, **execution(setting))
        for name, one in result.intervals().items():
            yield f"interval {name}", [one.standard_error, one.interval.low, one.interval.high]
        other = recsys.evaluate(nested(world("int").reference), nested(world("int").truth), asked)
        for test in ("t", "wilcoxon", "permutation", "sign", "bca", "studentised"):
            held = {"a": result, "b": other}
            for row in recsys.compare(held, "a", asked[:2], test=test, n_resamples=999).rows:
                found = [row.difference, row.p_value, row.interval.low, row.interval.high]
                yield f"{test} {row.metric}", found


@piece
def verbs(setting: Setting) -> Iterator[tuple[str, Any]]:
    """Weights, groups, bounds, baselines, gates, races, audits, and the functions of recsys.cf."""
    import recsys

    w, asked, how = world("text"), ["recall@3", "ndcg@3", "dcg@3"], execution(setting)
    lists, truth, train = nested(w.lists), nested(w.truth), nested(w.train)
    reference = nested([(u, i, 6.0 - at) for u, i, at in w.reference])
    of_users = {u: n for n, u in enumerate(w.users)}
    ways: dict[str, dict[str, Any]] = {
        "weights": {"case_weights": {u: 1 + n % 3 for u, n in of_users.items()}},
        "clusters": {"clusters": {u: n // 2 for u, n in of_users.items()}},
        "item weights": {"item_weights": w.worth},
        "by popularity": {"by": "popularity", "train": train},
        "by function": {"by": lambda user: of_users[user] % 3},
        "median": {"aggregate": "median"},
    }
    found = {name: recsys.evaluate(lists, truth, asked, **way, **how) for name, way in ways.items()}
    for way, result in found.items():
        yield from ((f"{way} {name}", value) for name, value in bits_of(result))
    plain, other = (recsys.evaluate(held, truth, asked, **how) for held in (lists, reference))
    steps = recsys.explain(plain, plain.under("trec_eval")).steps
    yield "explained", bits([dict(step.moved) for step in steps])
    limits = plain.bounds().to_frame().select_dtypes("number").to_dict("list")
    yield from ((f"bounds {name}", column) for name, column in limits.items())
    checks = recsys.gate(plain, other, {"ndcg@3": "2%", "recall@3": 0.01}).checks
    yield from ((f"gate {check.metric}", [check.p_value, check.bound]) for check in checks)
    raced = recsys.race({"a": lists, "b": reference}, truth, ["ndcg@3"])
    yield "race", bits([raced.n_seen, {name: dict(result) for name, result in raced.items()}])
    stopped = recsys.evaluate(lists, truth, ["hit@3"], stop_when=0.05, **how)
    yield "stopped", bits([stopped["hit@3"], stopped.n_cases])
    counts = recsys.baselines.training_counts(train)
    popular = recsys.baselines.popularity(counts, users=[*truth])
    yield from ((f"popularity {n}", v) for n, v in bits_of(recsys.evaluate(popular, truth, asked, **how)))
    chance = recsys.baselines.random_expectation(nested(world("int").truth), asked, n_items=N_ITEMS)
    yield "chance", [*chance.to_dict().values()]
    diverse = recsys.rerankers.diversify(recsys.recommend(popular, 9), w.vectors, 5, item_ids=w.items)
    yield "reranked", bits([diverse.indptr, diverse.codes])
    audit = recsys.audit(train, truth, lists)
    yield "audit", bits([[f.name, f.severity, f.count] for f in audit])
    made, ranks = recsys.cf.evaluation, ranked(w.lists)
    for function in (made.recall_at_k, made.precision_at_k, made.ndcg_at_k, made.map_at_k, made.hit_rate):
        yield function.__name__, bits([function(ranks[u], {*truth[u]}, 5) for u in w.users[9:99]])
    draw = numbers(7)
    log = [(n, "ab"[int(2 * draw())], int(3 * draw())) for n in range(900)]
    frame = table("pandas", log, ("user", "group", "clicks"))
    row = recsys.ab(frame, unit="user", variant="group", metric="clicks", control="a").rows[0]
    yield "ab", [row.difference, row.p_value]


def execution(setting: Setting) -> dict[str, Any]:
    """The keywords of evaluate that must not matter."""
    return {name: setting[name] for name in ("threads", "backend") if name in setting}


def prepare(setting: Setting) -> None:
    """What no keyword of evaluate says: CPU level, block sizes, no compiled kernels."""
    if setting.get("pure"):
        sys.modules["recsys.kernels._native"] = None  # type: ignore[assignment]
    from recsys import kernels
    from recsys.evaluation import engine

    if setting.get("native") and not kernels.backends().native:
        raise RuntimeError("the compiled kernels cannot be imported")
    if "device" in setting:
        from recsys.kernels.cuda import cuda_scan

        scan = partial(cuda_scan.scan, device=setting["device"])
        kernels.backend.BACKENDS["cuda"] = kernels.backend.Backend("cuda", lambda: None, scan=scan)
    for kernel in (kernels.match_lists, kernels.scan, kernels.rank_scores, kernels.place_rows):
        if "cpu_level" in setting:
            kernel.__kwdefaults__["cpu_level"] = setting["cpu_level"]
        if "block" in setting and "memory_budget" in kernel.__kwdefaults__:
            kernel.__kwdefaults__["memory_budget"] = 1 << 14
    if "block" in setting:
        engine._BLOCK_CASES = setting["block"]  # noqa: SLF001
    if "locale" in setting:
        import locale

        if (found := locale.setlocale(locale.LC_ALL, "")) != setting["locale"]:
            raise RuntimeError(f"the process is in the locale {found}")


def values(setting: Setting) -> Values:
    """Every value of the chosen pieces by its name: a text to the last bit, or numbers to twelve digits."""
    setting = {"form": "dict", "kinds": ("int", "text")} | dict(setting)
    prepare(setting)
    found: Values = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in PIECES.items():
            if re.fullmatch(setting.get("pieces", ".*"), name):
                found |= {f"{name}: {key}": value for key, value in function(setting)}
    return found


def digests(found: Values) -> dict[str, str]:
    """A hash of each piece, and one of all: of every bit where it must be equal, of nine digits elsewhere."""
    texts: dict[str, list[str]] = {}
    for name, value in found.items():
        held = value if isinstance(value, str) else " ".join(f"{number + 0.0:.9g}" for number in value)
        texts.setdefault(name.partition(":")[0], []).append(f"{name} {held}\n")
    out = {piece: hashlib.sha256("".join(lines).encode()).hexdigest()[:16] for piece, lines in texts.items()}
    return out | {"all": hashlib.sha256(" ".join(out.values()).encode()).hexdigest()[:16]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("setting", nargs="?", default="{}", type=json.loads)
    parser.add_argument("--digest", action="store_true", help="print hashes instead of the values")
    parser.add_argument("--store", action="store_true", help="keep the hashes in same_values.json")
    arguments = parser.parse_args()
    found = values(arguments.setting)
    if arguments.store:
        STORED.write_text(json.dumps(digests(found), indent=1) + "\n", encoding="utf-8")
    print(json.dumps(digests(found), indent=1) if arguments.digest else json.dumps(found))


if __name__ == "__main__":
    main()
