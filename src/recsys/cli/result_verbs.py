"""Verbs about saved results: `recsys explain`, `recsys gate`, `recsys history` and `recsys report`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note, print_warnings
from recsys.cli.output import check_target, print_csv, print_page
from recsys.cli.shared_options import FILE, FOLDER, FileOptions, chosen_conventions
from recsys.cli.verb_options import (
    CHANCE,
    COUNT,
    INPUT,
    LEVEL,
    METRICS,
    OUTPUT,
    Given,
    argument,
    command,
    option,
)
from recsys.errors import FileError


@command(
    "explain",
    argument("first", "A"),
    argument("second", "B"),
    option("--lists FILE", "Try each decision on these lists …", INPUT),
    option("--truth FILE", "… against this truth.", INPUT),
    shared_options.request_options,
    option(
        "--set DECISION=VALUE ...",
        "Change one decision of both conventions; repeatable.",
        METRICS,
        name="changes",
    ),
    shared_options.file_options_for("--lists", "--truth"),
    shared_options.quiet_option,
)
def explain_command(given: Given) -> None:
    """Explain the difference between A and B: names of conventions, or saved results (.json).

    With --lists and --truth each decision is switched in turn on that data, so the steps add up to the whole:
    recsys explain default rectools --lists als.csv --truth test.csv -m ndcg@10
    """
    from recsys.comparison.explain import explain
    from recsys.evaluation.results import load
    from recsys.metrics.registry import parse_all

    files = given.gather(FileOptions)
    if (given.lists is None) != (given.truth is None):
        raise click.UsageError("--lists and --truth go together.")
    # Whatever has a suffix is taken as a file, else it is the name of conventions.
    sides: list[Any] = [
        load(text) if Path(text).suffix or Path(text).exists() else text
        for text in (given.first, given.second)
    ]
    if given.changes:
        saved = [
            text
            for side, text in zip(sides, (given.first, given.second), strict=True)
            if not isinstance(side, str)
        ]
        if saved:
            raise click.UsageError(f"--set changes conventions; {saved[0]} is a saved result with its own.")
        sides = [chosen_conventions(name, given.changes) for name in sides]
    data: dict[str, Any] = {}
    if given.lists is not None:
        data = {
            "lists": files.read(given.lists, "lists"),
            "truth": files.read(given.truth, "truth"),
            "metrics": parse_all(",".join(given.metrics) or None, list(given.cuts) or None),
        }
    with print_warnings(quiet=given.quiet):
        explanation = explain(*sides, **data)
        if given.changes:
            given.first, given.second = (
                f"{name} but {', '.join(given.changes)}" for name in (given.first, given.second)
            )
            explanation = replace(explanation, first=given.first, second=given.second)
        print_page(explanation)


@command(
    "gate",
    argument("new", "NEW"),
    option("--against FILE", "The saved result in force.", INPUT, required=True),
    option("-m, --metric TEXT ...", "Such as ndcg@10; repeatable.", METRICS, name="metrics", required=True),
    option(
        "--non-inferior MARGIN",
        "How much worse it may be: 1% of the old value, or 0.005 in its units.",
        default="1%",
    ),
    option("--better", "Require that it is shown to be better."),
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
        type=FILE,
    ),
    option("--markdown", "Print Markdown.", OUTPUT),
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

    shared_options.refuse_both(json=given.json, markdown=given.markdown)
    margins: dict[str, str] = {}
    for text in given.metrics:
        name, sign, own_margin = text.rpartition("=")
        if not sign or ")" in own_margin:  # no margin of its own: an "=" in parentheses is the metric's
            name, own_margin = text, given.non_inferior
        if name in margins:
            raise click.UsageError(f"-m {name} is given twice: name each metric once.")
        margins[name] = "0" if given.better else own_margin
    if given.comment is not None:
        check_target(given.comment, "comment", inputs=(given.new, given.against))
    with print_warnings(quiet=given.quiet):
        decision = gate(
            given.new,
            given.against,
            margins,
            confidence=given.confidence,
            looks=given.looks,
            history=given.history,
        )
    if given.comment is not None:
        write_text(given.comment, decision.to_markdown() + "\n")
    print_page(decision, as_json=given.json, markdown=given.markdown)
    if not decision.passed:
        sys.exit(FAILED)


@command(
    "history",
    argument("folder", "FOLDER", default="results"),
    option("-m, --metric TEXT ...", "Such as ndcg@10; repeatable; by default all.", METRICS, name="metrics"),
    option("--name MODEL", "One model only.", OUTPUT),
    shared_options.json_option,
    option("--csv", "Print CSV, with all digits.", OUTPUT),
    shared_options.raw_option,
)
def history_command(given: Given) -> None:
    """Show the results of FOLDER (by default ./results), oldest first; new levels are marked."""
    from recsys.comparison.history import history

    shared_options.refuse_both(json=given.json, csv=given.csv)
    nights = history(given.folder, list(given.metrics) or None, name=given.name)
    if given.csv:
        print_csv(nights.to_frame().to_dict("list"), raw=given.raw)
        for message in nights.skipped:
            note(f"skipped: {message}", head="warning")
    else:
        print_page(nights, as_json=given.json)


@command(
    "report",
    argument("paths", "RESULT…", nargs=-1, required=True),
    option(
        "-o, --output FILE",
        "Where to write it.",
        OUTPUT,
        type=FILE,
        default=Path("recsys-report") / "report.html",
    ),
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
    from recsys.cli.compare_verb import baseline_name, evaluate_files, files_by_model
    from recsys.comparison.history import history
    from recsys.report import write_report

    files = given.gather(FileOptions)
    models = files_by_model(given.paths, given.names)
    inputs = (*given.paths, given.truth, given.train, given.items, given.embeddings, given.audit, given.seen)
    check_target(given.output, "output", inputs=inputs, makes_folder=True)
    with print_warnings(quiet=given.quiet):
        results, tables = evaluate_files(models, given, reports=True)
        page = write_report(
            given.output,
            results,
            baseline=baseline_name(given.baseline, models),
            **given.pick("headline", "title"),
            items=None if given.items is None else _read_item_table(given.items, files),
            embeddings=None if given.embeddings is None else _read_embeddings(given.embeddings),
            audit=None if given.audit is None else _read_audit(given.audit),
            history=None if given.history is None else history(given.history),
            **tables,
        )
    click.echo(str(page))


def _read_item_table(path: str, files: FileOptions) -> Any:
    """A table of items; ids are text by default, as in all files."""
    import pandas as pd

    frame = shared_options.read_cells(path, files.encoding)
    if files.ids != "int":
        return frame.astype(str) if files.ids == "str" else frame
    id_column = next((name for name in frame.columns if shared_options.has_role(name, "item")), None)
    if id_column is not None and pd.to_numeric(frame[id_column], errors="coerce").notna().all():
        frame[id_column] = pd.to_numeric(frame[id_column])
    return frame


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
