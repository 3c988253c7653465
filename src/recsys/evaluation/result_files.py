"""Result files: one JSON document with a part that is reproducible byte for byte and one that is not.

`result` is hashed, `cases` holds the values behind it, `run` says when and where. A file is accepted only if
its values reproduce the result it states.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, InputError
from recsys.evaluation.json_arrays import fingerprint, pack, unpack
from recsys.inputs.files import write_text
from recsys.metrics import lookup, lookup_rating
from recsys.metrics.requests import Request
from recsys.types import Array

if TYPE_CHECKING:
    from recsys.evaluation.results import Evaluation

SCHEMA = 1
_PARTS = {"result", "sha256", "cases", "cases_sha256", "run"}
_HOW_TO_SAVE = "Save one with evaluation.save(path), or recsys evaluate … --save FILE."


def document_of(result: Evaluation) -> dict[str, Any]:
    """The numbers of a result, their hash, and the facts about the run."""
    from recsys.evaluation.provenance import run_facts

    partial = result.partial
    numbers = {
        "schema": SCHEMA,
        "metrics": [
            {"metric": n, "value": _json_number(v), "cases": result.n_cases[n]}
            for n, v in result.overall.items()
        ],
        "by": [
            {"group": _json_label(label), "metrics": {n: _json_number(v) for n, v in row.items()}}
            for label, row in result.by.items()
        ],
        "counts": dict(result.counts),
        "conventions": result.conventions.to_dict(),
    }
    if partial.catalogue is not None:
        numbers["catalogue"] = {"items": partial.catalogue.n, "known_by": partial.catalogue.how}
    return {"result": numbers, "sha256": fingerprint(numbers), "run": result.run or run_facts()}


def write_result(
    path: str | os.PathLike[str], result: Evaluation, *, groups: Mapping[Any, Array], run: Mapping[str, Any]
) -> None:
    """Write the document with all cases and the masks of `groups`; the file changes at once or not at all."""
    document = document_of(result)
    document["run"] = {**document["run"], **{name: _json_fact(name, value) for name, value in run.items()}}
    document["cases"] = pack({"partial": result.partial, "by": groups, "notes": _json_notes(result.notes)})
    document["cases_sha256"] = fingerprint(document["cases"])
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def read_result(path: str | os.PathLike[str], make: type[Evaluation]) -> Evaluation:
    """Read what `write_result` wrote and check it against the result that the file states."""
    document = _read_document(path)
    try:
        evaluation = _evaluation_from_document(document, make)
        recomputed = json.loads(evaluation.to_json())
        same = all(recomputed[part] == document[part] for part in ("result", "sha256"))
    except FileError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FileError(f"{path} is no result that recsys saved ({error!r}).", hint=_HOW_TO_SAVE) from error
    if document["cases_sha256"] != fingerprint(document["cases"]):
        raise FileError(
            f"{path}: the part about users does not match its checksum.",
            hint="It was changed after it was saved; evaluate again.",
        )
    if not same:
        raise FileError(
            f"{path}: the values per user do not give the result the file states.",
            hint="It was changed after it was saved, or saved by another version; evaluate again.",
        )
    return evaluation


def _evaluation_from_document(document: Mapping[str, Any], make: type[Evaluation]) -> Evaluation:
    result, cases = document["result"], unpack(document["cases"])
    stated = result["conventions"]
    conventions = Conventions.of({**stated, "per_metric": {m: dict(r) for m, r in stated["per_metric"]}})
    find_metric = lookup_rating if "rows" in result["counts"] else lookup
    requests = [Request.parse(row["metric"], find_metric) for row in result["metrics"]]
    return make(
        cases["partial"], requests, conventions, by=cases["by"] or None, notes=cases["notes"],
        run=document["run"],
    )  # fmt: skip


def _read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except (RecursionError, ValueError) as error:
        raise FileError(f"{path} is not JSON ({error}).", hint=_HOW_TO_SAVE) from error
    if (
        not isinstance(document, dict)
        or not document.keys() >= _PARTS
        or not isinstance(document["run"], dict)
    ):
        raise FileError(f"{path} is no result that recsys saved with its users.", hint=_HOW_TO_SAVE)
    return document


def _json_fact(name: str, value: Any) -> Any:
    """A fact about the run as a JSON value."""
    json_value = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(json_value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the fact {name}={value!r} cannot be kept in JSON ({error}).",
            hint=f"Pass text, a finite number, or lists and dicts of them, such as {name}=str(value).",
        ) from error
    return json_value


def _json_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes that a file can hold: JSON values, by name."""
    out: dict[str, Any] = {}
    for name, value in notes.items():
        if isinstance(value, Mapping):
            out[name] = _json_notes(value)
        elif value is None or isinstance(value, bool | int | float | str):
            out[name] = value
    return out


def _json_label(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, str | int | bool | None) else str(label)


def _json_number(value: float) -> float | None:
    return None if math.isnan(value) else value
