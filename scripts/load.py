"""Whether the library can live in a server: small calls by the thousand, and mixed calls from eight threads.

    python scripts/load.py build/load.jsonl --seconds 3600   ten minutes of small calls, an hour of threads
    python scripts/load.py build/load.jsonl --seconds 60     the same, ten seconds and a minute
    python scripts/load.py build/load.jsonl --seconds 3600 --table   writes its section of docs/reliability.md

Every call is first made alone, and its answer kept; each later answer must have the same bytes. Resident
memory is read every second; the first minutes of a run are its warm-up. Ten minutes are a piece: one line of
the file, kept if the run is interrupted. The exit status is 1 if an answer differs, a call fails or hangs,
small calls are slower than 10,000 a minute, memory grows or was never judged, or threads, open files, caches
or objects are left behind. A load of less than ten minutes says nothing about memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import hashlib
import math
import os
import re
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from proofs import ROOT, Finished, write_section

import recsys
from recsys.report import report_html

THREADS = 8
PIECE = 600.0  # seconds; memory is judged in loads that are as long
# Seconds in which every thread meets every kind of call, and memory its peak: half a piece, so that a run
# that is cut off after each piece has samples of each.
WARM_UP = 300.0
SAMPLES = 60  # of memory, one a second: fewer judge nothing
HANGS = 120.0  # seconds in which every thread must finish a call
GROWTH = 1.0  # MB in ten minutes, beyond three standard errors
SOME = 50  # objects of a type that may come and go
SMALL_RATE = 10_000  # small evaluations in a minute
METRICS = ["ndcg@10", "recall@10", "map@10", "mrr", "coverage@10"]
# A page says when it was written, in its text and in the tables that it offers as files.
MOMENTS = re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?|href="data:[^"]*"')
Call = Callable[[], Any]


# --- the calls ------------------------------------------------------------------------------------------


def answer_bytes(answer: Any) -> bytes:
    """Everything a result says, floats with all their digits."""
    if isinstance(answer, recsys.Evaluation):
        rows = [answer.per_case.columns[name].tobytes() for name in answer.per_case.columns]
        return repr([dict(answer), answer.counts, answer.cautions]).encode() + b"".join(rows)
    if isinstance(answer, recsys.Comparison):
        return repr([vars(row) for row in answer.rows]).encode() + str(answer).encode()
    if isinstance(answer, recsys.Lists):
        parts = [answer.indptr, answer.codes, *([] if answer.scores is None else [answer.scores])]
        return b"".join(part.tobytes() for part in parts)
    if isinstance(answer, pd.DataFrame):
        return answer.to_csv().encode()
    return answer.encode() if isinstance(answer, str) else repr(answer).encode()


def digest(answer: Any) -> bytes:
    return hashlib.sha256(answer_bytes(answer)).digest()


def mixed_calls(folder: Path) -> dict[str, Call]:
    """One call of each kind that a server makes; every one can be made at any time, from any thread."""
    rng = np.random.default_rng(0)
    users, items = 300, 200
    lists = {u: rng.permutation(items)[:20].tolist() for u in range(users)}
    others = {u: rng.permutation(items)[:20].tolist() for u in range(users)}
    truth = {u: rng.permutation(items)[:8].tolist() for u in range(users)}
    graded = {f"u{u}": {f"i{i}": 1 + i % 3 for i in wanted} for u, wanted in truth.items()}
    scored = {f"u{u}": {f"i{i}": 1 / place for place, i in enumerate(row, 1)} for u, row in lists.items()}
    rows = [(f"u{u}", f"i{i}", 1 / place) for u, row in lists.items() for place, i in enumerate(row, 1)]
    table = pd.DataFrame(rows, columns=["user", "item", "score"])
    wanted = pd.DataFrame([(u, i) for u, g in graded.items() for i in g], columns=["user", "item"])
    tied = {u: {i: i % 4 for i in row} for u, row in lists.items()}
    factors = recsys.Factors(rng.normal(size=(users, 16)), rng.normal(size=(items, 16)))
    matrix = sp.csr_matrix((rng.random((users, items)) < 0.05).astype(float))
    log = pd.DataFrame({
        "user": rng.integers(0, 50, 1500), "item": rng.integers(0, 80, 1500), "timestamp": np.arange(1500),
    }).drop_duplicates(["user", "item"])  # fmt: skip
    floats = log.astype({"user": float})  # the audit names them, and nobody else may hear of it
    halves = recsys.split(log, "leave_last")
    ratings = pd.DataFrame({
        "user": np.arange(400) % 40, "item": np.arange(400), "rating": rng.integers(1, 6, 400),
        "prediction": rng.uniform(1, 5, 400),
    })  # fmt: skip
    ranks = rng.integers(1, 101, 500)
    decisions = pd.DataFrame({
        "action": rng.integers(0, 3, 600), "reward": rng.integers(0, 2, 600), "propensity": 1 / 3,
    })  # fmt: skip
    visits = pd.DataFrame({
        "user": np.arange(600), "variant": np.arange(600) % 2, "bought": rng.integers(0, 2, 600),
    })  # fmt: skip
    one, two = recsys.evaluate(lists, truth, METRICS), recsys.evaluate(others, truth, METRICS)
    models = {"one": one, "two": two}

    def batches() -> Any:
        evaluator = recsys.Evaluator(METRICS)
        for start in range(0, users, 60):
            batch = range(start, start + 60)
            evaluator.update({u: lists[u] for u in batch}, {u: truth[u] for u in batch})
        return evaluator.result()

    def saved() -> Any:
        path = folder / f"{threading.get_ident()}.json"
        one.save(path)
        return recsys.load(path)

    return {
        "dicts": lambda: recsys.evaluate(lists, truth, METRICS),
        "nested dicts": lambda: recsys.evaluate(scored, graded, METRICS, conventions="trec_eval"),
        "table": lambda: recsys.evaluate(table, wanted, METRICS),
        "polars": lambda: recsys.evaluate(pl.from_pandas(table), pl.from_pandas(wanted), METRICS),
        "factors": lambda: recsys.evaluate(factors, matrix, METRICS, seen={}),
        "groups": lambda: recsys.evaluate(lists, truth, METRICS, by=lambda user: user % 3).by,
        "ties": lambda: recsys.evaluate(tied, truth, METRICS, conventions={"ties": "expected"}),
        "recommend": lambda: recsys.recommend(factors, k=10),
        "one list": lambda: recsys.score_list(lists[0], truth[0], "ndcg@10"),
        "compare": lambda: recsys.compare(models, "one"),
        "bootstrap": lambda: recsys.compare(models, "one", test="studentised", n_resamples=199),
        "gate": lambda: str(recsys.gate(two, one, {"ndcg@10": "5%"})),
        "intervals": lambda: str(one.intervals()),
        "bounds": lambda: str(one.bounds()),
        "stopping": lambda: recsys.evaluate(lists, truth, ["ndcg@10"], stop_when=0.1),
        "explain": lambda: str(recsys.explain(one, "trec_eval")),
        "split": lambda: recsys.split(log, "leave_last").test,
        "audit": lambda: str(recsys.audit(floats, halves.test)),
        "fuse": lambda: recsys.fuse([lists, others]),
        "batches": batches,
        "ratings": lambda: repr(dict(recsys.evaluate_ratings(ratings))),
        "saved": saved,
        "report": lambda: MOMENTS.sub("", report_html(models)),
        "sampled": lambda: recsys.sampled.estimate(ranks, 99, 2000, "ndcg@10"),
        "policy": lambda: str(recsys.debias.off_policy(decisions, {0: 0.5, 1: 0.3, 2: 0.2})),
        "experiment": lambda: str(recsys.ab(visits, unit="user", variant="variant", metric=["bought"])),
    }  # fmt: skip


def small_calls() -> Iterator[Call]:
    """Small evaluations without end, no two with the same users, items or values."""
    rng = np.random.default_rng(1)
    at = 0
    while True:
        users = [f"user {at}-{n}" for n in range(2 + at % 9)]
        items = [f"item {at}-{n}" for n in range(12)]
        lists = {u: [items[i] for i in rng.permutation(12)[:5]] for u in users}
        truth = {u: {items[i]: 1 + int(i) % 2 for i in rng.permutation(12)[:3]} for u in users}
        yield lambda lists=lists, truth=truth: recsys.evaluate(lists, truth, ["ndcg@5", "recall@5", "mrr"])
        at += 1


# --- what may grow --------------------------------------------------------------------------------------


def resident() -> float:
    """MB of memory in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def kept() -> Counter[str]:
    """What is held between calls: files, threads, warnings, entries of containers and unlimited caches."""
    sizes = Counter({"warning filters": len(warnings.filters), "threads": threading.active_count()})
    sizes["open files"] = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for name, module in [*sys.modules.items()]:
        inside = getattr(module, "__dict__", {})
        sizes["warnings shown"] += len(inside.get("__warningregistry__", {}))
        if name.split(".")[0] != "recsys":
            continue
        for key, value in [*inside.items()]:
            if hasattr(value, "cache_info") and value.__module__ == name:
                cache = value.cache_info()
                sizes[f"{name}.{key} (cache)"] = 0 if cache.maxsize else cache.currsize
            elif isinstance(value, dict | list | set) and not key.startswith("__"):
                sizes[f"{name}.{key}"] = len(value)
    return sizes


def census() -> Counter[str]:
    """Objects that the collector follows, by type."""
    gc.collect()
    return Counter(type(each).__qualname__ for each in gc.get_objects())


def leftovers(before: Mapping[str, int], after: Mapping[str, int], allowed: int = 0) -> dict[str, int]:
    """What there is more of, beyond what is allowed."""
    growth = {name: n - before.get(name, 0) for name, n in after.items()}
    return {name: n for name, n in growth.items() if n > allowed}


def slope(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """MB in ten minutes and its standard error, by least squares through the means of 30 stretches."""
    x, y = np.array([part.mean(axis=0) for part in np.array_split(np.array(samples), 30)]).T
    spread = x - x.mean()
    rate = float(spread @ y / (spread @ spread))
    rest = y - y.mean() - rate * spread
    error = math.sqrt(float(rest @ rest) / (len(x) - 2) / float(spread @ spread))
    return 600 * rate, 600 * error


# --- the two loads --------------------------------------------------------------------------------------


def small_loop(piece: str, seconds: float, finished: Finished) -> None:
    """Small evaluations one after the other, as quickly as one thread makes them, after a warm-up.

    On a busy machine it runs on until it has made as many as a free one would have to.
    """
    if piece in finished.done:
        return
    calls, samples, done, spent = small_calls(), [], 0, 0.0
    began = time.monotonic()
    while time.monotonic() - began < seconds / 5:
        next(calls)()
    census()  # the first one makes objects of its own
    held, objects, began = kept(), census(), time.monotonic()
    while (now := time.monotonic() - began) < seconds or done < SMALL_RATE * seconds / 60:
        samples.append((round(now, 1), resident()))
        until = time.monotonic() + 1
        while time.monotonic() < until:
            call = next(calls)
            start = time.process_time()  # what else runs on the machine does not slow a call down
            call()
            spent += time.process_time() - start
            done += 1
    finished.add({
        "piece": piece, "seconds": round(now, 1), "run": round(began), "calls": done,
        "computed": round(spent, 1), "samples": samples, "wrong": {},
        "grew": leftovers(held, kept()) | leftovers(objects, census(), allowed=SOME),
    })  # fmt: skip


def from_threads(pieces: Sequence[str], seconds: float, finished: Finished) -> None:
    """Mixed calls from all threads, a piece after the other; pieces that are there already are not run."""
    left = [piece for piece in pieces if piece not in finished.done]
    if not left:
        return
    stop, wrong, counts = threading.Event(), Counter[str](), [0] * THREADS

    def work(at: int) -> None:
        rng = np.random.default_rng(at)
        while not stop.is_set():
            name = str(rng.choice([*calls]))
            try:
                if digest(calls[name]()) != expected[name]:
                    wrong[f"{name}: another answer than alone"] += 1
            except Exception as error:  # noqa: BLE001 - whatever comes out is counted
                wrong[f"{name}: {error!r}"] += 1
            counts[at] += 1
            last[at] = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        calls = mixed_calls(Path(folder))
        expected = {name: digest(call()) for name, call in calls.items()}
        changed = [name for name, call in calls.items() if digest(call()) != expected[name]]
        wrong.update(f"{name}: another answer when it is made again" for name in changed)
        held, began = kept(), time.monotonic()
        last = [began] * THREADS
        threads = [threading.Thread(target=work, args=(at,), daemon=True) for at in range(THREADS)]
        for thread in threads:
            thread.start()
        for piece in left:
            samples, done, end = [], sum(counts), time.monotonic() + seconds / len(pieces)
            while (now := time.monotonic()) < end:
                time.sleep(1)
                if now - began > min(WARM_UP, seconds / 5):
                    samples.append((round(now - began, 1), resident()))
                faulthandler.dump_traceback_later(
                    HANGS + min(last) - now, exit=True
                )  # replaces the one before
            if piece == left[-1]:
                stop.set()
                for thread in threads:
                    thread.join()
            finished.add({
                "piece": piece, "seconds": round(seconds / len(pieces), 1), "run": round(began),
                "calls": sum(counts) - done, "samples": samples, "wrong": dict(wrong),
                "grew": leftovers(held, kept()) if piece == left[-1] else {},
            })  # fmt: skip
            wrong.clear()
    faulthandler.cancel_dump_traceback_later()


def verdict(kind: str, pieces: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """The row of a load in the table, and what does not hold."""
    calls, seconds = sum(p["calls"] for p in pieces), sum(p["seconds"] for p in pieces)
    broken = [f"{p['piece']}: {text} ({n} times)" for p in pieces for text, n in p["wrong"].items()]
    broken += [f"{p['piece']}: {n} more of {what}" for p in pieces for what, n in p["grew"].items()]
    speed = f"{60 * calls / seconds:,.0f}"
    if kind == "small calls" and 60 * calls / seconds < SMALL_RATE:  # the machine was busy, or the calls slow
        rate = 60 * calls / sum(p["computed"] for p in pieces)
        speed += f" ({rate:,.0f} of processor time)"
        if rate < SMALL_RATE:
            broken.append(f"{kind}: {speed} in a minute, not {SMALL_RATE:,}")
    memory = "not judged in less than ten minutes"
    if seconds >= PIECE:
        runs: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for piece in pieces:
            runs[piece["run"]] += piece["samples"]
        slopes = [slope(samples) for samples in runs.values() if len(samples) >= SAMPLES]
        memory, holds = "never judged", False
        if slopes:
            rate, error = max(slopes, key=lambda found: found[0] - 3 * found[1])
            memory, holds = f"{rate:+.2f} ± {error:.2f}", rate - 3 * error <= GROWTH
        if not holds:
            broken.append(f"{kind}: memory, MB in ten minutes: {memory}")
    wrong = sum(sum(p["wrong"].values()) for p in pieces)
    cells = [kind, f"{seconds / 60:.3g}", f"{calls:,}", speed, wrong, memory]
    return f"| {' | '.join(map(str, cells))} |", broken


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="the JSON lines of finished pieces")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the threads run")
    parser.add_argument("--table", action="store_true", help="write the section of docs/reliability.md")
    arguments = parser.parse_args()
    warnings.simplefilter("default")
    warnings.showwarning = lambda *_, **__: None
    finished = Finished(arguments.file, [ROOT / "src", Path(__file__)])
    seconds, short = arguments.seconds, arguments.seconds / 6
    # The length is in the name: a short load never stands for a long one.
    n = max(1, math.ceil(seconds / PIECE))
    small = f"small calls, {short:g} s"
    threads = [f"threads, {seconds:g} s, {at} of {n}" for at in range(1, n + 1)]
    small_loop(small, short, finished)
    from_threads(threads, seconds, finished)
    rows, broken = [], []
    for kind, pieces in (("small calls", [small]), ("threads", threads)):
        row, problems = verdict(kind, [finished.done[piece] for piece in pieces])
        rows.append(row)
        broken += problems
    head = [
        "| load | minutes | calls | in a minute | wrong or failed | memory, MB in ten minutes |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join([*head, *rows, *broken]))
    if arguments.table:
        write_section("load", "\n".join([*head, *rows]))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
