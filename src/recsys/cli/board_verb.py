"""`recsys board`: one page over many saved results."""

from __future__ import annotations

from pathlib import Path

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import check_target
from recsys.cli.verb_options import Given, argument, command, option


@command(
    "board",
    argument("places", "FOLDER…", nargs=-1),
    option(
        "-o, --output FILE",
        "Where to write it.",
        type=shared_options.FILE,
        default=Path("recsys-report") / "board.html",
    ),
    option("--title TEXT", "The page's heading."),
    option("--watch", "Write it again as results arrive, until Ctrl-C."),
    option(
        "--refresh SECONDS",
        "Let the opened page read its file again this often.",
        type=click.FloatRange(min=0, min_open=True),
    ),
    shared_options.quiet_option,
)
def board_command(given: Given) -> None:
    """Write a page over all saved results of FOLDER… (by default ./results). Prints its path.

    Rows are results, columns the metrics of all of them: sort, filter, lay two side by side, see each name
    over time, export. Single files of `recsys evaluate --save` can be named too:
    recsys board results -o board.html --watch --refresh 5
    """
    from recsys.display.number_words import plural
    from recsys.report.board import watch_board, write_board

    folders = given.places or ("results",)
    check_target(given.output, "output", inputs=folders, makes_folder=True)
    if not given.watch:
        click.echo(str(write_board(given.output, folders, title=given.title, refresh=given.refresh)))
        return
    try:
        for n_runs, n_unopened in watch_board(
            given.output, folders, title=given.title, refresh=given.refresh
        ):
            if not given.quiet:
                more = f", {n_unopened:,} not opened" if n_unopened else ""
                note(f"{plural(n_runs, 'run')}{more}; Ctrl-C ends", head="written")
    except KeyboardInterrupt:
        click.echo(str(given.output))
