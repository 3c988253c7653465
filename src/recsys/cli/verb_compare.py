"""`recsys compare`: which of several models is better, and how surely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.stats.comparison_table import EFFECTS, TESTS
from recsys.stats.multiple_comparisons import CORRECTIONS


@click.command("compare")
@click.argument("files", nargs=-1, required=True, metavar="A B …")
@click.option("--truth", metavar="FILE", help="What was relevant; not needed for saved results.")
@click.option(
    "--baseline", metavar="NAME", help="The model the others are compared with; by default every pair."
)
@click.option("--name", "names", multiple=True, help="What a file's model is called, in the files' order.")
@shared_options.metric_options
@shared_options.file_options
@shared_options.data_options
@click.option("--train", metavar="FILE", help="What users had before: for novelty and similar metrics.")
@click.option("--test", type=click.Choice(TESTS), default="t", show_default=True, help="The paired test.")
@click.option("--correction", type=click.Choice([*CORRECTIONS, "max-t"]), default="holm", show_default=True,
              help="Over all models and metrics.")  # fmt: skip
@click.option("--effect", type=click.Choice(list(EFFECTS)), default="d_z", show_default=True)
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--margin", type=float, help="Also test for equivalence within this difference.")
@click.option("--no-worse-than", type=float, help="Also test for non-inferiority: worse by less than this.")
@click.option("--rope", type=float, help="Also give the Bayesian view: practically equal within this.")
@click.option("--users", metavar="FILE", help="Table of the users, for --covariate and --strata.")
@click.option("--covariate", "covariates", multiple=True, metavar="COLUMN",
              help="Number in --users to adjust for (CUPED); repeatable.")  # fmt: skip
@click.option("--strata", metavar="COLUMN", help="Groups in --users to stratify by.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of resampling.")
@click.option("--markdown", "form_out", flag_value="markdown", help="Print a Markdown table.")
@click.option("--latex", "form_out", flag_value="latex", help="Print a LaTeX table.")
@click.option("--csv", "form_out", flag_value="csv", help="Print CSV, with all digits.")
@click.option("--json", "form_out", flag_value="json", help="Print JSON, with all digits.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Also write the report (.html).")  # fmt: skip
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Compare models, paired user by user: A, B, … are list files (with --truth) or saved results (.json).

    recsys compare als.csv bpr.csv --truth test.csv --baseline als -m ndcg@10 -m recall@10
    """
    from recsys.cli.output import check_target, progress_bar
    from recsys.comparison.compare import compare

    paths = shared_options.paths_by_model(options["files"], options["names"])
    if options["report"] is not None:
        inputs = (*options["files"], *(options[name] for name in ("truth", "seen", "train", "users")))
        check_target(options["report"], "report", inputs=inputs, makes_folder=True)
    if len(paths) < 2:
        raise click.UsageError("there is nothing to compare: name two files or more.")
    baseline = options["baseline"]
    if baseline is not None and baseline not in paths:
        name_by_path = {path: name for name, path in paths.items()}
        if baseline not in name_by_path:
            raise click.UsageError(f"--baseline {baseline} is none of {', '.join(paths)}.")
        baseline = name_by_path[baseline]
    with (
        print_warnings(quiet=options["quiet"]),
        progress_bar("resampling", quiet=options["quiet"]) as progress,
    ):
        results, _ = evaluate_files(paths, options)
        names = None
        if options["metrics"]:
            names = [str(request) for request in shared_options.metric_requests(options)]
        comparison = compare(
            results,
            baseline,
            names,
            test=options["test"],
            correction=options["correction"],
            effect=options["effect"],
            confidence=options["confidence"],
            margin=options["margin"],
            no_worse_than=options["no_worse_than"],
            rope=options["rope"],
            progress=progress,
            rng=options["seed"],
            **_covariates_and_strata(options),
        )
    if options["report"] is not None:
        from recsys.report import write_report

        written = write_report(options["report"], results, baseline=baseline)
        if not options["quiet"]:
            note(f"report {written}")
    form = options["form_out"]
    if form == "csv":
        click.echo(comparison.to_frame().to_csv(index=False), nl=False)
    elif form is None:
        click.echo(str(comparison))
    else:
        click.echo(getattr(comparison, f"to_{form}")())


def evaluate_files(paths: dict[str, str], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """{name: evaluation} of list files and saved results, and {name: lists} of the list files."""
    from recsys.evaluation.evaluate import evaluate
    from recsys.evaluation.results import load
    from recsys.inputs.files.content import open_file

    conventions = shared_options.chosen_conventions(options)
    requests = shared_options.metric_requests(options)
    list_paths = [path for path in paths.values() if not shared_options.is_result(path)]
    for path in list_paths:
        if path != "-" and (Path(path).is_file() or not Path(path).exists()):  # a pipe is read once only
            open_file(path)  # a misspelt name is reported before anything else that is missing
    if list_paths and options["truth"] is None:
        raise click.UsageError(f"{list_paths[0]} holds lists: say what was relevant with --truth FILE.")
    truth = shared_options.read(options["truth"], "truth", options) if list_paths else None
    seen = shared_options.read(options["seen"], "truth", options) if list_paths and options["seen"] else None
    train = (
        shared_options.read(options["train"], "truth", options) if list_paths and options["train"] else None
    )
    results, lists = {}, {}
    for name, path in paths.items():
        if shared_options.is_result(path):
            results[name] = load(path)
            continue
        lists[name] = shared_options.read(path, "lists", options)
        results[name] = evaluate(
            lists[name], truth, requests, conventions=conventions, seen=seen, train=train,
            catalogue=options["catalogue"], complete=options["complete"],
        )  # fmt: skip
    return results, lists


def _covariates_and_strata(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments covariates= and strata= of compare; a table of users needs one of them."""
    columns = {
        "covariates": options["covariates"],
        "strata": [options["strata"]] if options["strata"] else [],
    }
    if (options["users"] is None) != (not any(columns.values())):
        raise click.UsageError("--covariate COLUMN and --strata COLUMN go with --users FILE, which has them.")
    return {
        argument: shared_options.read_users(options["users"], options, names)
        for argument, names in columns.items()
        if names
    }
