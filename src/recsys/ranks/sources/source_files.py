"""Models in files: what a source needs to score, the ids of its rows and where it comes from; never a pickle.

`.npz` needs NumPy alone; `.safetensors` (extra `safetensors`) is the format to share. A file is a set of
arrays and a description in JSON, which says what the arrays are.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, IdTypeError, InputError, RecsysError, needs_extra
from recsys.inputs.files.atomic_write import write_bytes
from recsys.inputs.files.formats import refuse_device
from recsys.inputs.files.matrices import read_arrays
from recsys.inputs.ids import IdKind, ids_of_texts
from recsys.kernels.keyed_random import digest, id_keys, pair_keys
from recsys.ranks.sources.factor_files import find_factors, in_order
from recsys.ranks.sources.factors import Factors, row_ids
from recsys.ranks.sources.history_scores import HistoryScores
from recsys.ranks.sources.random_scores import RandomScores
from recsys.ranks.sources.scores import Scores
from recsys.records.arrays import Array, Interactions

_DESCRIPTION = "recsys"
_FORMAT = 1
_SIDES = ("user", "item")
_WRITTEN_BY = "It must have been written by `recsys train` or recsys.models.save_model."


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether `recsys train` or `recsys.models.save_model` wrote a file, by its contents' names."""
    file = Path(path)
    try:
        refuse_device(file)
        if file.suffix.lower() == ".npz":
            with zipfile.ZipFile(file) as archive:
                return f"{_DESCRIPTION}.npy" in archive.namelist()
        return file.suffix.lower() == ".safetensors" and _DESCRIPTION in _safetensors_metadata(file)
    except (OSError, ValueError, RecursionError, NotImplementedError, zipfile.BadZipFile):
        return False  # reading the file raises what is wrong with it


def write_model_file(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Array],
    *,
    ids: Mapping[str, Any],
    about: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Path:
    """Write arrays, {"user": ids, "item": ids} and a description, wholly or not at all; returns the path.

    Args:
        path: .npz or .safetensors.
        kind: what the arrays are; `load_model` knows how to score with them.
        arrays: numbers only.
        ids: the ids of the rows, None where they have none.
        about: where the model comes from, kept as it is (JSON).
        facts: what else the kind needs to score.
    """
    target, arrays = Path(path), dict(arrays)
    description: dict[str, Any] = {"format": _FORMAT, "model": kind, **facts, "about": dict(about or {})}
    for what, given in ids.items():
        values = None if given is None else np.asarray(given)
        if values is not None and values.dtype.kind in "iu":
            arrays[f"ids.{what}_ids"] = values.astype(np.int64)
        elif values is not None:
            description[f"{what}_ids"] = [str(value) for value in values.tolist()]
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(description, ensure_ascii=False, sort_keys=True)
    suffix = target.suffix.lower()
    if suffix == ".safetensors":
        with needs_extra("safetensors", "safetensors", "Keeping a model as .safetensors"):
            from safetensors.numpy import save
        write_bytes(target, save(contiguous, {_DESCRIPTION: text}))
    elif suffix == ".npz":
        contiguous[_DESCRIPTION] = np.frombuffer(text.encode(), dtype=np.uint8)
        file = io.BytesIO()
        try:
            with zipfile.ZipFile(file, "w") as archive:  # np.savez would stamp the time of day into it
                for name, array in contiguous.items():
                    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, array, allow_pickle=False)
        except ValueError as error:  # of bytes that cannot grow Python says that they are closed
            raise MemoryError(f"the memory does not suffice to write {target.name}") from error
        write_bytes(target, file.getbuffer())
    else:
        raise FileError(
            f"{target.name}: models are kept as .safetensors or .npz.", hint="Use one of these suffixes."
        )
    return target


def save_source(path: str | os.PathLike[str], source: Any, about: Mapping[str, Any] | None = None) -> Path:
    """Write factors, a matrix of scores, weights with their histories, or a seed; see `write_model_file`."""
    kind, arrays = arrays_of(source)
    if not kind:
        problem = f"a {type(source).__name__} is not a model that can be kept in a file"
        if isinstance(source, Scores):
            problem = "a function of scores cannot be kept in a file"
        raise InputError(
            f"{problem}.",
            hint="Save recsys.Factors(U, V), recsys.Scores(matrix) or a network of recsys.models.",
        )
    facts: dict[str, Any] = {"seed": source.seed} if kind == "random" else {}
    # A seed has no rows but its ids: these are written even where they are row numbers.
    ids = {
        rows.what: rows.ids.values[rows.rank] if not rows.numbered or kind == "random" else None
        for rows in (source.user_rows, source.item_rows)
    }
    if source.user_rows.others is not None:
        facts["others"] = source.user_rows.others
    return write_model_file(path, kind, arrays, ids=ids, about=about, **facts)


def arrays_of(source: Any) -> tuple[str, dict[str, Array]]:
    """Return the kind of a source and the arrays that it scores with; "" if a file cannot hold it."""
    if isinstance(source, Factors):
        bias = {} if source.item_bias is None else {"item_bias": source.item_bias}
        return "factors", {"users": source.users, "items": source.items} | bias
    if isinstance(source, HistoryScores):
        is_sparse = hasattr(source.weights, "tocsr")
        weights = _sparse_arrays("weights", source.weights) if is_sparse else {"weights": source.weights}
        return "history", _sparse_arrays("history", source.history) | weights
    if isinstance(source, RandomScores):
        return "random", {}
    if isinstance(source, Scores) and source.matrix is not None:
        return "scores", {"scores": source.matrix}
    return "", {}


def load_model(
    path: str | os.PathLike[str],
    *,
    ids: IdKind | None = None,
    user_ids: Iterable[Any] | os.PathLike[str] | None = None,
    item_ids: Iterable[Any] | os.PathLike[str] | None = None,
) -> Factors | Scores:
    """Load a model, ready to rank: of `recsys train`, `recsys.models.save_model`, or any two matrices.

    Its attribute `about` is what `describe_model` reads: how it was trained, and on which data. Matrices of
    others are found by their names, such as U and V or user_factors and item_factors, and the ids of their
    rows are arrays user_ids and item_ids next to them; without those, rows are numbers.

    Args:
        path: .npz or .safetensors; of matrices also .pt, or a folder such as one of als_U.npy and als_V.npy.
        ids: "str" reads the ids of its rows as text, "int" as whole numbers; by default they stay as kept.
        user_ids: other ids of the rows of users, instead of those in the file; or the file that holds them,
            one per line or as .npy.
        item_ids: the same for items.

    Raises:
        FileError: the file is missing, damaged, of another kind or of a later version.
    """
    file, given = Path(path), dict[str, Any]({"user": user_ids, "item": item_ids})
    for what, own in given.items():
        given[what] = row_ids(own, what, ids) if isinstance(own, str | os.PathLike) else own
    if not is_model_file(file):
        return _load_factors(file, ids, given)
    arrays, description = _read_model_file(file)
    try:
        names: dict[str, Any] = {}
        for what, own in given.items():
            kept = arrays.pop(f"ids.{what}_ids", description.get(f"{what}_ids"))
            names[f"{what}_ids"] = _converted(kept, ids, what, file) if own is None else own
        source = _build_source(description["model"], arrays, description, names)
        if description.get("others") is not None:
            source = source.for_any_user(int(description["others"]))
    except (FileError, IdTypeError):
        raise
    except (RecsysError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise FileError(
            f"{file.name} does not fit its own description: {what.rstrip('.')}.",
            hint="Train or copy it again.",
        ) from error
    source.about = _about(description)
    return source.with_text_ids() if ids == "str" else source


def _load_factors(file: Path, ids: IdKind | None, given: Mapping[str, Iterable[Any] | None]) -> Factors:
    """Return two matrices that others wrote, with the ids that are given or stored with them."""
    pair, arrays = find_factors(file)
    _refuse_empty(arrays, file)
    names = {
        f"{what}_ids": row_ids(None, what, ids, (file, arrays)) if own is None else own
        for what, own in given.items()
    }
    source = Factors(*in_order(pair, file), **names)
    return source.with_text_ids() if ids == "str" else source


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model was saved with (`recsys train`: name, settings, seed, data), and its kind."""
    return _about(_read_model_file(Path(path))[1])


def _about(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model was saved with, and its kind."""
    about = description.get("about")
    return {
        **(about if isinstance(about, dict) else {}),
        "kind": description.get("model"),
        "format": description["format"],
    }


def fingerprint(history: Interactions) -> dict[str, Any]:
    """Return what identifies training data: counts, and a hash of its pairs in any order of rows."""
    users = np.repeat(id_keys(history.cases, 0, purpose="user"), history.sizes)
    items = id_keys(history.items, 0, purpose="item")[history.codes]
    return {
        "users": int((history.sizes > 0).sum()),
        "items": len(np.unique(history.codes)),
        "interactions": len(history.codes),
        "pairs": digest(pair_keys(users, items)),
    }


def read_network_file(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read the weights and the description of a network's file, `user_ids` and `item_ids` in the latter."""
    arrays, description = _read_model_file(Path(path))
    for what in _SIDES:
        kept = arrays.pop(f"ids.{what}_ids", description.get(f"{what}_ids"))
        description[f"{what}_ids"] = np.array(kept, dtype=object) if isinstance(kept, list) else kept
    return arrays, description


def _read_model_file(file: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays of a model file, and its description; an error says what a foreign file holds."""
    arrays = read_arrays(file)
    _refuse_empty(arrays, file)
    try:
        if file.suffix.lower() == ".npz":
            text: Any = arrays.pop(_DESCRIPTION).tobytes().decode()  # bytes(number) is that many zeros
        else:
            text = _safetensors_metadata(file)[_DESCRIPTION]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        found = ", ".join(sorted(arrays)[:5]) or "nothing"
        raise FileError(
            f"{file.name} is not a model file: it holds {found}.",
            hint=f"{_WRITTEN_BY} Factors are read by recsys.read_factors(U, V) or evaluate --factors U V.",
        ) from error
    try:
        description = dict(json.loads(text))
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(
            f"{file.name} is not a model file: its description cannot be read ({error}).", hint=_WRITTEN_BY
        ) from error
    if version != _FORMAT:
        raise FileError(
            f"{file.name} is a model of format {version!r}, and this version reads format {_FORMAT}.",
            hint="Update recsys-evaluation, or train it again.",
        )
    return arrays, description


def _refuse_empty(arrays: Mapping[str, Array], file: Path) -> None:
    """Raise an error for rows without columns, which take no room in a file and may be any number."""
    n_bytes = file.stat().st_size
    for name, array in arrays.items():
        if array.size == 0 and max(array.shape) > n_bytes:
            raise FileError(
                f"{file.name} has {n_bytes:,} bytes, and its {name} the shape {array.shape}.",
                hint=_WRITTEN_BY,
            )


def _build_source(
    kind: str, arrays: dict[str, Array], facts: Mapping[str, Any], ids: Mapping[str, Any]
) -> Factors | Scores:
    if kind == "factors":
        return Factors(arrays["users"], arrays["items"], item_bias=arrays.get("item_bias"), **ids)
    if kind == "scores":
        return Scores(arrays["scores"], **ids)
    if kind == "random":
        return RandomScores(len(ids["item_ids"]), seed=int(facts["seed"]), **ids)
    if kind == "history":
        weights: Any = arrays["weights"] if "weights" in arrays else _sparse_matrix("weights", arrays, None)
        history = _sparse_matrix("history", arrays, weights.shape[0])
        return HistoryScores(history, weights, **ids)
    from recsys.ranks.sources.network_scores import NETWORK_KINDS, network_source

    if kind in NETWORK_KINDS:
        return network_source(kind, arrays, **ids)
    raise FileError(
        f"the file holds a model of the kind {kind!r}, which this version does not know.",
        hint="Update recsys-evaluation, or train it again.",
    )


def _sparse_arrays(name: str, matrix: Any) -> dict[str, Array]:
    """Return the arrays of a sparse matrix as CSR."""
    rows = matrix.tocsr()
    return {f"{name}.{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}


def _sparse_matrix(name: str, arrays: Mapping[str, Array], n_columns: int | None) -> Any:
    """Return the CSR matrix of such arrays, by default square; check indices: SciPy's product does not."""
    from scipy.sparse import csr_array

    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    n_rows = len(indptr) - 1
    matrix = csr_array((data, indices, indptr), shape=(n_rows, n_rows if n_columns is None else n_columns))
    matrix.check_format(full_check=True)
    return matrix


def _converted(kept: Any, ids: IdKind | None, what: str, file: Path) -> Array | None:
    """Return the ids of a file, if it has any, as text or whole numbers; by default as they are."""
    if kept is None:
        return None
    is_text = isinstance(kept, list)
    if ids in (None, "auto") or ids == ("str" if is_text else "int"):
        return np.array(kept, dtype=object) if is_text else kept
    return ids_of_texts(map(str, kept if is_text else kept.tolist()), ids, file.name, what)


def _safetensors_metadata(file: Path) -> dict[str, str]:
    with file.open("rb") as stream:
        size = min(int.from_bytes(stream.read(8), "little"), file.stat().st_size)
        header = json.loads(stream.read(size).decode())
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return metadata if isinstance(metadata, dict) else {}
