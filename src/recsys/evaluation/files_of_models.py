"""Models as files: what each is called, and its result, which is either saved or evaluated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recsys.errors import check_choice
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.evaluation.files.result_files import is_result
from recsys.evaluation.results import Evaluation, load
from recsys.inputs.files.formats import is_glob, open_file
from recsys.metrics.registry import Request
from recsys.ranks.sources import is_model_path

_SHORTEST_LIST = 20  # of a model, for its report


class ModelFile(NamedTuple):
    """A file of a model: lists, a model of `recsys train`, or a saved result, which is then read already."""

    path: str
    result: Evaluation | None


def stem_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without its endings; of a glob what precedes the pattern, or its folder.

    >>> stem_of("results/als.json"), stem_of("als-*.csv"), stem_of("als/*.csv")
    ('als', 'als', 'als')
    """
    place = Path(path)
    if is_glob(place):
        return re.sub(r"\W*[*?\[].*", "", place.name) or place.parent.name or str(path)
    return place.name.split(".")[0] or str(path)


def files_by_model(paths: Sequence[str], names: Sequence[str] = ()) -> dict[str, ModelFile]:
    """Return {model: file}: named by `names`, else as the saved result says, else by the file.

    Two that would have the same name are distinguished by their files; each file, or name, occurs once.
    """
    files = []
    for path in paths:
        saved = is_result(path)
        is_one_file = Path(path).is_file() or not Path(path).exists()
        if not saved and is_one_file and path != "-" and not is_model_path(path):  # a pipe is read once only
            open_file(path)  # a misspelt name is reported before anything else that is missing
        files.append(ModelFile(path, load(path) if saved else None))
    models = list(names)
    if not names:
        own = [None if file.result is None else file.result.name for file in files]
        short = [name or stem_of(file.path) for name, file in zip(own, files, strict=True)]
        for name, model, file in zip(own, short, files, strict=True):
            place = file.path if file.path == "-" else str(Path(file.path).parent / Path(file.path).stem)
            full = place if name in (None, stem_of(file.path)) else f"{name} ({place})"
            models.append(model if short.count(model) == 1 else full)
        if len(set(models)) < len(models):  # als.csv and als.json
            models = list(paths)
    return dict(zip(models, files, strict=True))


def find_model(name: str | None, models: Mapping[str, ModelFile]) -> str | None:
    """Return the model of this name, or of the file of this name, with or without folder and suffix."""
    if name is None or name in models:
        return name
    matches = [model for model, file in models.items() if name in (file.path, stem_of(file.path))]
    if len(matches) != 1:
        check_choice("baseline", name, models)
    return matches[0]


def evaluate_files(
    models: Mapping[str, ModelFile],
    read: Callable[[str], Any],
    truth: Any,
    metrics: Sequence[Request],
    *,
    seen: Mapping[bool, Any],
    lists_of_models: bool,
    **options: Any,
) -> tuple[dict[str, Evaluation], dict[str, Any]]:
    """Return the result of each model, and the lists of each, one file in memory after the other.

    Args:
        models: the files by model.
        read: reads lists or a model from a path.
        truth: what was relevant, as Interactions.
        metrics: what to measure.
        seen: what is not ranked again, by whether it is a model that ranks.
        lists_of_models: whether models, which hold none, make lists that are long enough for a report.
        options: of evaluate.
    """
    results, lists = dict[str, Evaluation](), dict[str, Any]()
    for name, (path, result) in models.items():
        if result is not None:
            results[name] = result
            continue
        ranked, is_model = read(path), is_model_path(path)
        results[name] = evaluate(ranked, truth, metrics, seen=seen[is_model], **options)
        if is_model and lists_of_models:
            users = truth.cases.values
            users = users[ranked.user_rows.row_of(users) >= 0]
            length = max(_SHORTEST_LIST, *(request.k or 0 for request in metrics))
            ranked = recommend(ranked, length, users=users, seen=seen[is_model])
        if lists_of_models or not is_model:
            lists[name] = ranked
    return results, lists
