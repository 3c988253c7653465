"""`recsys compare`: which of several models is better, and how surely; from their lists or saved results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import progress_bar, show
from recsys.cli.shared_options import FileOptions
from recsys.cli.verb_options import (
    INPUT,
    LEVEL,
    OUTPUT,
    PAGE,
    Given,
    Target,
    argument,
    command,
    keyword,
    option,
)  # fmt: skip
from recsys.errors import check_choice

if TYPE_CHECKING:
    from recsys.evaluation.results import Evaluation

_SHORTEST_LIST = 20  # of a model, for its report
_CHOICES = (
    *(keyword(name) for name in ("test", "correction", "effect")),
    keyword("confidence", type=LEVEL),
    *(keyword(name) for name in ("margin", "no_worse_than", "rope")),
)


@command(
    "compare",
    argument("paths", "A B …", nargs=-1, required=True),
    option("--truth FILE", "What was relevant; not needed for saved results.", INPUT),
    shared_options.decision_options,
    shared_options.name_option,
    shared_options.metric_options,
    shared_options.file_options_for("files of lists", "--truth"),
    shared_options.data_options,
    _CHOICES,
    option("--users FILE", "Table of the users, for --covariate and --strata.", INPUT),
    keyword("covariates", "Number in --users to adjust for (CUPED); repeatable.", multiple=True),
    keyword("strata", "Groups in --users to stratify by."),
    shared_options.seed_option,
    shared_options.cautions_option,
    shared_options.markdown_option,
    option("--latex", "Print a LaTeX table.", OUTPUT),
    shared_options.csv_option,
    shared_options.json_option,
    shared_options.raw_option,
    option("--report FILE", "Also write the report (.html).", OUTPUT, type=PAGE),
    option(
        "--methods FILE",
        "Also write a methods paragraph with BibTeX, for papers (.md, .tex, .txt).",
        OUTPUT,
        type=Target(".md", ".tex", ".txt"),
    ),
    shared_options.quiet_option,
)
def compare_command(given: Given) -> None:
    """Compare models, paired user by user: A, B, … are list files (with --truth) or saved results.

    A saved result is a file (.json) or the folder of --per-user-to, which is compared piece by piece.

    recsys compare als.csv bpr.csv --truth test.csv --baseline als -m ndcg@10 -m recall@10
    """
    from recsys.comparison.compare import compare
    from recsys.stats.results import notes_only

    files = given.gather(FileOptions)
    if len(given.paths) < 2:
        raise click.UsageError("there is nothing to compare: name two files or more.")
    models = files_by_model(given.paths, given.names)
    baseline = baseline_name(given.baseline, models)
    wanted = {"covariates": given.covariates, "strata": (given.strata,) if given.strata else ()}
    if (given.users is None) == any(wanted.values()):
        raise click.UsageError("--covariate COLUMN and --strata COLUMN go with --users FILE, which has them.")
    users = {
        what: files.read_attributes(given.users, "user", names) for what, names in wanted.items() if names
    }
    with progress_bar("resampling") as progress:
        results, tables = evaluate_files(
            models, given, cautions=given.cautions, reports=given.report is not None
        )
        with notes_only() if given.shown_as is None else nullcontext():  # the table has the notes below it
            comparison = compare(
                results,
                baseline,
                [str(request) for request in shared_options.requests_of(given)] if given.metrics else None,
                progress=progress,
                rng=given.seed,
                **given.pick("cautions", "headline", *_CHOICES),
                **users,
            )
    if given.report is not None:
        note(f"report {comparison.report(given.report, baseline=baseline, **tables)}")
    if given.methods is not None:
        paragraph = comparison.methods()
        note(f"methods {' and '.join(map(str, paragraph.write(given.methods)))}")
        for what in paragraph.to_add:
            note("to add to the methods: " + what)
    show(comparison, given.shown_as, raw=given.raw)


class ModelFile(NamedTuple):
    """A file of a model: lists, a model of `recsys train`, or a saved result, which is then read already."""

    path: str
    result: Evaluation | None

    @property
    def stem(self) -> str:
        """The name without its endings; of a glob what stands before the pattern, or its folder."""
        from recsys.inputs.files.formats import is_glob

        place = Path(self.path)
        if is_glob(place):
            return re.sub(r"\W*[*?\[].*", "", place.name) or place.parent.name or self.path
        return place.name.split(".")[0] or self.path


def files_by_model(paths: Sequence[str], names: Sequence[str]) -> dict[str, ModelFile]:
    """{model: file}: named by `names`, else as the saved result says, else by the file.

    Two that would have the same name are told apart by their files.
    """
    if names and len(names) != len(paths):
        raise click.UsageError(
            f"{len(names)} names for {len(paths)} files: give one --name per file, or none."
        )
    from recsys.evaluation.results import load

    files = [ModelFile(path, load(path) if _is_result(path) else None) for path in paths]
    models = list(names)
    if not names:
        saved = [None if file.result is None else file.result.name for file in files]
        short = [name or file.stem for name, file in zip(saved, files, strict=True)]
        for name, model, file in zip(saved, short, files, strict=True):
            place = file.path if file.path == "-" else str(Path(file.path).parent / Path(file.path).stem)
            full = place if name in (None, file.stem) else f"{name} ({place})"
            models.append(model if short.count(model) == 1 else full)
        if len(set(models)) < len(models):  # als.csv and als.json
            models = list(paths)
    if len(set(models)) < len(models):
        raise click.UsageError(
            "two models have the same name: give each file once, with a --name of its own."
        )
    return dict(zip(models, files, strict=True))


def baseline_name(baseline: str | None, models: Mapping[str, ModelFile]) -> str | None:
    """The model that --baseline means, which may name its file, with or without folder and suffix."""
    if baseline is None or baseline in models:
        return baseline
    matches = [name for name, file in models.items() if baseline in (file.path, file.stem)]
    if len(matches) != 1:
        check_choice("--baseline", baseline, models)
    return matches[0]


def evaluate_files(
    models: Mapping[str, ModelFile],
    given: Given,
    *,
    cautions: str | list[str] | None = None,
    reports: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """{model: evaluation} of list files, models and saved results; and what a report shows besides.

    That is lists, truth and train by these names; a model gets lists only where it `reports`.
    """
    from recsys.evaluation.evaluate import evaluate, recommend
    from recsys.inputs.files.formats import open_file
    from recsys.ranks.sources import is_model_path

    files = given.gather(FileOptions)
    conventions, requests = shared_options.conventions_of(given), shared_options.requests_of(given)
    list_paths = [file.path for file in models.values() if file.result is None]
    for path in list_paths:
        # A pipe is read once only.
        if path != "-" and (Path(path).is_file() or not Path(path).exists()) and not is_model_path(path):
            open_file(path)  # a misspelt name is reported before anything else that is missing
    if list_paths and given.truth is None:
        raise click.UsageError(f"{list_paths[0]} holds lists: say what was relevant with --truth FILE.")
    known: dict[str, Any] = {"truth": None, "train": None}
    if list_paths or reports:
        known = {name: files.read(getattr(given, name), "truth") for name in known}
    kinds = sorted({is_model_path(path) for path in list_paths})
    seen = {is_model: files.read_seen(given, known["train"], is_model=is_model) for is_model in kinds}
    results, lists = {}, {}
    for name, (path, result) in models.items():
        if result is not None:
            results[name] = result
            continue
        ranked, is_model = files.read_ranked(path), is_model_path(path)
        results[name] = evaluate(
            ranked,
            metrics=requests,
            conventions=conventions,
            cautions=cautions,
            seen=seen[is_model],
            **given.pick("catalogue", "full_ranking"),
            **known,
        )
        if reports and is_model:
            users = known["truth"].cases.values
            users = users[ranked.user_rows.row_of(users) >= 0]
            length = max(_SHORTEST_LIST, *(request.k or 0 for request in requests))
            ranked = recommend(ranked, length, users=users, seen=seen[is_model])
        if reports or not is_model:
            lists[name] = ranked
    return results, {"lists": lists or None, **known}


def _is_result(path: str) -> bool:
    """Whether a file or folder is a saved result rather than lists, judged by its first bytes."""
    place = Path(path)
    place = place / "manifest.json" if place.is_dir() else place
    if place.suffix.lower() != ".json" or not place.is_file():
        return False
    with place.open("rb") as file:
        head = file.read(200).lstrip(b"\xef\xbb\xbf \r\n\t{")
    return re.match(rb'("format":\s*\d+,\s*)?"result"|"recsys":"rows"', head) is not None
