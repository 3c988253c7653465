"""`recsys fuse`: files of lists, or models, in; a file of fused lists out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import print_csv
from recsys.cli.shared_options import FileOptions
from recsys.cli.verb_options import COUNT, INPUT, METRICS, NEW_FILE, OUTPUT, Given, argument, command, option
from recsys.records.read_facts import ReadFacts


@command(
    "fuse",
    argument("lists", "A B …", nargs=-1, required=True),
    option(
        "--method NAME", "How lists are combined: rrf, comb_sum, wsum, bordafuse, condorcet, …", default="rrf"
    ),
    option(
        "--norm NAME",
        "How scores are made comparable: min-max, max, sum, zmuv, rank, borda, none. By default "
        "min-max for methods that read scores.",
        default="default",
        show_default=False,
    ),
    option("--weights W,W,…", "One weight per file, such as 0.7,0.3."),
    option("--param NAME=NUMBER ...", "Another parameter of the method, such as k=60; repeatable."),
    option(
        "--missing",
        "What it means that a file has no list of a user.",
        type=click.Choice(["empty", "error"]),
        default="empty",
    ),
    option(
        "--tune-on FILE ...",
        "Lists (no models) on validation data, one for each file and in their order: the parameters "
        "are found there; repeatable.",
        INPUT,
    ),
    option("--truth FILE", "What was relevant there.", INPUT),
    option("--train FILE", "What users had before: not ranked again by a model.", INPUT),
    option(
        "-k",
        "How many items of a model are fused; by default as many as the longest list has.",
        METRICS,
        type=COUNT,
    ),
    option("-m, --metric TEXT", "What decides there.", METRICS, default="ndcg@10"),
    shared_options.preset_option,
    shared_options.changes_option,
    shared_options.file_options_for("A B …", "--truth"),
    option(
        "-o, --output FILE",
        "Where the fused lists go (.csv, .parquet, .run, .inter, …); by default they are printed as CSV.",
        OUTPUT,
        type=NEW_FILE,
    ),
    shared_options.quiet_option,
)
def fuse_command(given: Given) -> None:
    """Make one list per user from the lists of several recommenders, in A, B and so on.

    Files are read as by `recsys evaluate`. A model of `recsys train` ranks for the users of the other
    lists, or for all of its own. Methods that read places, such as rrf, need no scores. Weights and other
    parameters are given, or found on validation data that is not the test data:

    recsys fuse a_test.csv b_test.csv --method wsum --tune-on a_valid.csv --tune-on b_valid.csv --truth
    valid.csv -m ndcg@10 -o fused.csv
    """
    from recsys.evaluation.fusion_tuning import tune_fusion
    from recsys.inputs.files.reader import write_table
    from recsys.ranks.fusion import find_fusion, fuse

    files, method = given.gather(FileOptions), find_fusion(given.method).name
    if len(given.lists) < 2:
        raise click.UsageError("Name two files or more, such as recsys fuse a.csv b.csv -o fused.csv.")
    if (given.changes or given.preset != "default") and not given.tune_on:
        raise click.UsageError("--conventions and --set are those of the metric of --tune-on.")
    if bool(given.tune_on) != (given.truth is not None):
        raise click.UsageError("--tune-on FILE and --truth FILE go together.")
    if given.tune_on and (given.weights or given.param):
        raise click.UsageError("parameters are given with --weights and --param, or found with --tune-on.")
    if given.tune_on and len(given.tune_on) != len(given.lists):
        raise click.UsageError(
            f"{len(given.lists)} files need {len(given.lists)} --tune-on, got {len(given.tune_on)}."
        )
    conventions = shared_options.conventions_of(given)
    norm = None if given.norm.lower() == "none" else given.norm
    parameters = _parameters(given.weights, given.param)
    runs = _read_runs(given, files)
    if given.tune_on:
        known = [files.read(path, "lists") for path in given.tune_on]
        judged = files.read(given.truth, "truth")
        options: dict[str, Any] = {"conventions": conventions, "missing": given.missing}
        tuned = tune_fusion(known, judged, method, given.metric, norm=norm, **options)
        note(str(tuned).replace("\n", "; ").replace("; evaluate .fuse(...) of other data", ""))
        fused = tuned.fuse(runs, missing=given.missing)
    else:
        fused = fuse(runs, method, norm, missing=given.missing, **parameters)
    table = fused.to_frame()
    if given.output is None:
        print_csv(table.to_dict("list"))
    else:
        write_table(given.output, table)
        sizes = f"{len(fused.codes):,} rows, {len(fused.cases):,} users"
        note(f"{given.output}: {sizes}, {method} of {len(runs)} files")


def _read_runs(given: Given, files: FileOptions) -> list[Any]:
    """The lists of every file; a model ranks for the users of the ready lists, or for those of all models."""
    import numpy as np

    from recsys.evaluation.evaluate import recommend
    from recsys.ranks.sources import is_model_path
    from recsys.records.arrays import Ids

    models = [path for path in given.lists if is_model_path(path)]
    if not models and (given.train is not None or given.k is not None):
        raise click.UsageError("--train and -k are for models among the files, and there is none.")
    if given.k is None and len(models) == len(given.lists):
        raise click.UsageError("-k N says how many items of each model are fused, such as -k 100.")
    if models and given.train is None:
        note(f"{', '.join(models)}: what users had before is ranked, too; --train FILE leaves it out")
    history = files.read(given.train, "truth")
    runs = [files.read_ranked(path) for path in given.lists]
    ready = [run for path, run in zip(given.lists, runs, strict=True) if path not in models]
    users = Ids(np.zeros(0, np.int64))
    for ids in [run.cases for run in ready] or [model.user_rows.ids for model in runs]:
        users, _, _ = users.union(ids, what="user")
    k = given.k or max(int(run.sizes.max(initial=1)) for run in ready)
    for at, (path, run) in enumerate(zip(given.lists, runs, strict=True)):
        if path in models:
            run.user_rows.check_ids(users, table="lists")
            known = users.values[run.user_rows.row_of(users.values) >= 0]
            runs[at] = replace(recommend(run, k, users=known, seen=history), facts=ReadFacts(file=path))
    return runs


def _parameters(weights: str | None, settings: tuple[str, ...]) -> dict[str, Any]:
    """What --weights and --param say."""
    texts = shared_options.assignments("--param", settings, "NAME=NUMBER")
    found: dict[str, Any] = {name: shared_options.number_or_text(text) for name, text in texts.items()}
    if weights is not None:
        found["weights"] = [shared_options.number_or_text(weight) for weight in weights.split(",")]
    wrong = [value for value in (*found.values(), *found.get("weights", ())) if isinstance(value, str)]
    if wrong:
        raise click.UsageError(f"{wrong[0]}: expected numbers, as in --weights 0.7,0.3 --param k=60.")
    return found
