"""`recsys evaluate`: two files in, or factors and a truth, a table (or JSON, or CSV) out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings

_INPUTS = ("lists", "truth", "seen", "train", "items", "users", "reference", "user_ids", "item_ids")


@click.command("evaluate")
@click.argument("lists", metavar="[LISTS]", required=False)
@click.argument("truth_file", metavar="[TRUTH]", required=False)
@click.option("--factors", nargs=2, metavar="U V", help="Matrices of user and item factors (.npy, .npz, …).")
@click.option("--user-ids", metavar="FILE", help="Ids of the rows of U, one per line (.txt) or .npy.")
@click.option("--item-ids", metavar="FILE", help="Ids of the rows of V, one per line (.txt) or .npy.")
@click.option("--truth", metavar="FILE", help="The truth, with --factors.")
@shared_options.metric_options
@shared_options.file_options
@shared_options.data_options
@shared_options.context_options
@click.option("--per-user", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write one row per user: .csv, .tsv or .parquet.")  # fmt: skip
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keep the whole result (.json) for compare, gate, history and report.")  # fmt: skip
@click.option("--name", metavar="MODEL",
              help="What --save calls the model, for history; by default the file's name.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all digits, counts and conventions.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: metric, value, cases, all digits.")
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Score the recommendation lists in LISTS against what was relevant, in TRUTH.

    Both are tables, TREC files (run and qrels) or JSON, gzipped or not (see --format); - is standard input.
    Columns are found by name (user_id, itemId, score, rank, rating, …). With --factors U V the whole
    catalogue is ranked: recsys evaluate --factors U.npy V.npy --truth test.csv --seen train.csv
    """
    from recsys.cli.output import check_target, print_result, write_per_user

    if options["as_json"] and options["as_csv"]:
        raise click.UsageError("--json and --csv exclude each other.")
    if options["name"] is not None and options["save"] is None:
        raise click.UsageError("--name goes with --save FILE, which keeps it.")
    _resolve_inputs(options)
    inputs = [*(options[name] for name in _INPUTS), *(options["factors"] or ())]
    for name in ("per_user", "save"):
        if options[name] is not None:
            check_target(options[name], name.replace("_", "-"), inputs=inputs)
    with print_warnings(quiet=options["quiet"]):
        result = _evaluate(options)
    if options["per_user"] is not None:
        write_per_user(result, options["per_user"])
    if options["save"] is not None:
        result.save(options["save"], name=options["name"])
    print_result(result, as_json=options["as_json"], as_csv=options["as_csv"])
    # The table has this line below it; output for programs has not.
    nothing_found = result.counts.get("judged") and result.counts.get("found") == 0
    if nothing_found and (options["as_json"] or options["as_csv"]) and not options["quiet"]:
        text = "no listed item is in its user's truth: check that both sides use the same item ids"
        note(text, head="warning")
    if options["bounds"]:
        click.echo(f"\n{result.bounds()}", err=options["as_json"] or options["as_csv"])


def _resolve_inputs(options: dict[str, Any]) -> None:
    """Bring both ways of naming the inputs to one: `lists` or `factors`, and `truth`."""
    if options["factors"]:
        paths = [options["lists"], options["truth_file"], options["truth"]]
        truth = [path for path in paths if path is not None]
        if len(truth) != 1 or any(name.startswith("--") for name in options["factors"]):
            raise click.UsageError(
                "--factors takes two files, U V, and goes with one TRUTH: --truth FILE, and no LISTS."
            )
        options["truth"] = truth[0]
    else:
        if options["truth"] is not None and options["truth_file"] is None:
            options["truth_file"] = options["truth"]
        for name, metavar in (("lists", "LISTS"), ("truth_file", "TRUTH")):
            if options[name] is None:
                raise click.UsageError(f"Missing argument '{metavar}'.")
        options["truth"] = options["truth_file"]
    if [options[name] for name in _INPUTS].count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only; name a file for the others.")


def _evaluate(options: dict[str, Any]) -> Any:
    from recsys.cli.output import progress_bar
    from recsys.evaluation.evaluate import evaluate

    conventions = shared_options.chosen_conventions(options)
    requests = shared_options.metric_requests(options)
    # Rows of factors are counted from 0, so the ids of the files must be numbers too.
    if options["factors"] and not (options["user_ids"] or options["item_ids"]) and options["ids"] == "str":
        options["ids"] = "int"
    if options["factors"]:
        from recsys.ranks.sources import read_factors

        id_files = {name: options[name] for name in ("user_ids", "item_ids")}
        ranked = read_factors(*options["factors"], **id_files, ids=options["ids"])
    else:
        ranked = shared_options.read(options["lists"], "lists", options)
    truth = shared_options.read(options["truth"], "truth", options)
    seen = None if options["seen"] is None else shared_options.read(options["seen"], "truth", options)
    reference = (
        None if options["reference"] is None else shared_options.read(options["reference"], "lists", options)
    )
    with progress_bar("ranking", quiet=options["quiet"]) as progress:
        return evaluate(
            ranked, truth, requests, conventions=conventions, seen=seen, catalogue=options["catalogue"],
            complete=options["complete"], progress=progress, by=options["by"],
            train=shared_options.read(options["train"], "truth", options) if options["train"] else None,
            items=None if options["items"] is None else shared_options.read_items(options["items"], options),
            users=None if options["users"] is None else shared_options.read_users(options["users"], options),
            reference=reference,
        )  # fmt: skip
