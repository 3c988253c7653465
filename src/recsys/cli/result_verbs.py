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
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import check_target, print_csv, print_page
from recsys.cli.shared_options import FILE, FOLDER, FileOptions, MetricOptions, chosen_conventions
from recsys.errors import FileError


@click.command("explain", cls=VerbCommand)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--lists", metavar="FILE", help="Try each decision on these lists …")
@click.option("--truth", metavar="FILE", help="… against this truth.")
@shared_options.request_options
@click.option("--set", "changes", multiple=True, metavar="DECISION=VALUE",
              help="Change one decision of both conventions; repeatable.")  # fmt: skip
@shared_options.file_options_for("--lists", "--truth")
@shared_options.quiet_option
def explain_command(
    *,
    first: str,
    second: str,
    lists: str | None,
    truth: str | None,
    metrics: tuple[str, ...],
    cuts: tuple[int, ...],
    changes: tuple[str, ...],
    files: FileOptions,
    quiet: bool,
) -> None:
    """Explain the difference between A and B: names of conventions, or saved results (.json).

    With --lists and --truth each decision is switched in turn on that data, so the steps add up to the whole:
    recsys explain default rectools --lists als.csv --truth test.csv -m ndcg@10
    """
    from recsys.comparison.explain import explain
    from recsys.evaluation.results import load
    from recsys.metrics.registry import parse_all

    if (lists is None) != (truth is None):
        raise click.UsageError("--lists and --truth go together.")
    # Whatever has a suffix is taken as a file, else it is the name of conventions.
    sides: list[Any] = [
        load(text) if Path(text).suffix or Path(text).exists() else text for text in (first, second)
    ]
    if changes:
        saved = [text for side, text in zip(sides, (first, second), strict=True) if not isinstance(side, str)]
        if saved:
            raise click.UsageError(f"--set changes conventions; {saved[0]} is a saved result with its own.")
        sides = [chosen_conventions(name, changes) for name in sides]
    data: dict[str, Any] = {}
    if lists is not None:
        data = {
            "lists": files.read(lists, "lists", quiet=quiet),
            "truth": files.read(truth, "truth", quiet=quiet),
            "metrics": parse_all(",".join(metrics) or None, list(cuts) or None),
        }
    with print_warnings(quiet=quiet):
        explanation = explain(*sides, **data)
        if changes:
            first, second = (f"{name} but {', '.join(changes)}" for name in (first, second))
            explanation = replace(explanation, first=first, second=second)
        print_page(explanation)


@click.command("gate", cls=VerbCommand)
@click.argument("new", metavar="NEW")
@click.option("--against", required=True, metavar="FILE", help="The saved result in force.")
@click.option("-m", "--metric", "metrics", multiple=True, required=True, help="Such as ndcg@10; repeatable.")
@click.option("--non-inferior", "margin", metavar="MARGIN", default="1%", show_default=True,
              help="How much worse it may be: 1% of the old value, or 0.005 in its units.")  # fmt: skip
@click.option("--better", is_flag=True, help="Require that it is shown to be better.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True,
              help="Of the one-sided bounds.")  # fmt: skip
@click.option("--looks", type=click.IntRange(min=1), metavar="N",
              help="Nights on which this candidate may be asked about; by default one.")  # fmt: skip
@click.option("--history", type=FOLDER, metavar="FOLDER",
              help="Results over time: a second look at the candidate (its name) is noted.")  # fmt: skip
@click.option("--comment", type=FILE, metavar="FILE",
                help="Write a Markdown comment on the change: verdict, table, what to do.")  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@shared_options.json_option
@shared_options.quiet_option
def gate_command(
    *,
    new: str,
    against: str,
    metrics: tuple[str, ...],
    margin: str,
    better: bool,
    confidence: float,
    looks: int | None,
    history: Path | None,
    comment: Path | None,
    markdown: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Exit with 0 if NEW is shown to be no worse than the other result by more than the margin, else with 1.

    Both are files of `recsys evaluate --save`, or folders of --per-user-to. Margins of their own:
    -m ndcg@10=0.5% -m recall@10=2%
    """
    from recsys.comparison.gate import gate
    from recsys.inputs.files import write_text

    shared_options.refuse_both(json=as_json, markdown=markdown)
    margins: dict[str, str] = {}
    for text in metrics:
        name, sign, own_margin = text.rpartition("=")
        if not sign or ")" in own_margin:  # no margin of its own: an "=" in parentheses is the metric's
            name, own_margin = text, margin
        if name in margins:
            raise click.UsageError(f"-m {name} is given twice: name each metric once.")
        margins[name] = "0" if better else own_margin
    if comment is not None:
        check_target(comment, "comment", inputs=(new, against))
    with print_warnings(quiet=quiet):
        decision = gate(new, against, margins, confidence=confidence, looks=looks, history=history)
    if comment is not None:
        write_text(comment, decision.to_markdown() + "\n")
    print_page(decision, as_json=as_json, markdown=markdown)
    if not decision.passed:
        sys.exit(FAILED)


@click.command("history", cls=VerbCommand)
@click.argument("folder", metavar="FOLDER", default="results")
@click.option("-m", "--metric", "metrics", multiple=True, help="Such as ndcg@10; repeatable; by default all.")
@click.option("--name", metavar="MODEL", help="One model only.")
@shared_options.json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
@shared_options.raw_option
def history_command(
    *, folder: str, metrics: tuple[str, ...], name: str | None, as_json: bool, as_csv: bool, raw: bool
) -> None:
    """Show the results of FOLDER (by default ./results), oldest first; new levels are marked."""
    from recsys.comparison.history import history

    shared_options.refuse_both(json=as_json, csv=as_csv)
    nights = history(folder, list(metrics) or None, name=name)
    if as_csv:
        print_csv(nights.to_frame().to_dict("list"), raw=raw)
        for message in nights.skipped:
            note(f"skipped: {message}", head="warning")
    else:
        print_page(nights, as_json=as_json)


@click.command("report", cls=VerbCommand)
@click.argument("paths", nargs=-1, required=True, metavar="RESULT…")
@click.option("-o", "--output", type=FILE, metavar="FILE", default=Path("recsys-report") / "report.html",
              show_default=True, help="Where to write it.")  # fmt: skip
@shared_options.decision_options
@click.option("--title", help="The page's heading.")
@shared_options.name_option
@click.option("--truth", metavar="FILE", help="What was relevant: needed for lists, optional for results.")
@click.option("--items", metavar="FILE", help="Table of the items: titles (and categories).")
@click.option(
    "--embeddings", metavar="FILE", help="One vector per item, in the order of --items: .npy, .npz, …"
)
@click.option("--audit", metavar="FILE", help="What `recsys audit --json` printed.")
@click.option("--history", "nights", metavar="FOLDER", help="Results kept over time by `recsys run`.")
@shared_options.metric_options
@shared_options.file_options_for("files of lists", "--truth")
@shared_options.data_options
@shared_options.quiet_option
def report_command(
    *,
    paths: tuple[str, ...],
    output: Path,
    baseline: str | None,
    headline: str | None,
    title: str | None,
    names: tuple[str, ...],
    truth: str | None,
    train: str | None,
    items: str | None,
    embeddings: str | None,
    audit: str | None,
    nights: str | None,
    metrics: MetricOptions,
    files: FileOptions,
    seen: str | None,
    catalogue: int | None,
    full_ranking: bool,
    quiet: bool,
) -> None:
    """Write a page about RESULT…: saved results (.json), or lists or models with --truth. Prints its path.

    recsys report als.json bpr.json --baseline als --items items.csv
    """
    from recsys.cli.compare_verb import baseline_name, evaluate_files, files_by_model
    from recsys.comparison.history import history
    from recsys.report import write_report

    models = files_by_model(paths, names)
    inputs = (*paths, truth, train, items, embeddings, audit, seen)
    check_target(output, "output", inputs=inputs, makes_folder=True)
    with print_warnings(quiet=quiet):
        results, tables = evaluate_files(
            models, truth=truth, metrics=metrics, files=files, seen=seen, catalogue=catalogue,
            full_ranking=full_ranking, train=train, reports=True, quiet=quiet,
        )  # fmt: skip
        page = write_report(
            output,
            results,
            baseline=baseline_name(baseline, models),
            headline=headline,
            title=title,
            items=None if items is None else _read_item_table(items, files),
            embeddings=None if embeddings is None else _read_embeddings(embeddings),
            audit=None if audit is None else _read_audit(audit),
            history=None if nights is None else history(nights),
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
