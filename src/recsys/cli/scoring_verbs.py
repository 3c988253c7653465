"""`recsys evaluate` and `recsys ratings`: files in, a table (or JSON, or CSV) out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.output import check_target, print_page, print_result, progress_bar, write_per_user
from recsys.cli.shared_options import FILE, FileOptions, MemoryOptions, MetricOptions, column_option
from recsys.cli.verb_options import INPUT, METRICS, OUTPUT, Given, argument, command, keyword, option

if TYPE_CHECKING:
    from recsys.ranks.sources import Factors

_ROW_IDS = ("user_ids", "item_ids")
_per_user_option = option(
    "--per-user FILE", "Write one row per user: .csv, .tsv or .parquet.", OUTPUT, type=FILE
)
_csv_option = option("--csv", "Print CSV: metric, value, cases, all digits.", OUTPUT)


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
    *map(keyword, ("items", "users", "reference", "by", "aggregate")),
    option("--bounds", "Also print the best attainable value and the floor of chance.", METRICS),
    option("--intervals", "Print every 95% interval, also those that take a while.", METRICS),
    _per_user_option,
    shared_options.memory_options,
    option(
        "--save FILE",
        "Keep the whole result (.json) for compare, gate, history and report.",
        OUTPUT,
        type=FILE,
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

    metrics = given.gather(MetricOptions)
    files = given.gather(FileOptions)
    beyond = given.gather(MemoryOptions)
    shared_options.refuse_both(json=given.json, csv=given.csv)
    if given.name is not None and given.save is None and beyond.per_user_to is None:
        raise click.UsageError("--name goes with --save FILE or --per-user-to FOLDER, which keep it.")
    given.lists, given.truth = _lists_and_truth(given.lists, given.truth_file, given.truth, given.factors)
    tables = given.pick("lists", "truth", "seen", "train", "items", "users", "reference", *_ROW_IDS)
    inputs = (*tables.values(),)
    if inputs.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only; name a file for the others.")
    is_model = bool(given.factors) or is_model_path(given.lists)
    unseen = shared_options.seen_file(given.seen, given.train, is_model=is_model, quiet=given.quiet)
    stdin = "-" in (given.lists, given.truth, unseen)
    beyond.check(files, per_user=given.per_user is not None, bounds=given.bounds, stdin=stdin)
    for target, path in (("per-user", given.per_user), ("save", given.save)):
        if path is not None:
            check_target(path, target, inputs=(*inputs, *(given.factors or ())))
    with print_warnings(quiet=given.quiet):
        conventions, requests = metrics.conventions(), metrics.requests()
        cautions = shared_options.silenced_cautions(given.silenced)
        ids, piecewise = given.pick(*_ROW_IDS), beyond.memory is not None
        model, files = _read_factors(given.factors, files, ids)
        before = files.read(given.train or None, "truth")
        is_train = unseen == given.train
        paths = (given.lists, given.truth, None if is_train else unseen)
        ranked, known, seen = _read_inputs(paths, files, model, ids, unread=piecewise)
        if is_train:
            seen = given.train if piecewise else before
        doing = "ranking" if beyond.memory is None else "evaluating"
        with progress_bar(doing, quiet=given.quiet) as progress:
            result = evaluate(
                ranked,
                known,
                requests,
                conventions=conventions,
                seen=seen,
                reference=files.read(given.reference, "lists"),
                train=before,
                items=files.read_attributes(given.items, "item"),
                users=files.read_attributes(given.users, "user"),
                cautions=cautions,
                progress=progress,
                **given.pick("catalogue", "full_ranking", "by", "aggregate"),
                **beyond.keywords(files),
            )
    if given.per_user is not None:
        write_per_user(result, given.per_user, raw=given.raw)
    beyond.keep_name(result, given.name)
    if given.save is not None:
        result.save(given.save, name=given.name)
        if beyond.memory is not None and not given.quiet:
            note(f"{given.save} holds sums; the values per user {beyond.where()}.")
    forms = {"as_json": given.json, "as_csv": given.csv, "raw": given.raw}
    print_result(result, **forms, quiet=given.quiet, intervals=given.intervals or None)
    # The table has this line below it; output for programs has not.
    nothing_found = result.counts.get("judged") and result.counts.get("found") == 0
    if nothing_found and (given.json or given.csv) and not given.quiet:
        text = "no listed item is in its user's truth: do both sides have the same ids, and split?"
        note(text, head="warning")
    if given.bounds:
        click.echo(err=given.json or given.csv)
        print_page(result.bounds(), err=given.json or given.csv)


def _read_factors(
    paths: tuple[str, str] | None, files: FileOptions, row_ids: dict[str, Any]
) -> tuple[Factors | None, FileOptions]:
    """The model of --factors, and how ids of other files are read: as numbers, if its rows have none."""
    from recsys.ranks.sources import Factors, read_factors

    if not paths:
        return None, files
    model = read_factors(*paths, **row_ids, ids=files.ids)
    if model.user_rows.numbered and model.item_rows.numbered:
        return Factors(model.users, model.items), replace(files, ids="int")
    return model, files


def _read_inputs(
    paths: tuple[str | None, str | None, str | None],
    files: FileOptions,
    factors: Factors | None,
    row_ids: dict[str, Any],
    *,
    unread: bool,
) -> tuple[Any, Any, Any]:
    """Lists or a model, truth and seen items; `unread`: tables stay paths, which are read piece by piece."""
    from recsys.ranks.sources import is_model_path

    lists, truth, seen = paths
    is_list = factors is None and not is_model_path(lists)
    if factors is not None:
        ranked: Any = factors
    elif unread and is_list and not any(row_ids.values()):
        ranked = lists
    else:
        ranked = files.read_ranked(str(lists), **row_ids)
    if unread:
        return ranked, truth, seen
    return ranked, files.read(truth, "truth"), files.read(seen, "truth")


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
    truth = truth if truth_file is None else truth_file
    for path, metavar in ((lists, "LISTS"), (truth, "TRUTH")):
        if path is None:
            raise click.UsageError(f"Missing argument '{metavar}'.")
    return lists, truth


@command(
    "ratings",
    argument("file", "FILE"),
    option(
        "-m, --metric TEXT ...",
        "Such as rmse, user_mae or 'ece(bins=20)'; or ratings, clicks; repeatable.",
        METRICS,
        name="metrics",
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

    shared_options.refuse_both(json=given.json, csv=given.csv)
    if given.per_user is not None:
        check_target(given.per_user, "per-user", inputs=(given.file,))
    with print_warnings(quiet=given.quiet):
        columns = {"user": given.user, "actual": given.actual, "prediction": given.prediction}
        table = _read_predictions(given.file, columns, given.encoding)
        result = evaluate_ratings(
            table, metrics=",".join(given.metrics) or None, scale=given.scale or None, clip=given.clip
        )
    if given.per_user is not None:
        write_per_user(result, given.per_user, raw=given.raw)
    print_result(result, as_json=given.json, as_csv=given.csv, quiet=given.quiet, raw=given.raw)


def _read_predictions(path: str, columns: dict[str, str | None], encoding: str) -> Any:
    """The user, actual and prediction columns under these names; ids stay text, the others are numbers."""
    import pandas as pd

    from recsys.errors import InputError
    from recsys.inputs.frames import find_columns
    from recsys.inputs.ids import refuse_missing

    frame = shared_options.read_cells(path, encoding)
    named = {role: name for role, name in columns.items() if name is not None}
    found = find_columns([str(n) for n in frame.columns], tuple(columns), named, path, needed=tuple(columns))
    users = frame[found["user"]]
    missing = users.isna() | (users == "")
    if missing.any():
        refuse_missing(int(missing.to_numpy().argmax()), path, found["user"])
    # The reader of ids handles floats and says what it makes of them.
    data = {"user": users if users.dtype.kind == "f" else users.astype(str)}
    for role in ("actual", "prediction"):
        try:
            data[role] = pd.to_numeric(frame[found[role]])
        except (TypeError, ValueError) as error:
            raise InputError(
                f"a value is not a number ({error}).", table=path, column=found[role], hint="Fix the row."
            ) from error
    return pd.DataFrame(data)
