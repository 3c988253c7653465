"""Verbs about saved results: `recsys explain`, `gate`, `rank`, `history`, `report` and `board`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note
from recsys.cli.output import show
from recsys.cli.shared_options import FOLDER, FileOptions, page_option
from recsys.cli.verb_options import (
    CHANCE,
    COLUMNS,
    COUNT,
    INPUT,
    LEVEL,
    METRICS,
    NEW_FILE,
    OUTPUT,
    POSITIVE,
    Given,
    argument,
    command,
    option,
)
from recsys.errors import FileError

_ROLES = {"system": "the models", "case": "users or queries", "task": "data sets", "value": "the values"}


@command(
    "explain",
    argument("first", "A"),
    argument("second", "B"),
    option("--lists FILE", "Try each decision on these lists …", INPUT),
    option("--truth FILE", "… against this truth.", INPUT),
    shared_options.request_options,
    shared_options.changes_option,
    shared_options.file_options_for("--lists", "--truth"),
    shared_options.quiet_option,
)
def explain_command(given: Given) -> None:
    """Explain the difference between A and B: names of conventions, or saved results (.json).

    --set changes both conventions. With --lists and --truth each decision is switched in turn on that data,
    so the steps add up to the whole:
    recsys explain default rectools --lists als.csv --truth test.csv -m ndcg@10
    """
    from recsys.comparison.explain import explain
    from recsys.evaluation.results import load

    files, names = given.gather(FileOptions), (given.first, given.second)
    if (given.lists is None) != (given.truth is None):
        raise click.UsageError("--lists and --truth go together.")
    # Whatever has a suffix is taken as a file, else it is the name of conventions.
    sides: list[Any] = [load(text) if Path(text).suffix or Path(text).exists() else text for text in names]
    if given.changes:
        saved = [text for side, text in zip(sides, names, strict=True) if side is not text]
        if saved:
            raise click.UsageError(f"--set changes conventions; {saved[0]} is a saved result with its own.")
        sides = [shared_options.conventions_of(given, name) for name in names]
    data: dict[str, Any] = {}
    if given.lists is not None:
        data = {"lists": files.read(given.lists, "lists"), "truth": files.read(given.truth, "truth")}
        data["metrics"] = shared_options.requests_of(given)
    explanation = explain(*sides, **data)
    if given.changes:
        first, second = (f"{name} but {', '.join(given.changes)}" for name in names)
        explanation = replace(explanation, first=first, second=second)
    show(explanation)


@command(
    "gate",
    argument("new", "NEW"),
    option("--against FILE", "The saved result in force.", INPUT, required=True),
    shared_options.metrics_option("Such as ndcg@10; repeatable.", required=True),
    option(
        "--non-inferior MARGIN",
        "How much worse it may be: 1% of the old value, or 0.005 in its units.",
        default="1%",
    ),
    option("--better", "Require that it is shown to be better."),
    option(
        "--group GROUPING:METRIC=MARGIN ...",
        "Every group of users must keep this margin, such as country:ndcg@10=2%; repeatable.",
        name="group_margins",
    ),
    option(
        "--small",
        "Groups with too few users to show anything are listed, or fail.",
        type=click.Choice(("list", "fail")),
        default="list",
    ),
    option("--confidence", "Of the one-sided bounds.", CHANCE, type=LEVEL, default=0.95),
    option(
        "--looks N", "Nights on which this candidate may be asked about; by default one.", CHANCE, type=COUNT
    ),
    option(
        "--history FOLDER",
        "Results over time: a second look at the candidate (its name) is noted.",
        INPUT,
        type=FOLDER,
    ),
    option(
        "--comment FILE",
        "Write a Markdown comment on the change: verdict, table, what to do.",
        OUTPUT,
        type=NEW_FILE,
    ),
    shared_options.markdown_option,
    shared_options.json_option,
    shared_options.quiet_option,
)
def gate_command(given: Given) -> None:
    """Exit with 0 if NEW is shown to be no worse than the other result by more than the margin, else with 1.

    Both are files of `recsys evaluate --save`, or folders of --per-user-to. Margins of their own:
    -m ndcg@10=0.5% -m recall@10=2%
    """
    from recsys.comparison.gate import gate
    from recsys.inputs.files import write_text

    margins: dict[str, str] = {}
    for text in given.metrics:
        name, sign, own_margin = text.rpartition("=")
        if not sign or ")" in own_margin:  # no margin of its own: an "=" in parentheses is the metric's
            name, own_margin = text, given.non_inferior
        if name in margins:
            raise click.UsageError(f"-m {name} is given twice: name each metric once.")
        margins[name] = "0" if given.better else own_margin
    groups: dict[str, dict[str, str]] = {}
    for text in given.group_margins:
        name, _, own_margin = text.rpartition("=")
        grouping, colon, metric = name.partition(":")
        if not (colon and metric):
            raise click.UsageError(
                f"--group {text}: write GROUPING:METRIC=MARGIN, such as country:ndcg@10=2%."
            )
        groups.setdefault(grouping, {})[metric] = own_margin
    options = given.pick("confidence", "looks", "history", "small")
    decision = gate(given.new, given.against, margins, groups=groups or None, **options)
    if given.comment is not None:
        write_text(given.comment, decision.to_markdown() + "\n")
    show(decision, given.shown_as)
    if not decision.passed:
        sys.exit(FAILED)


@command(
    "rank",
    argument("paths", "RESULT…", nargs=-1, required=True),
    option("-m, --metric TEXT", "Such as ndcg@10; by default the first that the results hold.", METRICS),
    option("--by-folder", "Each folder of results is a data set; all have the same weight.", INPUT),
    *(
        option(f"--{role} COLUMN", f"The column of {what} in a table.", COLUMNS)
        for role, what in _ROLES.items()
    ),
    option("--lower-is-better", "The values of a table are errors.", INPUT),
    option("--confidence", "With which all places hold together.", CHANCE, type=LEVEL, default=0.95),
    shared_options.json_option,
    shared_options.csv_option,
    shared_options.raw_option,
    shared_options.markdown_option,
    shared_options.quiet_option,
)
def rank_command(given: Given) -> None:
    """Show which places of a board are really different: the places that each model may have.

    RESULT: files of `recsys evaluate --save`; or one table of other people's values, with the columns model
    and value, a row per user or query in the column case, and task if there are several data sets.
    """
    from recsys.comparison.rank import rank
    from recsys.evaluation.results import load

    options: dict[str, Any] = {"metric": given.metric, "confidence": given.confidence}
    results: Any = list(given.paths)
    if given.by_folder:
        results = {}
        for path in map(Path, given.paths):
            result = load(path)
            results.setdefault(str(path.parent), {})[result.name or path.stem] = result
    elif len(results) == 1:
        [results], options["lower_is_better"] = results, given.lower_is_better
        options["columns"] = {role: name for role, name in given.pick(*_ROLES).items() if name} or None
    show(rank(results, **options), given.shown_as, raw=given.raw)


@command(
    "history",
    argument("folder", "FOLDER", default="results"),
    shared_options.metrics_option("Such as ndcg@10; repeatable; by default all."),
    option("--name MODEL", "One model only.", OUTPUT),
    shared_options.json_option,
    shared_options.csv_option,
    shared_options.raw_option,
)
def history_command(given: Given) -> None:
    """Show the results of FOLDER (by default ./results), oldest first; new levels are marked."""
    from recsys.comparison.history import history

    nights = history(given.folder, list(given.metrics) or None, name=given.name)
    show(nights, given.shown_as, raw=given.raw)
    for message in nights.skipped if given.csv else ():
        note(f"skipped: {message}", head="warning")


@command(
    "report",
    argument("paths", "RESULT…", nargs=-1, required=True),
    page_option("report.html", "Where to write it."),
    shared_options.decision_options,
    option("--title TEXT", "The page's heading.", OUTPUT),
    shared_options.name_option,
    option("--truth FILE", "What was relevant: needed for lists, optional for results.", INPUT),
    option("--items FILE", "Table of the items: titles (and categories).", INPUT),
    option("--embeddings FILE", "One vector per item, in the order of --items: .npy, .npz, …", INPUT),
    option("--audit FILE", "What `recsys audit --json` printed.", INPUT),
    option("--history FOLDER", "Results kept over time by `recsys run`.", INPUT),
    shared_options.metric_options,
    shared_options.file_options_for("files of lists", "--truth"),
    shared_options.data_options,
    shared_options.quiet_option,
)
def report_command(given: Given) -> None:
    """Write a page about RESULT…: saved results (.json), or lists or models with --truth. Prints its path.

    recsys report als.json bpr.json --baseline als --items items.csv
    """
    from recsys.cli.compare_verb import named_files, results_of
    from recsys.comparison.history import history
    from recsys.evaluation.files_of_models import find_model
    from recsys.report import write_report

    models = named_files(given)
    results, tables = results_of(models, given, reports=True)
    page = write_report(
        given.output,
        results,
        baseline=find_model(given.baseline, models),
        **given.pick("headline", "title"),
        items=given.gather(FileOptions).read_attributes(given.items, "item", text=True),
        embeddings=None if given.embeddings is None else _read_embeddings(given.embeddings),
        audit=None if given.audit is None else _read_audit(given.audit),
        history=None if given.history is None else history(given.history),
        **tables,
    )
    click.echo(str(page))


def _read_embeddings(path: str) -> Any:
    from recsys.inputs.files.matrices import read_arrays

    matrices = [array for array in read_arrays(path).values() if array.ndim == 2]
    if len(matrices) != 1:
        raise FileError(
            f"{path} holds {len(matrices)} matrices, expected one.", hint="Save the embeddings alone."
        )
    return matrices[0]


def _read_audit(path: str) -> Any:
    from recsys.inputs.files.formats import read_text_file

    text = read_text_file(path)
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise FileError(f"{path} is not what recsys audit --json prints ({error}).") from error


@command(
    "board",
    argument("places", "FOLDER…", nargs=-1, default=("results",)),
    page_option("board.html", "Where to write it.", "Options"),
    option("--title TEXT", "The page's heading."),
    option("--watch", "Write it again as results arrive, until Ctrl-C."),
    option("--refresh SECONDS", "Let the opened page read its file again this often.", type=POSITIVE),
    shared_options.quiet_option,
)
def board_command(given: Given) -> None:
    """Write a page over all saved results of FOLDER… (by default ./results). Prints its path.

    Rows are results, columns the metrics of all of them: sort, filter, put two side by side, see each name
    over time, export. Single files of `recsys evaluate --save` can be named too:
    recsys board results -o board.html --watch --refresh 5
    """
    from recsys.display.number_words import plural
    from recsys.report.board import watch_board, write_board

    page: dict[str, Any] = given.pick("title", "refresh")
    if not given.watch:
        click.echo(str(write_board(given.output, given.places, **page)))
        return
    try:
        for n_runs, n_unopened in watch_board(given.output, given.places, **page):
            more = f", {n_unopened:,} not opened" if n_unopened else ""
            note(f"{plural(n_runs, 'run')}{more}; Ctrl-C ends", head="written")
    except KeyboardInterrupt:
        click.echo(str(given.output))
