"""`recsys compare`: which of several models is better, and how surely; from their lists or saved results."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from recsys.evaluation.files_of_models import ModelFile
    from recsys.evaluation.results import Evaluation

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
    keyword("by", "Compare within each group of saved results (evaluate --by)."),
    keyword("missing"),
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
    from recsys.errors import notes_only
    from recsys.evaluation.files_of_models import find_model

    files = given.gather(FileOptions)
    if len(given.paths) < 2:
        raise click.UsageError("there is nothing to compare: name two files or more.")
    models = named_files(given)
    baseline = find_model(given.baseline, models)
    wanted = {"covariates": given.covariates, "strata": (given.strata,) if given.strata else ()}
    if (given.users is None) == any(wanted.values()):
        raise click.UsageError("--covariate COLUMN and --strata COLUMN go with --users FILE, which has them.")
    users = {
        what: files.read_attributes(given.users, "user", names) for what, names in wanted.items() if names
    }
    with progress_bar("resampling") as progress:
        results, tables = results_of(models, given, reports=given.report is not None)
        with notes_only() if given.shown_as is None else nullcontext():  # the table has the notes below it
            comparison = compare(
                results,
                baseline,
                [str(request) for request in shared_options.requests_of(given)] if given.metrics else None,
                progress=progress,
                rng=given.seed,
                **given.pick("cautions", "headline", "missing", *_CHOICES),
                **users,
            )
    if given.report is not None:
        note(f"report {comparison.report(given.report, baseline=baseline, **tables)}")
    if given.methods is not None:
        paragraph = comparison.methods()
        note(f"methods {' and '.join(map(str, paragraph.write(given.methods)))}")
        for what in paragraph.to_add:
            note("to add to the methods: " + what)
    show(comparison if given.by is None else comparison.by[given.by], given.shown_as, raw=given.raw)


def named_files(given: Given) -> dict[str, ModelFile]:
    """{model: file} of the files and of --name."""
    from recsys.evaluation.files_of_models import files_by_model

    if given.names and len(given.names) != len(given.paths):
        raise click.UsageError(
            f"{len(given.names)} names for {len(given.paths)} files: give one --name per file, or none."
        )
    if len(set(given.names or given.paths)) < len(given.paths):
        raise click.UsageError(
            "two models have the same name: give each file once, with a --name of its own."
        )
    return files_by_model(given.paths, given.names)


def results_of(
    models: Mapping[str, ModelFile], given: Given, *, reports: bool
) -> tuple[dict[str, Evaluation], dict[str, Any]]:
    """{model: evaluation} of list files, models and saved results; and what a report shows besides."""
    from recsys.evaluation.files_of_models import evaluate_files
    from recsys.ranks.sources import is_model_path

    files, requests = given.gather(FileOptions), shared_options.requests_of(given)
    options = {"conventions": shared_options.conventions_of(given), **given.pick("catalogue", "full_ranking")}
    options["cautions"] = getattr(given, "cautions", None)
    unread = [file.path for file in models.values() if file.result is None]
    if unread and given.truth is None:
        raise click.UsageError(f"{unread[0]} holds lists: say what was relevant with --truth FILE.")
    known: dict[str, Any] = {"truth": None, "train": None}
    if unread or reports:
        known = {name: files.read(getattr(given, name), "truth") for name in known}
    seen = {
        is_model: files.read_seen(given, known["train"], is_model=is_model)
        for is_model in sorted({is_model_path(path) for path in unread})
    }
    results, lists = evaluate_files(
        models, files.read_ranked, metrics=requests, seen=seen, lists_of_models=reports, **known, **options
    )
    return results, {"lists": lists or None, **known}
