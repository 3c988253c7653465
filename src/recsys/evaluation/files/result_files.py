"""Result files: one JSON document with a part that is reproducible byte for byte and one that is not.

`result` is hashed, `cases` holds what is behind it (the values per case, or sums where they were not kept in
memory), `run` says when and where. A file is accepted only if its values or sums reproduce the result it
states. It must be readable as text, small, and safe to open: arrays are packed (little-endian, compressed,
base64) with a checksum, ids stay JSON strings, and only the types listed here are built.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime as dt
import hashlib
import json
import math
import os
import platform
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import recsys
from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, Fix, InputError, Phrase
from recsys.evaluation.asked import Asked
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.result_facts import ResultFacts
from recsys.inputs.files import write_text
from recsys.inputs.files.formats import read_text_file
from recsys.metrics import lookup, lookup_rating
from recsys.metrics.registry import Request
from recsys.ranks.sources import is_model_path
from recsys.records import arrays
from recsys.records.arrays import Array, GroupKey
from recsys.records.facts import Caution
from recsys.records.json_values import none_if_nan

if TYPE_CHECKING:
    from recsys.evaluation.files.row_folders import RowFolder
    from recsys.evaluation.results import Evaluation

SCHEMA = 1  # of the part that is hashed: the same numbers have the same hash in every format
FORMAT = 2  # of the file
_PARTS = {"result", "sha256", "cases", "cases_sha256", "run"}
_HOW_TO_SAVE = "Save one with evaluation.save(path), or recsys evaluate … --save FILE."
_DAMAGED = "Write the result again."
_TYPES = {
    kind.__name__: kind
    for kind in vars(arrays).values()
    if dataclasses.is_dataclass(kind) and isinstance(kind, type)
}
_IN_FILES = {("PerCase", "cases"): "ids"}  # a field that files hold under the name of a property
_DTYPES = {np.dtype(name).str for name in ("<f8", "<i8", "<i4", "<u8", "<u4", "<u2", "<u1", "|b1")}


class MissingRows(NamedTuple):
    """The folder that should hold the values per user of a saved result, and why it does not."""

    path: Path
    why: str


def document_of(result: Evaluation) -> dict[str, Any]:
    """Return the numbers of a result, their hash, and the facts about the run."""
    partial, several = result.partial, len({group.grouping for group in result.values_by_group}) > 1
    numbers = {
        "schema": SCHEMA,
        "metrics": [
            {"metric": n, "value": none_if_nan(v), "cases": result.n_cases[n]}
            for n, v in result.overall.items()
        ],
        "by": [
            {
                **({"by": group.grouping} if several else {}),
                "group": _json_label(group.label),
                "metrics": {n: none_if_nan(v) for n, v in row.items()},
            }
            for group, row in result.values_by_group.items()
        ],
        "counts": dict(result.counts),
        "conventions": result.conventions.to_dict(),
    }
    if result.aggregate is not None:
        numbers["aggregate"] = str(result.aggregate)
    if partial.catalogue is not None:
        numbers["catalogue"] = {"items": partial.catalogue.n, "known_by": partial.catalogue.how}
    if result.asked is not None:
        numbers["question"] = result.asked.to_dict()
    return {
        "result": numbers,
        "sha256": fingerprint(numbers),
        "cautions": [caution.to_dict() for caution in result.cautions],
        "run": result.run or run_facts(),
    }


def write_result(
    path: str | os.PathLike[str], result: Evaluation, *, groups: Mapping[Any, Array], run: Mapping[str, Any]
) -> None:
    """Write the document with all cases and the masks of `groups`; the file changes at once or not at all.

    The folder with the rows of the result holds the document already; only `run` is added there.
    """
    folder = getattr(result.partial.per_case, "folder", None)
    if folder is not None and os.path.abspath(path) == str(folder.path):  # noqa: PTH100 - as RowFolder.open
        folder.add_facts(_json_facts(run))
        return
    of_values = [str(request) for request in result.requests if request.metric.pooling.summary is not None]
    if of_values and result.partial.sums:
        raise InputError(
            f"the summary of {of_values[0]} needs the values per user, and those are in a folder.",
            hint="Keep the folder: recsys.load(folder) opens the whole result.",
        )
    document = whole_document(result, groups=groups, run=run)
    place = result.missing_rows if folder is None else folder
    if place is not None:  # the values per user lie in a folder, which is named from here
        document["run"]["per_user"] = _path_from(path, place.path)
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def whole_document(
    result: Evaluation, *, groups: Mapping[Any, Array], run: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all of a result; of one whose values per case lie in a folder, its sums."""
    document = {"format": FORMAT, **document_of(result)}
    document["run"] = {**document["run"], **_json_facts(run)}
    partial = replace(result.partial, per_case=None) if result.partial.sums else result.partial
    cases = {"partial": partial, "by": groups, "notes": result.facts.to_notes()}
    cases["cautions"] = [[*caution.to_dict().values()] for caution in result.cautions]
    if not partial.sums and result.truth_keys is not None:
        cases["truth"] = result.truth_keys
    declared = {str(request): request.metric.bounds for request in result.requests}
    found = {name: ends for name, ends in result.ranges.items() if ends != declared[name]}
    if found:
        cases["ranges"] = found
    document["cases"] = pack(cases)
    document["cases_sha256"] = fingerprint(document["cases"])
    return document


def is_result(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder is a saved result rather than lists, judged by its first bytes."""
    place = Path(path)
    place = place / "manifest.json" if place.is_dir() else place
    if place.suffix.lower() != ".json" or not place.is_file():
        return False
    with place.open("rb") as file:
        head = file.read(200).lstrip(b"\xef\xbb\xbf \r\n\t{")
    return re.match(rb'("format":\s*\d+,\s*)?"result"|"recsys":"rows"', head) is not None


def read_result(path: str | os.PathLike[str], make: type[Evaluation]) -> Evaluation:
    """Read what `write_result` wrote, or a folder of values per user, and check it against what it states."""
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"a {type(path).__name__} is not the path of a file.", hint=_HOW_TO_SAVE)
    if os.path.isdir(path):  # noqa: PTH112 - a name that is too long is not a folder
        from recsys.evaluation.files.row_folders import RowFolder

        folder = RowFolder.open(path)
        return _read_document(folder.manifest.get("result"), path, make, folder)
    if is_model_path(Path(path)) and Path(path).is_file():
        raise FileError(
            f"{path} holds a model, not a result.",
            hint="Evaluate it first: recsys.evaluate(path, truth), or recsys compare --truth FILE.",
        )
    text = read_text_file(path, "utf-8-sig")
    try:
        document = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise FileError(f"{path} is not JSON ({error}).", hint=_HOW_TO_SAVE) from error
    return _read_document(document, path, make, None)


def _read_document(
    document: Any, path: str | os.PathLike[str], make: type[Evaluation], folder: RowFolder | None
) -> Evaluation:
    is_whole = isinstance(document, dict) and document.keys() >= _PARTS
    if not is_whole or not isinstance(document["run"], dict):
        raise FileError(f"{path} is not a result that recsys saved with its users.", hint=_HOW_TO_SAVE)
    if document.get("format") != FORMAT:
        raise FileError(
            f"{path} has format {document.get('format')!r}; this version of recsys reads format {FORMAT}.",
            hint="Read it with the version that wrote it, or evaluate again.",
        )
    try:
        result, cases = document["result"], unpack(document["cases"])
        stated = result["conventions"]
        conventions = Conventions.of({**stated, "per_metric": {m: dict(r) for m, r in stated["per_metric"]}})
        find_metric = lookup_rating if "rows" in result["counts"] else lookup
        requests = [Request.parse(row["metric"], find_metric) for row in result["metrics"]]
        if "aggregate" in result:
            from recsys.stats.aggregates import Aggregate

            requests = [replace(request, aggregate=Aggregate.of(result["aggregate"])) for request in requests]
        groups, partial = cases["by"] or None, cases["partial"]
        partial = replace(partial, strata={GroupKey.of(key): one for key, one in partial.strata.items()})
        missing = None
        if folder is None and partial.sums and isinstance(named := document["run"].get("per_user"), str):
            folder, missing = _find_rows(document, Path(path).parent / named)
        if folder is not None:
            partial = replace(partial, per_case=folder.rows(), terms=folder.terms)
        origin = StoredOrigin(
            facts=ResultFacts.of_notes(cases["notes"]),
            cautions=[Caution.of(*map(str, parts[:2])) for parts in cases.get("cautions", ())],
            asked=Asked.read(result["question"]) if "question" in result else None,
            ranges=cases.get("ranges") or {},
            keys=cases.get("truth") if folder is None else folder,
        )
        evaluation = make(
            partial,
            requests,
            conventions,
            by=groups,
            origin=origin,
            run=document["run"],
        )
        evaluation.missing_rows = missing
        recomputed = json.loads(json.dumps(document_of(evaluation)))
        same = all(recomputed[part] == document[part] for part in ("result", "sha256", "cautions"))
    except FileError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise FileError(f"{path} is not a result that recsys saved: {why}.", hint=_HOW_TO_SAVE) from error
    if document["cases_sha256"] != fingerprint(document["cases"]):
        raise FileError(
            f"{path}: the part about users does not match its checksum.",
            hint="It was changed after it was saved; evaluate again.",
        )
    if not same:
        raise FileError(
            f"{path}: the values per user, or their sums, do not give the result the file states.",
            hint="It was changed after it was saved, or saved by another version; evaluate again.",
        )
    return evaluation


def _find_rows(document: Mapping[str, Any], place: Path) -> tuple[RowFolder | None, MissingRows | None]:
    """Return the folder that a saved result names for its values per user, or why it cannot be used."""
    from recsys.evaluation.files.row_folders import RowFolder

    path = Path(os.path.abspath(place))  # noqa: PTH100 - no link is followed, and none has to exist
    if not os.path.isdir(path):  # noqa: PTH112 - a name that is too long is not a folder
        return None, MissingRows(path, f"their folder {path} is not there")
    try:
        folder = RowFolder.open(path)
    except FileError as error:
        return None, MissingRows(path, f"their folder cannot be used: {error.message.rstrip('.')}")
    stored = folder.manifest.get("result")
    hashes = ("sha256", "cases_sha256")
    if not isinstance(stored, dict) or any(stored.get(name) != document[name] for name in hashes):
        return None, MissingRows(path, f"their folder {path} holds another result by now")
    return folder, None


def _path_from(file: str | os.PathLike[str], folder: Path) -> str:
    """Return the path of a folder as seen from the folder of a file."""
    try:
        return Path(os.path.relpath(folder, Path(file).parent)).as_posix()
    except ValueError:  # another drive
        return str(folder)


def _json_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about a run as JSON values; an error if one cannot be kept."""
    out = {}
    for name, value in facts.items():
        out[name] = value.item() if isinstance(value, np.generic) else value
        try:
            json.dumps(out[name], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the fact {name}={value!r} cannot be kept in JSON ({error}).",
                hint=f"Pass text, a finite number, or lists and dicts of them, such as {name}=str(value).",
            ) from error
    return out


def _json_label(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, str | int | bool | None) else str(label)


def run_facts() -> dict[str, Any]:
    """Time, versions and machine, for the part of a result file that is not hashed."""
    return {
        "recsys": recsys.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def pack(value: Any) -> Any:
    """Return a value made of arrays, dataclasses, mappings, tuples and scalars as a JSON value.

    >>> pack(np.array([1.0, 2.0]))["dtype"], pack({"a": (1, None)})
    ('<f8', {'map': [['a', {'tuple': [1, None]}]]})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"names": [str(name) for name in value.tolist()]}
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        data = array.tobytes()
        return {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(data).hexdigest(),
            "zlib": base64.b64encode(zlib.compress(data, 6)).decode("ascii"),
        }
    kind = next((base.__name__ for base in type(value).__mro__ if base.__name__ in _TYPES), None)
    if dataclasses.is_dataclass(value) and kind is not None:
        names = [_IN_FILES.get((kind, f.name), f.name) for f in dataclasses.fields(value)]
        return {"type": kind, "fields": {name: pack(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {"map": [[pack(key), pack(content)] for key, content in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [pack(content) for content in value]}
    if isinstance(value, Phrase):
        fixes = (
            {k: v for k, v in vars(p).items() if v is not ...} for p in value.parts if isinstance(p, Fix)
        )
        return {"phrase": [part if isinstance(part, str) else next(fixes) for part in value.parts]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise FileError(f"a {type(value).__name__} cannot be kept in a result file.")


def unpack(value: Any) -> Any:
    """Return the value that was packed; anything else raises a FileError, and no code from the file runs.

    >>> unpack(pack({"a": (1, np.array([True, False]))}))
    {'a': (1, array([ True, False]))}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    known = value if isinstance(value, dict) else {}
    if "dtype" in known:
        return _read_array(known)
    if "names" in known:
        names = np.empty(len(known["names"]), dtype=object)
        names[:] = [str(name) for name in known["names"]]
        return names
    if "type" in known:
        return _read_dataclass(known)
    if "map" in known:
        pairs = known["map"]
        if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            raise FileError("a table of the result file is damaged.", hint=_DAMAGED)
        return {unpack(key): unpack(content) for key, content in pairs}
    if "phrase" in known:
        parts = [part if isinstance(part, str) else Fix(**part) for part in known["phrase"]]
        return Phrase("{}" * len(parts), *parts)
    if "tuple" in known:
        return tuple(map(unpack, known["tuple"]))
    if "float" in known:
        if known["float"] not in ("nan", "inf", "-inf"):
            raise FileError(f"{known['float']!r} is not a number.", hint=_DAMAGED)
        return float(known["float"])
    raise FileError("the result file holds something this version does not know.", hint=_DAMAGED)


def _read_array(value: dict[str, Any]) -> Array:
    dtype, shape = value.get("dtype"), value.get("shape")
    if (
        dtype not in _DTYPES
        or not isinstance(shape, list)
        or not all(type(n) is int and n >= 0 for n in shape)
    ):
        raise FileError(f"a column of the result file has dtype {dtype!r}, shape {shape!r}.", hint=_DAMAGED)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        unpacker = zlib.decompressobj()
        # One byte more than announced: a longer column is damaged, and is not unpacked to its end.
        data = unpacker.decompress(base64.b64decode(value["zlib"], validate=True), size + 1)
    except (KeyError, OverflowError, TypeError, binascii.Error, zlib.error) as error:
        raise FileError("a column of the result file cannot be unpacked.", hint=_DAMAGED) from error
    if len(data) != size or hashlib.sha256(data).hexdigest() != value.get("sha256"):
        raise FileError("a column of the result file does not match its checksum.", hint=_DAMAGED)
    return np.frombuffer(data, dtype=dtype).reshape(shape).astype(np.dtype(dtype).newbyteorder("="))


def _read_dataclass(value: dict[str, Any]) -> Any:
    kind, fields = _TYPES.get(value["type"]), value.get("fields")
    if kind is None or not isinstance(fields, dict):
        raise FileError(f"the result file holds a {value['type']!r}, unknown here.", hint=_DAMAGED)
    try:
        names = {_IN_FILES.get((kind.__name__, f.name), f.name): f.name for f in dataclasses.fields(kind)}
        return kind(**{str(names.get(name, name)): unpack(content) for name, content in fields.items()})
    except TypeError as error:
        raise FileError(
            f"the result file's {value['type']} has other fields than this version's ({error}).",
            hint="It was written by another version of recsys.",
        ) from error


def fingerprint(value: Any) -> str:
    """Return the sha256 of a JSON value, independent of how it is written.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
