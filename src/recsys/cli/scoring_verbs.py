"""`recsys evaluate` and `recsys ratings`: files in, a table (or JSON, or CSV) out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import check_target, print_page, print_result, progress_bar, write_per_user
from recsys.cli.shared_options import FILE, FileOptions, MemoryOptions, MetricOptions, column_option

if TYPE_CHECKING:
    from recsys.ranks.sources import Factors

_per_user_option = click.option(
    "--per-user", type=FILE, metavar="FILE", help="Write one row per user: .csv, .tsv or .parquet."
)
_csv_option = click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV: metric, value, cases, all digits."
)


@click.command("evaluate", cls=VerbCommand)
@click.argument("lists", metavar="[LISTS]", required=False)
@click.argument("truth_file", metavar="[TRUTH]", required=False)
@click.option("--factors", nargs=2, metavar="U V", help="Matrices of user and item factors (.npy, .npz, …).")
@shared_options.row_id_options
@click.option("--truth", metavar="FILE", help="The truth, with --factors.")
@shared_options.metric_options
@shared_options.file_options
@shared_options.data_options
@click.option("--items", metavar="FILE", help="Table of the items: for calibration, value, exposure, --by.")
@click.option("--users", metavar="FILE", help="Table of the users: for --by.")
@click.option("--reference", metavar="FILE", help="Another model's lists: for serendipity, overlap and rbo.")
@click.option("--by", metavar="GROUP",
              help="Per group: activity, cold_user, popularity, cold_item, item_age, a column of items or "
                   "users.")  # fmt: skip
@click.option("--aggregate", metavar="NAME",
              help="The number over all users: mean (the default), median, p90 or trimmed(0.1).")  # fmt: skip
@click.option("--bounds", is_flag=True, help="Also print the best attainable value and the floor of chance.")
@click.option("--intervals", is_flag=True, help="Print every 95% interval, also those that take a while.")
@_per_user_option
@shared_options.memory_options
@click.option("--save", type=FILE, metavar="FILE",
              help="Keep the whole result (.json) for compare, gate, history and report.")  # fmt: skip
@click.option("--name", metavar="MODEL",
              help="What --save and --per-user-to call the model, for history; by default the name of the "
                   "file or folder.")  # fmt: skip
@shared_options.cautions_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all digits, counts and conventions.")
@_csv_option
@shared_options.raw_option
@shared_options.quiet_option
def evaluate_command(
    *,
    lists: str | None,
    truth_file: str | None,
    factors: tuple[str, str] | None,
    user_ids: str | None,
    item_ids: str | None,
    truth: str | None,
    metrics: MetricOptions,
    files: FileOptions,
    seen: str | None,
    catalogue: int | None,
    full_ranking: bool,
    train: str | None,
    items: str | None,
    users: str | None,
    reference: str | None,
    by: str | None,
    aggregate: str | None,
    bounds: bool,
    intervals: bool,
    per_user: Path | None,
    beyond: MemoryOptions,
    save: Path | None,
    name: str | None,
    silenced: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    raw: bool,
    quiet: bool,
) -> None:
    """Score the recommendation lists in LISTS against what was relevant, in TRUTH.

    Both are tables, TREC files (run and qrels) or JSON, gzipped or not (see --format); - is standard input, a
    folder of files or a glob in quotes ('recs/*.parquet') is one table.
    Columns are found by name (user_id, itemId, score, rank, rating, …). Instead of LISTS a model ranks the
    whole catalogue: a file of `recsys train`, or --factors U V:
    recsys evaluate --factors U.npy V.npy --truth test.csv --train train.csv
    """
    from recsys.evaluation.evaluate import evaluate
    from recsys.ranks.sources import is_model_path

    shared_options.refuse_both(json=as_json, csv=as_csv)
    if name is not None and save is None and beyond.per_user_to is None:
        raise click.UsageError("--name goes with --save FILE or --per-user-to FOLDER, which keep it.")
    lists, truth = _lists_and_truth(lists, truth_file, truth, factors)
    inputs = (lists, truth, seen, train, items, users, reference, user_ids, item_ids)
    if inputs.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only; name a file for the others.")
    is_model = bool(factors) or is_model_path(lists)
    unseen = shared_options.seen_file(seen, train, is_model=is_model, quiet=quiet)
    stdin = "-" in (lists, truth, unseen)
    beyond.check(files, per_user=per_user is not None, bounds=bounds, stdin=stdin)
    for option, path in (("per-user", per_user), ("save", save)):
        if path is not None:
            check_target(path, option, inputs=(*inputs, *(factors or ())))
    with print_warnings(quiet=quiet):
        conventions, requests = metrics.conventions(), metrics.requests()
        cautions = shared_options.silenced_cautions(silenced)
        model, files = _read_factors(factors, files, user_ids=user_ids, item_ids=item_ids)
        before = files.read(train or None, "truth", quiet=quiet)
        ranked, known, history = _read_inputs(
            (lists, truth, None if unseen == train else unseen), files, model, user_ids=user_ids,
            item_ids=item_ids, unread=beyond.memory is not None, quiet=quiet,
        )  # fmt: skip
        with progress_bar("ranking" if beyond.memory is None else "evaluating", quiet=quiet) as progress:
            result = evaluate(
                ranked,
                known,
                requests,
                conventions=conventions,
                seen=history if unseen != train else train if beyond.memory is not None else before,
                reference=files.read(reference, "lists", quiet=quiet),
                train=before,
                items=files.read_attributes(items, "item"),
                users=files.read_attributes(users, "user"),
                catalogue=catalogue,
                full_ranking=full_ranking,
                by=by,
                aggregate=aggregate,
                cautions=cautions,
                progress=progress,
                **beyond.keywords(files),
            )
    if per_user is not None:
        write_per_user(result, per_user, raw=raw)
    beyond.keep_name(result, name)
    if save is not None:
        result.save(save, name=name)
        if beyond.memory is not None and not quiet:
            note(f"{save} holds sums; the values per user {beyond.where()}.")
    print_result(
        result, as_json=as_json, as_csv=as_csv, quiet=quiet, raw=raw, intervals=intervals or None
    )  # fmt: skip
    # The table has this line below it; output for programs has not.
    nothing_found = result.counts.get("judged") and result.counts.get("found") == 0
    if nothing_found and (as_json or as_csv) and not quiet:
        text = "no listed item is in its user's truth: do both sides have the same ids, and split?"
        note(text, head="warning")
    if bounds:
        click.echo(err=as_json or as_csv)
        print_page(result.bounds(), err=as_json or as_csv)


def _read_factors(
    paths: tuple[str, str] | None, files: FileOptions, *, user_ids: str | None, item_ids: str | None
) -> tuple[Factors | None, FileOptions]:
    """The model of --factors, and how ids of other files are read: as numbers, if its rows have none."""
    from recsys.ranks.sources import Factors, read_factors

    if not paths:
        return None, files
    model = read_factors(*paths, user_ids=user_ids, item_ids=item_ids, ids=files.ids)
    if model.user_rows.numbered and model.item_rows.numbered:
        return Factors(model.users, model.items), replace(files, ids="int")
    return model, files


def _read_inputs(
    paths: tuple[str | None, str | None, str | None],
    files: FileOptions,
    factors: Factors | None,
    *,
    user_ids: str | None,
    item_ids: str | None,
    unread: bool,
    quiet: bool,
) -> tuple[Any, Any, Any]:
    """Lists or a model, truth and seen items; `unread`: tables stay paths, which are read piece by piece."""
    from recsys.ranks.sources import is_model_path

    lists, truth, seen = paths
    is_list = factors is None and not is_model_path(lists)
    if factors is not None:
        ranked: Any = factors
    elif unread and is_list and not (user_ids or item_ids):
        ranked = lists
    else:
        ranked = files.read_ranked(str(lists), quiet=quiet, user_ids=user_ids, item_ids=item_ids)
    if unread:
        return ranked, truth, seen
    return ranked, files.read(truth, "truth", quiet=quiet), files.read(seen, "truth", quiet=quiet)


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


@click.command("ratings", cls=VerbCommand)
@click.argument("file", metavar="FILE")
@click.option("-m", "--metric", "metrics", multiple=True,
              help="Such as rmse, user_mae or 'ece(bins=20)'; or ratings, clicks; repeatable.")  # fmt: skip
@column_option("user", "users")
@column_option("actual", "ratings, labels or clicks")
@column_option("prediction", "predictions")
@click.option("--scale", nargs=2, type=float, metavar="LOW HIGH", help="Lowest and highest rating there is.")
@click.option("--clip", is_flag=True, help="Move predictions outside the scale to its border.")
@shared_options.encoding_option
@_per_user_option
@_csv_option
@shared_options.raw_option
@shared_options.json_option
@shared_options.quiet_option
def ratings_command(
    *,
    file: str,
    metrics: tuple[str, ...],
    user: str | None,
    actual: str | None,
    prediction: str | None,
    scale: tuple[float, float] | None,
    clip: bool,
    encoding: str,
    per_user: Path | None,
    as_csv: bool,
    raw: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score the predictions in FILE (a table such as CSV; - is standard input): one row per rating or click.

    It needs a user, a rating (or label, click) and a prediction column. A plain name (rmse) is over all rows,
    user_rmse the mean over users.
    """
    from recsys.evaluation.ratings import evaluate_ratings

    shared_options.refuse_both(json=as_json, csv=as_csv)
    if per_user is not None:
        check_target(per_user, "per-user", inputs=(file,))
    with print_warnings(quiet=quiet):
        columns = {"user": user, "actual": actual, "prediction": prediction}
        table = _read_predictions(file, columns, encoding)
        result = evaluate_ratings(
            table, metrics=",".join(metrics) or None, scale=scale or None, clip=clip
        )  # fmt: skip
    if per_user is not None:
        write_per_user(result, per_user, raw=raw)
    print_result(result, as_json=as_json, as_csv=as_csv, quiet=quiet, raw=raw)


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
