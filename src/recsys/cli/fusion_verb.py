"""`recsys fuse`: files of lists in, a file of fused lists out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import check_target, print_csv
from recsys.cli.shared_options import FileOptions
from recsys.errors import RecsysError


@click.command("fuse", cls=VerbCommand)
@click.argument("lists", metavar="A B …", nargs=-1, required=True)
@click.option(
    "--method",
    default="rrf",
    show_default=True,
    metavar="NAME",
    help="How lists are combined: rrf, comb_sum, wsum, bordafuse, condorcet, …",
)
@click.option(
    "--norm",
    default="default",
    metavar="NAME",
    help="How scores are made comparable: min-max, max, sum, zmuv, rank, borda, none. By default "
    "min-max for methods that read scores.",
)
@click.option("--weights", metavar="W,W,…", help="One weight per file, such as 0.7,0.3.")
@click.option(
    "--param",
    "settings",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Another parameter of the method, such as k=60; repeatable.",
)
@click.option(
    "--missing",
    type=click.Choice(["empty", "error"]),
    default="empty",
    show_default=True,
    help="What it means that a file has no list of a user.",
)
@click.option(
    "--tune-on",
    multiple=True,
    metavar="FILE",
    help="Lists of the same models on validation data, one for each file and in their order: the "
    "parameters are found there; repeatable.",
)
@click.option("--truth", metavar="FILE", help="What was relevant there.")
@click.option("-m", "--metric", default="ndcg@10", show_default=True, help="What decides there.")
@shared_options.preset_option
@shared_options.changes_option
@shared_options.file_options_for("A B …", "--truth")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the fused lists go (.csv, .parquet, .run, .inter, …); by default they are printed as CSV.",
)
@shared_options.quiet_option  # fmt: skip
def fuse_command(
    *,
    lists: tuple[str, ...],
    method: str,
    norm: str,
    weights: str | None,
    settings: tuple[str, ...],
    missing: Literal["empty", "error"],
    tune_on: tuple[str, ...],
    truth: str | None,
    metric: str,
    preset: str,
    changes: tuple[str, ...],
    files: FileOptions,
    output: Path | None,
    quiet: bool,
) -> None:
    """Make one list per user from the lists of several recommenders, in A, B and so on.

    Files are read as by `recsys evaluate`. Methods that read places, such as rrf, need no scores. Weights and
    other parameters are given, or found on validation data that is not the test data:

    recsys fuse a_test.csv b_test.csv --method wsum --tune-on a_valid.csv --tune-on b_valid.csv --truth
    valid.csv -m ndcg@10 -o fused.csv
    """
    from recsys.evaluation.fusion_tuning import tune_fusion
    from recsys.inputs.files.reader import write_table
    from recsys.ranks.fusion import find_fusion, fuse

    row = find_fusion(method)
    if len(lists) < 2:
        raise click.UsageError("Name two files or more, such as recsys fuse a.csv b.csv -o fused.csv.")
    if (changes or preset != "default") and not tune_on:
        raise click.UsageError("--conventions and --set are those of the metric of --tune-on.")
    conventions = shared_options.chosen_conventions(preset, changes)
    chosen = None if norm.lower() == "none" else norm
    if bool(tune_on) != (truth is not None):
        raise click.UsageError("--tune-on FILE and --truth FILE go together.")
    if tune_on and (weights or settings):
        raise click.UsageError("parameters are given with --weights and --param, or found with --tune-on.")
    if tune_on and len(tune_on) != len(lists):
        raise click.UsageError(f"{len(lists)} files need {len(lists)} --tune-on, got {len(tune_on)}.")
    if output is not None:
        check_target(output, "output", inputs=(*lists, *tune_on, truth), suffixes=())
    with print_warnings(quiet=quiet):
        runs = [files.read(path, "lists", quiet=quiet) for path in lists]
        if tune_on:
            known = [files.read(path, "lists", quiet=quiet) for path in tune_on]
            judged = files.read(truth, "truth", quiet=quiet)
            with _named(tune_on):
                tuned = tune_fusion(
                    known, judged, row.name, metric, norm=chosen, conventions=conventions, missing=missing
                )
            if not quiet:
                note(str(tuned).replace("\n", "; ").replace("; evaluate .fuse(...) of other data", ""))
            with _named(lists):
                fused = tuned.fuse(runs, missing=missing)
        else:
            with _named(lists):
                fused = fuse(runs, row.name, chosen, missing=missing, **_parameters(weights, settings))
    table = fused.to_frame()
    if output is None:
        columns = table.to_dict("list")
        print_csv(list(columns), zip(*columns.values(), strict=True))
    else:
        write_table(output, table)
        if not quiet:
            sizes = f"{len(fused.codes):,} rows, {len(fused.cases):,} users"
            note(f"{output}: {sizes}, {row.name} of {len(runs)} files")


@contextmanager
def _named(paths: Sequence[str]) -> Iterator[None]:
    """Errors name files where the library counts runs."""
    try:
        yield
    except RecsysError as error:
        error.message = re.sub(r"runs\[(\d+)\]", lambda found: paths[int(found[1])], error.message)
        raise


def _parameters(weights: str | None, settings: tuple[str, ...]) -> dict[str, Any]:
    """What --weights and --param say."""
    found: dict[str, Any] = {}
    try:
        if weights is not None:
            found["weights"] = [float(weight) for weight in weights.split(",")]
        for setting in settings:
            name, _, number = setting.partition("=")
            found[name.strip()] = float(number) if "." in number or "e" in number.lower() else int(number)
    except ValueError:
        given = weights if weights is not None and not found else ", ".join(settings)
        raise click.UsageError(
            f"{given!r}: expected numbers, as in --weights 0.7,0.3 --param k=60."
        ) from None
    return found
