"""`recsys ratings`: predicted against actual ratings or clicks, from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import print_warnings


@click.command("ratings")
@click.argument("file", metavar="FILE")
@click.option("-m", "--metric", "metrics", multiple=True,
              help="Such as rmse, user_mae or 'ece(bins=20)'; or ratings, clicks; repeatable.")  # fmt: skip
@click.option("--user", metavar="COLUMN", help="Column of the users.")
@click.option("--actual", metavar="COLUMN", help="Column of the ratings, labels or clicks.")
@click.option("--prediction", metavar="COLUMN", help="Column of the predictions.")
@click.option("--scale", nargs=2, type=float, metavar="LOW HIGH", help="Lowest and highest rating there is.")
@click.option("--clip", is_flag=True, help="Move predictions outside the scale to its border.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of text files.")
@click.option("--per-user", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write one row per user: .csv, .tsv or .parquet.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: metric, value, cases, all digits.")
@shared_options.json_option
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Score the predictions in FILE (a table such as CSV; - is standard input): one row per rating or click.

    It needs a user, a rating (or label, click) and a prediction column. A plain name (rmse) is over all rows,
    user_rmse the mean over users.
    """
    from recsys.cli.output import check_target, print_result, write_per_user
    from recsys.evaluation.ratings import evaluate_ratings

    if options["as_json"] and options["as_csv"]:
        raise click.UsageError("--json and --csv exclude each other.")
    if options["per_user"] is not None:
        check_target(options["per_user"], "per-user", inputs=(options["file"],))
    with print_warnings(quiet=options["quiet"]):
        result = evaluate_ratings(
            _read_predictions(options),
            metrics=",".join(options["metrics"]) or None,
            scale=options["scale"] or None,
            clip=options["clip"],
        )
    if options["per_user"] is not None:
        write_per_user(result, options["per_user"])
    print_result(result, as_json=options["as_json"], as_csv=options["as_csv"])


def _read_predictions(options: dict[str, Any]) -> Any:
    """The user, actual and prediction columns under these names; ids stay text, the others are numbers."""
    import pandas as pd

    from recsys.errors import InputError
    from recsys.inputs.frames import find_columns
    from recsys.inputs.ids import refuse_missing

    path = options["file"]
    frame = shared_options.read_cells(path, options["encoding"])
    roles = ("user", "actual", "prediction")
    named = {role: options[role] for role in roles if options[role] is not None}
    columns = find_columns([str(n) for n in frame.columns], roles, named, path, needed=roles)
    users = frame[columns["user"]]
    missing = users.isna() | (users == "")
    if missing.any():
        refuse_missing(int(missing.to_numpy().argmax()), path, columns["user"])
    # The reader of ids handles floats and says what it makes of them.
    data = {"user": users if users.dtype.kind == "f" else users.astype(str)}
    for role in roles[1:]:
        try:
            data[role] = pd.to_numeric(frame[columns[role]])
        except (TypeError, ValueError) as error:
            raise InputError(
                f"a value is not a number ({error}).", table=path, column=columns[role], hint="Mend the row."
            ) from error
    return pd.DataFrame(data)
