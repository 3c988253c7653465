"""Running a protocol: check fingerprints, split, rank, evaluate, compare, save.

Every model gets the same truth and the same seen items; baselines are made from the training side only.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

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
    """The results of a run, where they were saved, and what they were measured on."""

    protocol: Protocol
    evaluations: dict[str, Evaluation]
    comparison: Comparison | None
    paths: dict[str, Path]
    inputs: dict[str, str]
    report: Path | None = None

    def __str__(self) -> str:
        results = self.evaluations
        metrics = list(next(iter(results.values())))
        columns: dict[str, list[Any]] = {"model": list(results)}
        columns |= {name: [result[name] for result in results.values()] for name in metrics}
        parts = [self.protocol.title, "", tables.text(columns)]
        if self.comparison is not None:
            parts += ["", str(self.comparison)]
        return "\n".join(parts)

    def to_json(self, *, indent: int | None = 2) -> str:
        """What a second party must get: hashes of the protocol and its inputs, and each model's result."""
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
    """Execute a protocol and save its results.

    Args:
        protocol: a protocol, or the path of one.
        folder: where results are added; by default where the protocol says.
        report: the report to write; by default the one the protocol names.
        progress: called with a line of text at each step.
    """
    if not isinstance(protocol, Protocol):
        protocol = read_protocol(protocol)
    say = progress or (lambda _: None)
    say("checking the inputs")
    inputs = fingerprints(protocol)
    say("reading and splitting")
    train, test, history = _read_data(protocol, say)
    _check_relevance(protocol, test)
    candidates = protocol.content.get("candidates", {})
    seen = history if candidates.get("seen", "exclude") == "exclude" else None
    results, seconds = {}, {}
    for name, model in protocol.content["models"].items():
        say(f"evaluating {name}")
        never = candidates.get("never")
        if "lists" in model:
            if never:
                say(f"{name}: candidates.never was not applied, its lists are taken as they are")
            never = None
        start = time.perf_counter()
        try:
            source = _read_model(protocol, model, train, test)
            results[name] = evaluate(
                source, test, protocol.requests, conventions=protocol.conventions, seen=seen, train=train,
                never=never,
            )  # fmt: skip
        except RecsysError as error:
            error.message = f"{protocol.place('models', name)}: {error.message}"
            raise
        seconds[name] = round(time.perf_counter() - start, 3)
    options = dict(protocol.content.get("compare", {}))
    baseline, metrics = options.pop("baseline", None), options.pop("metrics", None)
    comparison = None
    if len(results) > 1:
        comparison = compare(results, baseline, metrics, rng=protocol.seed, **options)
    output = protocol.content.get("output", {})
    if folder is None and "folder" in output:
        folder = protocol.at(output["folder"])
    paths = {}
    if folder is not None:
        run = {"protocol": protocol.sha256, "title": protocol.title, "inputs": inputs}
        for name, result in results.items():
            paths[name] = record(Path(folder), result, name, seconds=seconds[name], **run)
    target = report or output.get("report")
    page = None
    if target is not None:
        from recsys.report import write_report

        say("writing the report")
        page = protocol.at(target) if isinstance(target, str) else Path(target)
        page.parent.mkdir(parents=True, exist_ok=True)
        write_report(page, results, baseline=baseline, title=protocol.title, truth=test, train=train)
    return Outcome(protocol, results, comparison, paths, inputs, page)


def fingerprints(protocol: Protocol, *, check: bool = True) -> dict[str, str]:
    """{file: sha256} of every input; with `check`, one that differs from the protocol is an error."""
    stated = protocol.content["data"].get("sha256", {}) if check else {}
    digests = {name: _sha256(protocol.at(name)) for name in protocol.inputs}
    for name, digest in stated.items():
        if name not in digests:
            raise FileError(f"data.sha256 names {name!r}, which the protocol does not read.")
        if digests[name] != digest:
            raise FileError(
                f"{name} is not the file the protocol was written for: its sha256 is {digests[name]}.",
                hint="Get the original, or state the new fingerprint.",
            )
    return digests


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    return digest.hexdigest()


def _read_data(
    protocol: Protocol, say: Callable[[str], object]
) -> tuple[Interactions | None, Interactions, Interactions | None]:
    """Training data, test data, and what the users of the test had before."""
    data = protocol.content["data"]
    columns, ids = data.get("columns") or None, data.get("ids", "str")
    if "interactions" not in data:
        train = None
        if "train" in data:
            train = read_file(protocol.at(data["train"]), "truth", columns=columns, ids=ids)
        test = read_file(protocol.at(data["test"]), "truth", columns=columns, ids=ids)
        return train, test, train
    import pandas as pd

    from recsys.inputs import read_interactions
    from recsys.splits import Split, split
    from recsys.splits.datasets import table

    options = dict(protocol.content["split"])
    frame = table(protocol.at(data["interactions"]), columns=columns, ids=ids)
    try:
        # A protocol names strategies that make one split only; see protocol_file.
        parts = cast(
            "Split",
            split(frame.interactions, options.pop("how"), seed=protocol.seed, columns=columns, **options),
        )
    except RecsysError as error:
        error.message = f"{protocol.place('split')}: {error.message}"
        raise
    for line in str(parts).splitlines():
        say(line)
    train = read_interactions(parts.train, columns=columns, table="train")
    test = read_interactions(parts.test, columns=columns, table="test")
    if parts.known is None:
        return train, test, train
    # The known rows of unseen users are their history; models learn from train alone.
    history = pd.concat([parts.train, parts.known])
    return train, test, read_interactions(history, columns=columns, table="known")


def _check_relevance(protocol: Protocol, test: Interactions) -> None:
    """Check that some item of the test reaches the threshold of relevance."""
    threshold = protocol.conventions.relevant_from
    if threshold is None:
        return
    highest = 1.0 if test.grades is None else float(test.grades.max(initial=0.0))
    if highest < threshold:
        problem = "has no grades" if test.grades is None else f"has no grade above {highest:g}"
        raise InputError(
            f"{protocol.place('relevance', 'from')}: nothing is relevant: the test {problem}, and relevant "
            f"items have {threshold:g} or more.",
            hint="Lower the threshold, or name the column of the grades in [data.columns].",
        )


def _read_model(
    protocol: Protocol, model: dict[str, Any], train: Interactions | None, test: Interactions
) -> Any:
    """Lists, factors or a baseline, as the protocol describes the model."""
    ids = protocol.content["data"].get("ids", "str")
    if "lists" in model:
        return read_file(protocol.at(model["lists"]), "lists", columns=model.get("columns"), ids=ids)
    if "factors" in model:
        from recsys.ranks.sources import read_factors

        users, items = (protocol.at(name) for name in model["factors"])
        id_files = {n: protocol.at(model[n]) for n in ("user_ids", "item_ids") if n in model}
        return read_factors(users, items, **id_files, ids=ids)
    if train is None:
        raise InputError(
            "a baseline is made from the training data, and [data] names none.",
            hint="Add train = 'train.csv'.",
        )
    from recsys.models.baselines import popularity, shuffled, training_counts

    users = test.cases.values.tolist()
    if model["baseline"] == "random":
        return shuffled(users=users, item_ids=train.items.values.tolist(), seed=protocol.seed)
    return popularity(training_counts(train, half_life=model.get("half_life")), users=users)
