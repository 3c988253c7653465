"""Running a protocol: inputs checked against their fingerprints, split, ranked, evaluated, compared, kept.

Every model meets the same truth and the same seen items; baselines are made from the training side only.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.cli.protocol.protocol_file import Protocol, read_protocol
from recsys.comparison.compare import Comparison, compare
from recsys.comparison.history import record
from recsys.errors import FileError, InputError, RecsysError
from recsys.evaluation import tables
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.inputs.files import read_file
from recsys.types import Interactions

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """The results of a run, where they were kept, and what they were measured on."""

    protocol: Protocol
    evaluations: dict[str, Evaluation]
    comparison: Comparison | None
    paths: dict[str, Path]
    inputs: dict[str, str]
    report: Path | None = None

    def __str__(self) -> str:
        results = self.evaluations
        shared = list(next(iter(results.values())))
        columns: dict[str, list[Any]] = {"model": list(results)}
        columns |= {name: [result[name] for result in results.values()] for name in shared}
        parts = [self.protocol.title, "", tables.text(columns)]
        if self.comparison is not None:
            parts += ["", str(self.comparison)]
        return "\n".join(parts)

    def to_json(self, *, indent: int | None = 2) -> str:
        """What a second party must get: the protocol, its inputs and each model's result, by their hashes."""
        results = {name: json.loads(e.to_json()) for name, e in self.evaluations.items()}
        result = {
            "protocol": self.protocol.sha256,
            "inputs": self.inputs,
            "models": {name: document["result"] for name, document in results.items()},
        }
        text = json.dumps(result, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        run = next(iter(results.values()))["run"]
        document = {"result": result, "sha256": hashlib.sha256(text.encode()).hexdigest(), "run": run}
        return json.dumps(document, indent=indent, ensure_ascii=False)


def run_protocol(
    protocol: Protocol | str | Path,
    *,
    folder: str | Path | None = None,
    report: str | Path | None = None,
    progress: Callable[[str], object] | None = None,
) -> Outcome:
    """Execute a protocol and keep its results; `folder` and `report` go before what the file says."""
    asked = protocol if isinstance(protocol, Protocol) else read_protocol(protocol)
    say = progress or (lambda _: None)
    say("checking the inputs")
    inputs = fingerprints(asked)
    say("reading and splitting")
    train, test, had = _sides(asked, say)
    _check_relevance(asked, test)
    seen = had if asked.content.get("candidates", {}).get("seen", "exclude") == "exclude" else None
    results, seconds = {}, {}
    for name, model in asked.content["models"].items():
        say(f"evaluating {name}")
        if "lists" in model and asked.content.get("candidates", {}).get("never"):
            say(f"{name}: candidates.never was not applied, its lists are taken as they are")
        start = time.perf_counter()
        try:
            results[name] = _evaluated(asked, model, train, test, seen)
        except RecsysError as error:
            error.message = f"{asked.place('models', name)}: {error.message}"
            raise
        seconds[name] = round(time.perf_counter() - start, 3)
    comparison = _compared(asked, results)
    paths = _kept(asked, results, folder, {"inputs": inputs, "seconds": seconds})
    outcome = Outcome(asked, results, comparison, paths, inputs)
    target = report or asked.content.get("output", {}).get("report")
    if target is None:
        return outcome
    say("writing the report")
    return Outcome(asked, results, comparison, paths, inputs, _reported(asked, outcome, target, train, test))


def fingerprints(protocol: Protocol, *, check: bool = True) -> dict[str, str]:
    """{file: sha256} of every input; one that differs from what the protocol states is an error."""
    stated = protocol.content["data"].get("sha256", {}) if check else {}
    made = {name: _sha256(protocol.at(name)) for name in protocol.inputs}
    for name, digest in stated.items():
        if name not in made:
            raise FileError(f"data.sha256 names {name!r}, which the protocol does not read.")
        if made[name] != digest:
            raise FileError(
                f"{name} is not the file the protocol was written for: its sha256 is {made[name]}.",
                hint="Get the original, or state the new fingerprint.",
            )
    return made


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    return digest.hexdigest()


def _sides(
    protocol: Protocol, say: Callable[[str], object]
) -> tuple[Interactions | None, Interactions, Interactions | None]:
    """What models learn from, what they are judged on, and what its users had before."""
    data = protocol.content["data"]
    if "interactions" in data:
        return _split(protocol, say)
    train = None if "train" not in data else _interactions(protocol, data["train"])
    return train, _interactions(protocol, data["test"]), train


def _check_relevance(protocol: Protocol, test: Interactions) -> None:
    """That the threshold leaves something relevant."""
    least = protocol.conventions.relevant_from
    if least is None:
        return
    highest = 1.0 if test.grades is None else float(test.grades.max(initial=0.0))
    if highest < least:
        came = "has no grades" if test.grades is None else f"has no grade above {highest:g}"
        raise InputError(
            f"{protocol.place('relevance', 'from')}: nothing is relevant: the test {came}, and relevant is "
            f"what has {least:g} or more.",
            hint="Lower the threshold, or name the column of the grades in [data.columns].",
        )


def _interactions(protocol: Protocol, name: str) -> Interactions:
    data = protocol.content["data"]
    columns = data.get("columns") or None
    return read_file(protocol.at(name), "truth", columns=columns, ids=data.get("ids", "str"))


def _split(
    protocol: Protocol, say: Callable[[str], object]
) -> tuple[Interactions, Interactions, Interactions]:
    import pandas as pd

    from recsys.inputs.frames import read_interactions
    from recsys.splits import split
    from recsys.splits.datasets import table

    data, asked = protocol.content["data"], dict(protocol.content["split"])
    columns = data.get("columns") or None
    frame = table(protocol.at(data["interactions"]), columns=columns, ids=data.get("ids", "str"))
    try:
        made = split(frame.interactions, asked.pop("how"), seed=protocol.seed, columns=columns, **asked)
    except RecsysError as error:
        error.message = f"{protocol.place('split')}: {error.message}"
        raise
    for line in str(made).splitlines():
        say(line)

    def side(part: Any, name: str) -> Interactions:
        return read_interactions(part, columns=columns, table=name)

    train, test = side(made.train, "train"), side(made.test, "test")
    if made.known is None:
        return train, test, train
    # Of unseen users the known rows are what they had; models learn from train alone.
    return train, test, side(pd.concat([made.train, made.known]), "known")


def _evaluated(
    protocol: Protocol,
    model: dict[str, Any],
    train: Interactions | None,
    test: Interactions,
    seen: Interactions | None,
) -> Evaluation:
    ranked = _ranked(protocol, model, train, test)
    never = protocol.content.get("candidates", {}).get("never")
    by_lists = "lists" in model
    return evaluate(
        ranked, test, protocol.requests, conventions=protocol.conventions, seen=seen,
        train=train, never=None if by_lists else never,
    )  # fmt: skip


def _ranked(protocol: Protocol, model: dict[str, Any], train: Interactions | None, test: Interactions) -> Any:
    ids = protocol.content["data"].get("ids", "str")
    if "lists" in model:
        return read_file(protocol.at(model["lists"]), "lists", columns=model.get("columns"), ids=ids)
    if "factors" in model:
        from recsys.ranks.sources import read_factors

        users, items = (protocol.at(name) for name in model["factors"])
        own = {n: protocol.at(model[n]) for n in ("user_ids", "item_ids") if n in model}
        return read_factors(users, items, **own, ids=ids)
    if train is None:
        raise InputError(
            "a baseline is made of the training side, and [data] names none.", hint="Add train = 'train.csv'."
        )
    return _baseline(protocol, model, train, test)


def _baseline(protocol: Protocol, model: dict[str, Any], train: Interactions, test: Interactions) -> Any:
    from recsys.models.baselines import popularity, shuffled, training_counts

    users = test.cases.values.tolist()
    if model["baseline"] == "random":
        return shuffled(users=users, item_ids=train.items.values.tolist(), seed=protocol.seed)
    return popularity(training_counts(train, half_life=model.get("half_life")), users=users)


def _compared(protocol: Protocol, results: dict[str, Evaluation]) -> Comparison | None:
    asked = dict(protocol.content.get("compare", {}))
    if len(results) < 2:
        return None
    return compare(
        results, asked.pop("baseline", None), asked.pop("metrics", None), rng=protocol.seed, **asked
    )


def _kept(
    protocol: Protocol, results: dict[str, Evaluation], folder: str | Path | None, facts: dict[str, Any]
) -> dict[str, Path]:
    named = protocol.content.get("output", {}).get("folder")
    if folder is None and named is None:
        return {}
    place = Path(folder) if folder is not None else protocol.at(named)
    shared = {"protocol": protocol.sha256, "title": protocol.title, "inputs": facts["inputs"]}
    return {
        name: record(place, result, name, seconds=facts["seconds"][name], **shared)
        for name, result in results.items()
    }


def _reported(protocol: Protocol, outcome: Outcome, target: str | Path, train: Any, test: Any) -> Path:
    from recsys.report import write_report

    path = Path(target) if not isinstance(target, str) else protocol.at(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    baseline = protocol.content.get("compare", {}).get("baseline")
    write_report(path, outcome.evaluations, baseline=baseline, title=protocol.title, truth=test, train=train)
    return path
