"""Reading a protocol: TOML held against the schema, errors that name the line.

The schema says what may stand where; which metrics, decisions and splits exist is asked of those who know.
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

_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_SEVERAL = ("k_fold", "rolling_windows")
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
        asked = self.content["metrics"]
        return parse_all(asked["names"], asked.get("k"))

    @cached_property
    def conventions(self) -> Conventions:
        """The preset with the decisions written beside it, and the threshold of relevance."""
        decisions = dict(self.content.get("conventions", {}))
        made = Conventions.of(decisions.pop("preset", None)).but(**decisions)
        least = self.content.get("relevance", {}).get("from")
        return made if least is None else made.but(relevant_from=float(least))

    @cached_property
    def sha256(self) -> str:
        """Of what the protocol says, not of how it is spelled: comments and order do not count."""
        text = json.dumps(
            self.content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def place(self, *where: str) -> str:
        """The file and the line on which a part of it stands, for errors that come up while running."""
        return _place(self.path, line_numbers(self.path.read_text(encoding="utf-8-sig")), where)

    def at(self, name: str) -> Path:
        """A path of the protocol, from its own folder."""
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
    """Read and check a protocol file; every error says the line."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"{place} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{place} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{place}: {error}.", hint="A protocol is TOML.") from error
    lines = line_numbers(text)
    _hold_against_schema(place, content, lines)
    made = Protocol(place, content)
    for part, ask in (
        ("metrics", lambda: made.requests),
        ("conventions", lambda: made.conventions),
        ("compare", lambda: _check_compared(made)),
        ("split" if "split" in content else "data", lambda: _check_split(made)),
        ("models", lambda: _check_models(made)),
    ):
        try:
            ask()
        except RecsysError as error:
            error.message = f"{_place(place, lines, [part])}: {error.message}"
            raise
    return made


def line_numbers(text: str) -> dict[tuple[str, ...], int]:
    r"""The line on which each table and key of a TOML text stands, by its path.

    >>> line_numbers('seed = 1\n[metrics]\nnames = ["mrr"]')[("metrics", "names")]
    3
    """
    table: tuple[str, ...] = ()
    found: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _TABLE.match(line), _KEY.match(line)
        if header:
            table = _path(header.group(1))
            found.setdefault(table, number)
        elif key:
            found.setdefault((*table, *_path(key.group(1))), number)
    return found


def _path(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^.\s]+)", dotted)
    return tuple(next(p for p in part if p) for part in parts if any(part))


def _hold_against_schema(place: Path, content: dict[str, Any], lines: dict[tuple[str, ...], int]) -> None:
    try:
        from jsonschema import Draft202012Validator
    except ImportError as error:
        raise MissingExtraError("jsonschema", "cli", "Checking a protocol") from error
    schema = json.loads(files("recsys.cli.protocol").joinpath("schema.json").read_text(encoding="utf-8"))
    errors = sorted(Draft202012Validator(schema).iter_errors(content), key=lambda e: list(map(str, e.path)))
    if errors:
        first = errors[0]
        where = [str(part) for part in first.absolute_path] + _extra(first)[:1]
        raise FileError(f"{_place(place, lines, where)}: {_told(first)}", hint=_known(first))


def _told(error: Any) -> str:
    name = ".".join(str(part) for part in error.absolute_path) or "the file"
    if error.validator == "additionalProperties":
        return f"{name} has no setting {_extra(error)[0]!r}."
    if error.validator == "required":
        return f"{name} lacks {next(n for n in error.validator_value if n not in error.instance)!r}."
    if error.validator == "oneOf":
        wanted = [choice["required"][0] for choice in error.validator_value]
        return f"{name} needs exactly one of {', '.join(wanted)}."
    return f"{name}: {error.message}."


def _extra(error: Any) -> list[str]:
    if error.validator != "additionalProperties":
        return []
    return sorted(set(error.instance) - set(error.schema.get("properties", ())))


def _known(error: Any) -> str | None:
    if error.validator == "additionalProperties":
        return f"Known here: {', '.join(error.schema.get('properties', ()))}."
    return None


def _place(place: Path, lines: dict[tuple[str, ...], int], where: Sequence[str]) -> str:
    for length in range(len(where), 0, -1):
        if tuple(where[:length]) in lines:
            return f"{place}, line {lines[tuple(where[:length])]}"
    inside = [number for path, number in lines.items() if path[: len(where)] == tuple(where)]
    return f"{place}, line {min(inside)}" if where and inside else str(place)


def _check_compared(protocol: Protocol) -> None:
    asked = protocol.content.get("compare", {})
    baseline = asked.get("baseline")
    if baseline is not None and baseline not in protocol.content["models"]:
        raise UnknownNameError("baseline", baseline, protocol.content["models"])
    known = [str(request) for request in protocol.requests]
    for name in asked.get("metrics", ()):
        if str(Request.parse(name)) not in known:
            raise UnknownNameError("metric to compare", name, known)


def _check_split(protocol: Protocol) -> None:
    """That one split is asked for, in a way there is, with the options it has."""
    import inspect

    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    asked = protocol.content.get("split")
    if ("interactions" in protocol.content["data"]) != (asked is not None):
        raise InputError(
            "[data] names interactions and there is no [split]."
            if asked is None
            else "[data] names a test, so [split] has nothing to split.",
            hint="interactions and [split] go together, with how = 'leave_last', for one.",
        )
    if asked is None:
        return
    how = asked["how"]
    single = [name for name in STRATEGIES if name not in _SEVERAL]
    if how not in single:
        raise UnknownNameError("way to split once", how, single)
    elsewhere = {"seed": "It stands at the top of the file.", "columns": "They stand in [data.columns]."}
    known = {*inspect.signature(STRATEGIES[how]).parameters, *DEFAULTS} - {"data", "options", *elsewhere}
    for name in asked:
        if name in elsewhere:
            raise InputError(f"[split] has no {name}.", hint=elsewhere[name])
        if name not in known | {"how"}:
            raise UnknownNameError(f"option of {how}", name, known)


def _check_models(protocol: Protocol) -> None:
    """That no model has a setting that would be left unread."""
    belongs = {"columns": "lists", "user_ids": "factors", "item_ids": "factors", "half_life": "baseline"}
    for name, model in protocol.content["models"].items():
        for setting, to in belongs.items():
            if setting in model and to not in model:
                raise InputError(f"models.{name}: {setting} says nothing about this model.")
        if (model.get("baseline") == "recent") != ("half_life" in model):
            raise InputError(
                f"models.{name}: the baseline 'recent' needs half_life, in the unit of the times, "
                "and no other has one."
            )
