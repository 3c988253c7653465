"""Reading a protocol: TOML checked against the schema, errors that name the line.

The schema knows the tables and their settings; the registries know which metrics, decisions and splits exist.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, InputError, MissingExtraError, RecsysError, UnknownNameError
from recsys.metrics.requests import Request, parse_all

_TABLE_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w\-.\"']+)\s*=")


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
        return parse_all(metrics["names"], metrics.get("k"))

    @cached_property
    def conventions(self) -> Conventions:
        """The preset with the decisions written beside it, and the threshold of relevance."""
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
        """The file and the line of one of its settings, for errors that come up while running."""
        return _location(self.path, line_numbers(self.path.read_text(encoding="utf-8-sig")), where)

    def at(self, name: str) -> Path:
        """A path of the protocol, resolved from its own folder."""
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
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{file}: {error}.", hint="A protocol is TOML.") from error
    lines = line_numbers(text)
    _check_schema(file, content, lines)
    protocol = Protocol(file, content)
    for table, check in (
        ("metrics", lambda: protocol.requests),
        ("conventions", lambda: protocol.conventions),
        ("compare", lambda: _check_comparison(protocol)),
        ("split" if "split" in content else "data", lambda: _check_split(protocol)),
        ("models", lambda: _check_models(protocol)),
    ):
        try:
            check()
        except RecsysError as error:
            error.message = f"{_location(file, lines, [table])}: {error.message}"
            raise
    return protocol


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    r"""The line of each table and key of a TOML text, by its path.

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


def _check_schema(file: Path, content: dict[str, Any], lines: dict[tuple[str, ...], int]) -> None:
    try:
        from jsonschema import Draft202012Validator
    except ImportError as error:
        raise MissingExtraError("jsonschema", "cli", "Checking a protocol") from error
    schema = json.loads(files("recsys.cli.protocol").joinpath("schema.json").read_text(encoding="utf-8"))
    errors = sorted(Draft202012Validator(schema).iter_errors(content), key=lambda e: list(map(str, e.path)))
    if errors:
        first = errors[0]
        where = [str(part) for part in first.absolute_path] + _unknown_settings(first)[:1]
        hint = None
        if first.validator == "additionalProperties":
            hint = f"Known here: {', '.join(first.schema.get('properties', ()))}."
        raise FileError(f"{_location(file, lines, where)}: {_schema_message(first)}", hint=hint)


def _schema_message(error: Any) -> str:
    name = ".".join(str(part) for part in error.absolute_path) or "the file"
    if error.validator == "additionalProperties":
        return f"{name} has no setting {_unknown_settings(error)[0]!r}."
    if error.validator == "required":
        return f"{name} lacks {next(n for n in error.validator_value if n not in error.instance)!r}."
    if error.validator == "oneOf":
        choices = [choice["required"][0] for choice in error.validator_value]
        return f"{name} needs exactly one of {', '.join(choices)}."
    return f"{name}: {error.message}."


def _unknown_settings(error: Any) -> list[str]:
    if error.validator != "additionalProperties":
        return []
    return sorted(set(error.instance) - set(error.schema.get("properties", ())))


def _location(file: Path, lines: dict[tuple[str, ...], int], where: Sequence[str]) -> str:
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
    for name in comparison.get("metrics", ()):
        if str(Request.parse(name)) not in known:
            raise UnknownNameError("metric to compare", name, known)


def _check_split(protocol: Protocol) -> None:
    """Check that [split] names one strategy that makes one split, with options it has."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    options = protocol.content.get("split")
    if ("interactions" in protocol.content["data"]) != (options is not None):
        raise InputError(
            "[data] names interactions and there is no [split]."
            if options is None
            else "[data] names a test, so [split] has nothing to split.",
            hint="interactions and [split] go together, with how = 'leave_last', for example.",
        )
    if options is None:
        return
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


def _check_models(protocol: Protocol) -> None:
    """Check that no model has a setting that would be ignored."""
    needed_setting = {
        "columns": "lists",
        "user_ids": "factors",
        "item_ids": "factors",
        "half_life": "baseline",
    }
    for name, model in protocol.content["models"].items():
        for setting, needed in needed_setting.items():
            if setting in model and needed not in model:
                raise InputError(f"models.{name}: {setting} is for models with {needed} only.")
        if (model.get("baseline") == "recent") != ("half_life" in model):
            raise InputError(
                f"models.{name}: the baseline 'recent' needs half_life, in the unit of the times, "
                "and no other has one."
            )
