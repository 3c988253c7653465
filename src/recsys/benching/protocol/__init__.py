"""A protocol file: data, split, relevance, candidates, conventions, metrics, models and tests in one TOML.

The file says what is measured on what, and is executed as written, so that a second party gets the same
`result` bytes; where and when it ran is not part of them. The schema knows the tables and their settings; the
registries know which metrics, decisions and splits exist. Every model gets the same truth and the same seen
items; baselines are made from the training side only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from recsys.benching.protocol.keys import read_schema
from recsys.comparison.compare import Comparison, compare
from recsys.comparison.history import record
from recsys.conventions.decisions import Conventions
from recsys.display.cells import printable
from recsys.display.text_tables import note_text, text_table
from recsys.errors import (
    FileError,
    InputError,
    MissingExtraError,
    ProtocolError,
    RecsysError,
    UnknownNameError,
)
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.files.result_files import run_facts
from recsys.evaluation.results import Evaluation
from recsys.inputs.files import read_file
from recsys.inputs.files.formats import file_sha256, files_of, is_glob, read_text_file
from recsys.metrics.registry import Request, parse_all
from recsys.ranks.open_ranking import open_ranking
from recsys.ranks.ranked_truth import without_history
from recsys.ranks.sources import is_model_path
from recsys.records.arrays import Interactions, Lists, cached_property
from recsys.stats.aggregates import Aggregate

__all__ = ["Outcome", "Protocol", "input_digests", "read_protocol", "run_protocol"]


def __dir__() -> list[str]:
    return __all__


_TABLE_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w\-.\"']+)\s*=")
_OPTIONS = {"folder": "-o FOLDER", "report": "--report FILE"}


@dataclass(frozen=True)
class Protocol:
    """A protocol that was read and checked; paths in it are relative to its own folder."""

    path: Path
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.content.get("title", self.path.stem))

    @property
    def seed(self) -> int:
        return int(self.content.get("seed", 0))

    @cached_property
    def requests(self) -> list[Request]:
        """Every metric at every cut-off, in the order written."""
        metrics = self.content["metrics"]
        aggregate = Aggregate.of(metrics.get("aggregate"))
        requests = parse_all(metrics["names"], metrics.get("k"))
        return [replace(request, aggregate=aggregate) for request in requests]

    @cached_property
    def conventions(self) -> Conventions:
        """The preset with the decisions written next to it, and the threshold of relevance."""
        decisions = dict(self.content.get("conventions", {}))
        conventions = Conventions.of(decisions.pop("preset", None)).but(**decisions)
        threshold = self.content.get("relevance", {}).get("from")
        return conventions if threshold is None else conventions.but(relevant_from=float(threshold))

    @cached_property
    def sha256(self) -> str:
        """Of the content, not of the text: comments and the order of settings do not count."""
        text = json.dumps(
            self.content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def place(self, *where: str) -> str:
        """Return the file and the line of one of its settings, for errors that come up while running."""
        return _location(self.path, self.path.read_text(encoding="utf-8-sig"), where)

    @contextmanager
    def errors_at(self, *where: str) -> Iterator[None]:
        """Errors inside begin with the file and the line of a setting."""
        try:
            yield
        except RecsysError as error:
            error.message = f"{self.place(*where)}: " + error.message
            raise

    def at(self, name: str) -> Path:
        """Return a path of the protocol, resolved from its own folder."""
        return self.path.parent / name

    @cached_property
    def inputs(self) -> list[str]:
        """Every file the protocol names, once."""
        data = self.content["data"]
        named = [data[name] for name in ("interactions", "train", "test") if name in data]
        for model in self.content["models"].values():
            named += [model[name] for name in ("lists", "user_ids", "item_ids") if name in model]
            named += model.get("factors", [])
        return list(dict.fromkeys(named))


def read_protocol(path: str | Path) -> Protocol:
    """Read and check a protocol file; every error names the line."""
    file = Path(path)
    text = read_text_file(file, "utf-8-sig")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"{file}: {error}.", hint="A protocol is TOML.") from error
    _check_schema(file, text, content)
    protocol = Protocol(file, content)
    for table, check in (
        ("metrics", lambda: protocol.requests),
        ("conventions", lambda: protocol.conventions),
        ("compare", lambda: _check_comparison(protocol)),
        ("split" if "split" in content else "data", lambda: _check_split(protocol)),
        ("output", lambda: _check_output(protocol)),
    ):
        with protocol.errors_at(table):
            check()
    _check_baselines(protocol)
    return protocol


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    r"""Return the line of each table and key of a TOML text, by its path.

    >>> line_numbers('seed = 1\n[metrics]\nnames = ["mrr"]')[("metrics", "names")]
    3
    """
    table: tuple[str, ...] = ()
    numbers: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _TABLE_HEADER.match(line), _KEY.match(line)
        if header:
            table = _split_dotted_name(header.group(1))
            numbers.setdefault(table, number)
        elif key:
            numbers.setdefault((*table, *_split_dotted_name(key.group(1))), number)
    return numbers


def _split_dotted_name(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^.\s]+)", dotted)
    return tuple(next(p for p in part if p) for part in parts if any(part))


def _check_schema(file: Path, text: str, content: dict[str, Any]) -> None:
    try:
        from jsonschema import Draft202012Validator
    except ImportError as error:
        raise MissingExtraError("jsonschema", "cli", "Checking a protocol") from error
    errors = sorted(
        Draft202012Validator(read_schema()).iter_errors(content), key=lambda e: list(map(str, e.path))
    )
    if not errors:
        return
    first, hint = errors[0], None
    where = [str(part) for part in first.absolute_path]
    name = ".".join(where) or "the file"
    if first.validator == "additionalProperties":
        known = first.schema.get("properties", ())
        unknown = min(set(first.instance) - set(known))
        message, hint = f"{name} has no setting {unknown!r}.", f"Known here: {', '.join(known)}."
        where.append(unknown)
    elif first.validator == "required":
        message = f"{name} lacks {next(n for n in first.validator_value if n not in first.instance)!r}."
    elif first.validator == "dependentRequired":
        needs = first.validator_value.items()
        given = first.instance.keys()
        setting, needed = next((s, n) for s, (n,) in needs if s in given and n not in given)
        message = f"{name}: {setting} is for {'' if name == 'data' else 'models with '}{needed} only."
        where = where[:1]
    elif first.validator == "oneOf":
        choices = [choice["required"][0] for choice in first.validator_value]
        message = f"{name} needs exactly one of {', '.join(choices)}."
    else:
        message = f"{name}: {first.message}."
    raise FileError(f"{_location(file, text, where)}: {message}", hint=hint)


def _location(file: Path, text: str, where: Sequence[str]) -> str:
    """Return the file and the line of a setting, of its table, or of what is in it."""
    lines = line_numbers(text)
    for length in range(len(where), 0, -1):
        if tuple(where[:length]) in lines:
            return f"{file}, line {lines[tuple(where[:length])]}"
    inside = [number for path, number in lines.items() if path[: len(where)] == tuple(where)]
    return f"{file}, line {min(inside)}" if where and inside else str(file)


def _check_comparison(protocol: Protocol) -> None:
    comparison = protocol.content.get("compare", {})
    baseline = comparison.get("baseline")
    if baseline is not None and baseline not in protocol.content["models"]:
        raise UnknownNameError("baseline", baseline, protocol.content["models"])
    known = [str(request) for request in protocol.requests]
    for name in [*comparison.get("metrics", ()), comparison.get("headline", known[0])]:
        if str(Request.parse(name)) not in known:
            raise UnknownNameError("metric to compare", name, known)


def _check_split(protocol: Protocol) -> None:
    """Check that [split] names one strategy that makes one split, with options it has."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    data, options = protocol.content["data"], protocol.content.get("split")
    if ("interactions" in data) != (options is not None):
        raise InputError(
            "[data] names interactions and there is no [split]."
            if options is None
            else "[data] names a test, so [split] has nothing to split.",
            hint="interactions and [split] go together, with how = 'leave_last', for example.",
        )
    if options is None:
        return
    if data.get("reading") == "bench" and ("repeats" in data or not protocol.content.get("relevance")):
        raise InputError(
            "reading = 'bench' has a rule for repeats, and none for what is relevant.",
            hint="Take repeats out of [data], and add [relevance] with from = 4, say, or every_row = true.",
        )
    how = options["how"]
    single = [name for name, strategy in STRATEGIES.load_plugins().items() if strategy.makes == "one"]
    if how not in single:
        raise UnknownNameError("way to split once", how, single)
    placed_elsewhere = {
        "seed": "It belongs at the top of the file.",
        "columns": "They belong in [data.columns].",
    }
    known = {*STRATEGIES[how].parameters, *DEFAULTS} - set(placed_elsewhere)
    for name in options:
        if name in placed_elsewhere:
            raise InputError(f"[split] has no {name}.", hint=placed_elsewhere[name])
        if name not in known | {"how"}:
            raise UnknownNameError(f"option of {how}", name, known)


def _check_baselines(protocol: Protocol) -> None:
    """Check that each baseline exists and has the settings given to it, and 'recent' alone an age."""
    from recsys.models.trainable import TRAINABLE

    for name, model in protocol.content["models"].items():
        has_age = "half_life" in model or "share" in model.get("settings", {})
        if (model.get("baseline") == "recent") != has_age:
            with protocol.errors_at("models"):
                raise InputError(
                    f"models.{name}: the baseline 'recent' needs half_life, such as \"7d\" or a number in "
                    "the unit of the times, and no other has one."
                )
        if "baseline" not in model:
            continue
        with protocol.errors_at("models", name, "baseline"):
            known = TRAINABLE.find(model["baseline"]).settings
        if model["baseline"] == "recent":  # half_life and unit are next to settings
            known = {} if "half_life" in model else {"share": known["share"]}
        for setting in model.get("settings", {}):
            if setting not in known:
                with protocol.errors_at("models", name, "settings"):
                    raise UnknownNameError(f"setting of {model['baseline']}", setting, known)


def _check_output(protocol: Protocol) -> None:
    """Check that results stay below the folder of the protocol, which may come from anyone."""
    base = Path(os.path.realpath(protocol.path.parent))
    for name, value in protocol.content.get("output", {}).items():
        try:
            target = Path(os.path.realpath(protocol.at(value)))
        except ValueError as error:  # a NUL
            raise ProtocolError(
                f"{name} = {value!r} is not a path: {error}.", hint="Name another."
            ) from error
        if not target.is_relative_to(base):
            raise ProtocolError(
                f"{name} = {value!r} is outside the folder of the protocol, {base}.",
                hint=f"Name a place below it, or call recsys run with {_OPTIONS[name]}.",
            )
        if name == "report" and target.suffix.lower() not in (".html", ".htm"):
            raise ProtocolError(f"report = {value!r} is not a page.", hint='Such as report = "report.html".')


def _refuse_to_overwrite(protocol: Protocol, folder: Path | None, report: Path | None) -> None:
    """Check that no output is one of the inputs, the protocol, or a file among those of an input folder."""
    folders = {os.path.realpath(place) for place in map(protocol.at, protocol.inputs) if place.is_dir()}
    files = {os.path.realpath(file) for name in protocol.inputs for file in files_of(protocol.at(name))}
    files |= {os.path.realpath(protocol.path)}
    for target, itself in ((folder, folders), (report, files)):
        place = None if target is None else Path(os.path.realpath(target))
        if place is not None and not itself.union(folders).isdisjoint(map(str, [place, *place.parents])):
            raise ProtocolError(
                f"{target} would overwrite what the protocol reads, or add to it.",
                hint="Name another place for the results.",
            )


@dataclass(frozen=True)
class Outcome:
    """The results of a run, where they were saved, and what they were measured on."""

    protocol: Protocol
    evaluations: dict[str, Evaluation]
    comparison: Comparison | None
    paths: dict[str, Path]
    inputs: dict[str, str]
    report: Path | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        results = self.evaluations
        metrics = list(next(iter(results.values())))
        columns: dict[str, list[Any]] = {"model": list(results)}
        columns |= {name: [result[name] for result in results.values()] for name in metrics}
        parts = [printable(self.protocol.title), "", text_table(columns)]
        if self.comparison is not None:
            # It has the cautions of the models, too.
            return "\n".join([*parts, "", self.comparison.to_text(), *self.notes])
        cautions = (one for result in results.values() for one in result.cautions)
        below = [*map(note_text, [*self.notes, *cautions])]
        return "\n".join([*parts, *(["", *below] if below else [])])

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return what a second party must get.

        These are hashes of the protocol and its inputs, and each model's result.
        """
        results = {name: json.loads(e.to_json()) for name, e in self.evaluations.items()}
        result = {
            "protocol": self.protocol.sha256,
            "inputs": self.inputs,
            "models": {name: document["result"] for name, document in results.items()},
        }
        text = json.dumps(result, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        document = {
            "result": result,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "notes": list(self.notes),
            "cautions": {name: document["cautions"] for name, document in results.items()},
            "run": next(iter(results.values()))["run"],
        }
        return json.dumps(document, indent=indent, ensure_ascii=False)


def run_protocol(
    protocol: Protocol | str | Path,
    *,
    folder: str | Path | None = None,
    report: str | Path | None = None,
    cautions: str | Sequence[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Outcome:
    """Execute a protocol and save its results.

    Args:
        protocol: a protocol, or the path of one.
        folder: where results are added; by default where the protocol says.
        report: the report to write; by default the one the protocol names.
        cautions: "ignore", or the codes of the cautions that are not to be given.
        progress: called with a line of text at each step.
    """
    if not isinstance(protocol, Protocol):
        protocol = read_protocol(protocol)
    say = progress or (lambda _: None)
    say("checking the inputs")
    inputs = input_digests(protocol)
    output = {name: protocol.at(value) for name, value in protocol.content.get("output", {}).items()}
    folder = output.get("folder") if folder is None else Path(folder)
    page = output.get("report") if report is None else Path(report)
    if isinstance(report, str):
        page = protocol.at(report)
    _refuse_to_overwrite(protocol, folder, page)
    say("reading and splitting")
    from recsys.benching.bench_plan import with_ids_of, words_on_missing_lists

    train, test, history = _read_data(protocol, say)
    _check_relevance(protocol, test)
    candidates = protocol.content.get("candidates", {})
    seen = history if candidates.get("seen", "exclude") == "exclude" else None
    results, runs, seconds, notes = dict[str, Evaluation](), dict[str, list[Evaluation]](), {}, list[str]()
    for name, run_name, model, facts in _runs(protocol):
        say(f"evaluating {run_name}")
        exclude = candidates.get("exclude")
        if "lists" in model and not is_model_path(model["lists"]):
            if exclude:
                say(f"{name}: candidates.exclude was not applied, its lists are taken as they are")
            exclude = None
        start = time.perf_counter()
        with protocol.errors_at("models", name):
            source = _read_model(protocol, model, train, **facts)
            source = source if train is None else with_ids_of(train, source)
            if isinstance(source, Lists) and seen is not None:
                source, n_had = without_history(source, seen)
                if n_had:
                    notes.append(f"{name}: {n_had:,} listed items were in training, and were left out")
            results[run_name] = evaluate(
                source, test, protocol.requests, conventions=protocol.conventions, seen=seen, train=train,
                exclude=exclude, cautions=cautions,
            )  # fmt: skip
        notes += (f"{name}: {words}" for words in words_on_missing_lists(results[run_name]))
        results[run_name].run = {**run_facts(), **facts}
        runs.setdefault(name, []).append(results[run_name])
        seconds[run_name] = round(time.perf_counter() - start, 3)
    options = dict(protocol.content.get("compare", {}))
    baseline, metrics = options.pop("baseline", None), options.pop("metrics", None)
    comparison = None
    if len(runs) > 1:
        comparison = compare(runs, baseline, metrics, cautions=cautions, rng=protocol.seed, **options)
    paths = {}
    if folder is not None:
        run = {"protocol": protocol.sha256, "title": protocol.title, "inputs": inputs}
        for name, result in results.items():
            paths[name] = record(folder, result, name, seconds=seconds[name], **run)
    if page is not None:
        from recsys.report import write_report

        say("writing the report")
        page.parent.mkdir(parents=True, exist_ok=True)
        what = comparison or runs
        write_report(page, what, baseline=baseline, title=protocol.title, truth=test, train=train)
    return Outcome(protocol, results, comparison, paths, inputs, page, tuple(notes))


def input_digests(protocol: Protocol, *, check: bool = True) -> dict[str, str]:
    """Return {file: sha256} of every input; with `check`, one that differs from the protocol is an error.

    The sha256 of a folder or a glob is that of the lines `sha256sum` prints for the names of its files.
    """
    digests = {}
    for name in protocol.inputs:
        path = protocol.at(name)
        lines = ""
        for part in files_of(path):
            digests[name] = file_sha256(part)
            lines += f"{digests[name]}  {part.name}\n"
        if path.is_dir() or is_glob(path):
            digests[name] = hashlib.sha256(lines.encode()).hexdigest()
    for name, digest in protocol.content["data"].get("sha256", {}).items() if check else ():
        if name not in digests:
            raise FileError(f"data.sha256 names {name!r}, which the protocol does not read.")
        if digests[name] != digest:
            raise FileError(
                f"{name} is not the file the protocol was written for: its sha256 is {digests[name]}.",
                hint="Get the original, or state the new fingerprint.",
            )
    return digests


def _read_data(
    protocol: Protocol, say: Callable[[str], object]
) -> tuple[Interactions | None, Interactions, Interactions | None]:
    """Training data, test data, and what the users of the test had before."""
    data, relevance = protocol.content["data"], protocol.content.get("relevance", {})
    columns: Any = {role: name or None for role, name in data.get("columns", {}).items()}
    reading = {"ids": "str", **{name: data[name] for name in ("ids", "format", "encoding") if name in data}}
    every_row = relevance.get("every_row", False)
    if data.get("reading") == "bench":
        from recsys.benching.bench_plan import make_plan, read_events

        rows = read_events(protocol.at(data["interactions"]), columns=columns or None, **reading)
        with protocol.errors_at("split"):
            plan = make_plan(
                rows, columns=columns or None, relevant_from=None if every_row else relevance["from"],
                seed=protocol.seed, decided=protocol.content["split"],
            )  # fmt: skip
        for heading, sentence in plan.explain():
            say(f"{heading}: " + sentence)
        history = plan.history("train", "validation")
        return history, plan.test, history
    columns = (columns | {"grade": None} if every_row else columns) or None
    if "interactions" not in data:
        paths = {name: protocol.at(data[name]) for name in ("train", "test") if name in data}
        read = {name: read_file(file, "truth", columns=columns, **reading) for name, file in paths.items()}
        return read.get("train"), read["test"], read.get("train")
    import pandas as pd

    from recsys.benching.bench_plan import describe_repeats, first_of_pairs
    from recsys.inputs import read_interactions
    from recsys.inputs.frames import as_frame
    from recsys.splits import Split, split
    from recsys.splits.datasets import table
    from recsys.splits.split_table import FrameTable

    options = dict(protocol.content["split"])
    rows = table(protocol.at(data["interactions"]), columns=columns, **reading).interactions
    if data.get("repeats") == "first":
        with protocol.errors_at("data"):
            whole = FrameTable(as_frame(rows), columns)
            first = first_of_pairs(whole)
        if not first.all():
            say(f"left out: {describe_repeats(first)}")
            rows = whole.take(first)
    with protocol.errors_at("split"):
        made = split(rows, options.pop("how"), seed=protocol.seed, columns=columns, **options)
    parts = cast("Split", made)  # a protocol names strategies that make one split only; see _check_split
    for line in str(parts).splitlines():
        say(line)
    train = read_interactions(parts.train, columns=columns, table="train")
    test = read_interactions(parts.test, columns=columns, table="test")
    if parts.known is None:
        return train, test, train
    # The known rows of unseen users are their history; models learn from train alone.
    history = pd.concat([parts.train, parts.known])
    return train, test, read_interactions(history, columns=columns, table="known")


def _runs(protocol: Protocol) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Yield each run.

    That is the name of its model, its own, the model's settings, and the seed if training draws.
    """
    from recsys.models.trainable import TRAINABLE

    for name, model in protocol.content["models"].items():
        entry = TRAINABLE.find(model["baseline"]) if "baseline" in model else None
        runs = [{}] if entry is None else entry.runs(protocol.seed, protocol.content.get("seeds", 1))
        for facts in runs:
            yield name, f"{name}, seed {facts['seed']}" if len(runs) > 1 else name, model, facts


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


def _read_model(protocol: Protocol, model: dict[str, Any], train: Interactions | None, seed: int = 0) -> Any:
    """Lists, a model of `recsys train`, factors or a baseline, as the protocol describes the model."""
    ids = protocol.content["data"].get("ids", "str")
    if "lists" in model:
        return open_ranking(protocol.at(model["lists"]), model.get("columns"), ids=ids).given
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
    from recsys.models.trainable import train_model

    settings = dict(model.get("settings", {}))
    if "half_life" in model:
        unit = model.get("unit", protocol.content.get("split", {}).get("unit"))
        settings |= {"half_life": model["half_life"], "unit": unit}
    return train_model(model["baseline"], train, seed=seed, **settings)
