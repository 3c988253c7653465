"""`recsys evaluate` and `recsys ratings`: files in, a table (or JSON, or CSV) out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import progress_bar, show, write_per_user
from recsys.cli.shared_options import FileOptions, column_option
from recsys.cli.verb_options import INPUT, METRICS, OUTPUT, Given, Target, argument, command, keyword, option

_ROW_IDS = ("user_ids", "item_ids")
_per_user_option = option(
    "--per-user FILE",
    "Write one row per user: .csv, .tsv or .parquet.",
    OUTPUT,
    type=Target(".csv", ".tsv", ".parquet"),
)
_csv_option = option("--csv", "Print CSV: metric, value, cases, all digits.", OUTPUT)


def _groupings(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> Any:
    """What --by names, as `by=` of the library takes it."""
    names = [tuple(part.strip() for part in text.split(",")) if "," in text else text for text in texts]
    return (names[0] if len(names) == 1 else names) if names else None


@command(
    "evaluate",
    argument("lists", "[LISTS]", required=False),
    argument("truth_file", "[TRUTH]", required=False),
    option("--factors U V", "Matrices of user and item factors (.npy, .npz, …).", INPUT, nargs=2),
    shared_options.row_id_options,
    option("--truth FILE", "The truth, with --factors.", INPUT),
    shared_options.metric_options,
    shared_options.file_options,
    shared_options.data_options,
    *map(keyword, ("items", "users", "reference", "items_of")),
    keyword("by", multiple=True, default=(), callback=_groupings),
    keyword("aggregate"),
    option("--bounds", "Also print the best attainable value and the floor of chance.", METRICS),
    option("--intervals", "Print every 95% interval, also those that take a while.", METRICS),
    _per_user_option,
    keyword("memory"),
    keyword("per_user", name="per_user_to"),
    keyword("checkpoint"),
    option(
        "--save FILE",
        "Keep the whole result (.json) for compare, gate, history and report.",
        OUTPUT,
        type=Target(".json"),
    ),
    option(
        "--name MODEL",
        "What --save and --per-user-to call the model, for history; by default the name of the "
        "file or folder.",
        OUTPUT,
    ),
    shared_options.cautions_option,
    option("--json", "Print JSON: all digits, counts and conventions.", OUTPUT),
    _csv_option,
    shared_options.raw_option,
    shared_options.quiet_option,
)
def evaluate_command(given: Given) -> None:
    """Score the recommendation lists in LISTS against what was relevant, in TRUTH.

    Both are tables, TREC files (run and qrels) or JSON, gzipped or not (see --format); - is standard input, a
    folder of files or a glob in quotes ('recs/*.parquet') is one table.
    Columns are found by name (user_id, itemId, score, rank, rating, …). Instead of LISTS a model ranks the
    whole catalogue: a file of `recsys train`, or --factors U V:
    recsys evaluate --factors U.npy V.npy --truth test.csv --train train.csv
    """
    from recsys.evaluation.evaluate import evaluate
    from recsys.ranks.sources import is_model_path

    files, unread = given.gather(FileOptions), given.memory is not None
    if given.name is not None and given.save is None and given.per_user_to is None:
        raise click.UsageError("--name goes with --save FILE or --per-user-to FOLDER, which keep it.")
    given.lists, given.truth = _lists_and_truth(given.lists, given.truth_file, given.truth, given.factors)
    tables = given.pick(
        "lists", "truth", "seen", "train", "items", "users", "reference", "items_of", *_ROW_IDS
    )
    if [*tables.values()].count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only; name a file for the others.")
    options = _memory_options(given, files)
    conventions, requests = shared_options.conventions_of(given), shared_options.requests_of(given)
    is_model = bool(given.factors) or is_model_path(given.lists)
    ranked, files = _read_ranked(given, files, unread=unread and not is_model)
    train = files.read(given.train, "truth")
    seen = files.read_seen(given, given.train if unread else train, is_model=is_model, unread=unread)
    with progress_bar("ranking" if unread else "evaluating") as progress:
        result = evaluate(
            ranked,
            given.truth if unread else files.read(given.truth, "truth"),
            requests,
            conventions=conventions,
            seen=seen,
            reference=files.read(given.reference, "lists"),
            train=train,
            items=files.read_attributes(given.items, "item"),
            users=files.read_attributes(given.users, "user"),
            progress=progress,
            **given.pick("catalogue", "full_ranking", "by", "aggregate", "cautions", "items_of"),
            **options,
        )
    if given.per_user is not None:
        write_per_user(result, given.per_user, raw=given.raw)
    if given.per_user_to is not None and given.name is not None:
        result.save(given.per_user_to, name=given.name)
    if given.save is not None:
        result.save(given.save, name=given.name)
        if unread:
            folder = given.per_user_to
            where = f"are in {folder}" if folder else "were not kept (--per-user-to FOLDER)"
            note(f"{given.save} holds sums; the values per user {where}.")
    show(result, given.shown_as, raw=given.raw, intervals=given.intervals or None)
    # The table has this line below it; output for programs has not.
    if given.shown_as and result.counts.get("judged") and result.counts.get("found") == 0:
        text = "no listed item is in its user's truth: do both sides have the same ids, and split?"
        note(text, head="warning")
    if given.bounds:
        click.echo(err=bool(given.shown_as))
        show(result.bounds(), err=bool(given.shown_as))


def _memory_options(given: Given, files: FileOptions) -> dict[str, Any]:
    """The keywords of evaluate for files that it reads itself; an error for what does not fit --memory."""
    if given.memory is None:
        if given.per_user_to is not None or given.checkpoint is not None:
            raise click.UsageError("--per-user-to and --checkpoint go with --memory SIZE.")
        return {}
    for name, is_given, instead in (
        ("--per-user", given.per_user is not None, "--per-user-to FOLDER keeps the values per user"),
        ("--bounds", given.bounds, "bounds need all lists at once"),
        ("- (standard input)", "-" in (given.lists, given.truth, given.seen), "name a file"),
        ("--format", files.form is not None, "Parquet and CSV files are read"),
        ("--encoding", files.encoding.lower().replace("-", "") != "utf8", "text files are UTF-8"),
    ):
        if is_given:
            raise click.UsageError(f"{name} does not go with --memory: {instead}.")
    of_truth = files.columns("truth")
    return {
        "memory": given.memory, "per_user": given.per_user_to, "checkpoint": given.checkpoint,
        "ids": files.ids, "columns": {"lists": files.columns("lists"), "truth": of_truth, "seen": of_truth},
    }  # fmt: skip


def _read_ranked(given: Given, files: FileOptions, *, unread: bool) -> tuple[Any, FileOptions]:
    """Lists, their path if they are left `unread`, or a model; and how the other files are read.

    That is with ids as numbers if the rows of --factors have none.
    """
    from recsys.ranks.sources import Factors, read_factors

    row_ids = given.pick(*_ROW_IDS)
    if not given.factors:
        left = unread and not any(row_ids.values())
        return given.lists if left else files.read_ranked(given.lists, **row_ids), files
    model = read_factors(*given.factors, **row_ids, ids=files.ids)
    if model.user_rows.numbered and model.item_rows.numbered:
        return Factors(model.users, model.items), replace(files, ids="int")
    return model, files


def _lists_and_truth(
    lists: str | None, truth_file: str | None, truth: str | None, factors: tuple[str, str] | None
) -> tuple[str | None, str | None]:
    """The paths of lists (None with factors) and of the truth, whichever way they were named."""
    from recsys.models.model_files import is_model_file

    if factors:
        named = [path for path in (lists, truth_file, truth) if path is not None]
        if len(named) != 1 or any(name.startswith("--") for name in factors):
            raise click.UsageError(
                "--factors takes two files, U V, and goes with one TRUTH: --truth FILE, and no LISTS."
            )
        for matrix in factors:
            if is_model_file(matrix):
                raise click.UsageError(
                    f"{matrix} is a whole model: recsys evaluate {matrix} {named[0]}, without --factors."
                )
        return None, named[0]
    if lists is None or (truth_file or truth) is None:
        raise click.UsageError(f"Missing argument '{'TRUTH' if lists else 'LISTS'}'.")
    if truth_file and truth:
        raise click.UsageError(f"the truth is named twice: {truth_file}, and --truth {truth}.")
    return lists, truth_file or truth


@command(
    "ratings",
    argument("file", "FILE"),
    shared_options.metrics_option(
        "Such as rmse, user_mae or 'ece(bins=20)'; or ratings, clicks; repeatable."
    ),
    column_option("user", "users"),
    column_option("actual", "ratings, labels or clicks"),
    column_option("prediction", "predictions"),
    option("--scale LOW HIGH", "Lowest and highest rating there is.", nargs=2, type=float),
    option("--clip", "Move predictions outside the scale to its border."),
    shared_options.encoding_option,
    _per_user_option,
    _csv_option,
    shared_options.raw_option,
    shared_options.json_option,
    shared_options.quiet_option,
)
def ratings_command(given: Given) -> None:
    """Score the predictions in FILE (a table such as CSV; - is standard input): one row per rating or click.

    It needs a user, a rating (or label, click) and a prediction column. A plain name (rmse) is over all rows,
    user_rmse the mean over users.
    """
    from recsys.evaluation.ratings import evaluate_ratings
    from recsys.inputs.files.reader import read_table

    columns = {role: name for role, name in given.pick("user", "actual", "prediction").items() if name}
    # Only users are ids here; all other cells stay as they are, and evaluate_ratings reads them.
    roles: Any = dict.fromkeys(("item", "grade", "time")) | ({"user": given.user} if given.user else {})
    table, _ = read_table(given.file, columns=roles, ids="str", encoding=given.encoding)
    result = evaluate_ratings(
        table,
        metrics=",".join(given.metrics) or None,
        scale=given.scale or None,
        clip=given.clip,
        columns=columns,
    )
    if given.per_user is not None:
        write_per_user(result, given.per_user, raw=given.raw)
    show(result, given.shown_as, raw=given.raw, intervals=None)
