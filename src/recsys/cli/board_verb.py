"""`recsys board`: one page over many saved results."""

from __future__ import annotations

from pathlib import Path

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import check_target


@click.command("board")
@click.argument("places", nargs=-1, metavar="FOLDER…")
@click.option("-o", "--output", type=shared_options.FILE, metavar="FILE",
              default=Path("recsys-report") / "board.html", show_default=True,
              help="Where to write it.")  # fmt: skip
@click.option("--title", help="The page's heading.")
@click.option("--watch", is_flag=True, help="Write it again as results arrive, until Ctrl-C.")
@click.option("--refresh", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Let the opened page read its file again this often.")  # fmt: skip
@shared_options.quiet_option
def board_command(
    *,
    places: tuple[str, ...],
    output: Path,
    title: str | None,
    watch: bool,
    refresh: float | None,
    quiet: bool,
) -> None:
    """Write a page over all saved results of FOLDER… (by default ./results). Prints its path.

    Rows are results, columns the metrics of all of them: sort, filter, lay two side by side, see each name
    over time, export. Single files of `recsys evaluate --save` can be named too:
    recsys board results -o board.html --watch --refresh 5
    """
    from recsys.display.number_words import plural
    from recsys.report.board import watch_board, write_board

    folders = places or ("results",)
    check_target(output, "output", inputs=folders, makes_folder=True)
    if not watch:
        click.echo(str(write_board(output, folders, title=title, refresh=refresh)))
        return
    try:
        for n_runs, n_unopened in watch_board(output, folders, title=title, refresh=refresh):
            if not quiet:
                more = f", {n_unopened:,} not opened" if n_unopened else ""
                note(f"{plural(n_runs, 'run')}{more}; Ctrl-C ends", head="written")
    except KeyboardInterrupt:
        click.echo(str(output))
