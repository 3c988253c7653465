"""Whole experiments: `recsys demo`, `recsys run` and `recsys study`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import show
from recsys.cli.shared_options import FILE, FOLDER, page_option
from recsys.cli.verb_options import OUTPUT, Given, argument, command, option
from recsys.errors import wording


@command(
    "demo",
    shared_options.seed_option,
    page_option("demo.html", "The report."),
    option("--no-report", "Only the table."),
    shared_options.quiet_option,
)
def demo_command(given: Given) -> None:
    """Compare ALS, BPR, popularity, chance, item similarity and a hybrid; nothing is downloaded."""
    from recsys.benching.demo import showcase
    from recsys.errors import MissingExtraError

    result = showcase(given.seed)
    show(result)
    if given.no_report:
        return
    try:
        click.echo(f"\nreport: {result.report(given.output)}")
    except MissingExtraError as error:
        note(f"no report: {error}")


@command(
    "run",
    argument("protocol", "PROTOCOL.toml", type=FILE),
    option(
        "-o, --output FOLDER",
        "Where results are added; by default where the protocol says.",
        OUTPUT,
        type=FOLDER,
    ),
    option("--report FILE", "Also write the report (.html).", OUTPUT, type=FILE),
    option("--check", "Only check the file and its inputs."),
    option("--fingerprints", "Only print the [data.sha256] table of its inputs."),
    shared_options.cautions_option,
    shared_options.json_option,
    shared_options.quiet_option,
)
def run_command(given: Given) -> None:
    """Split, evaluate and compare as PROTOCOL.toml says; the same file and data give the same bytes."""
    from recsys.benching.protocol import input_digests, read_protocol, run_protocol
    from recsys.benching.protocol.keys import as_key

    written = read_protocol(given.protocol)
    if given.fingerprints:
        digests = input_digests(written, check=False)
        rows = [f'{json.dumps(name, ensure_ascii=False)} = "{digest}"' for name, digest in digests.items()]
        click.echo("\n".join(["[data.sha256]", *rows]))
        return
    if given.check:
        input_digests(written)
        n_models, n_metrics = len(written.content["models"]), len(written.requests)
        click.echo(f"{given.protocol}: {n_models} models, {n_metrics} metrics, all inputs found.")
        return
    with wording(as_key):
        outcome = run_protocol(
            written, folder=given.output, report=given.report, cautions=given.cautions, progress=note
        )
        show(outcome, given.shown_as)
    for path in outcome.paths.values():
        note(f"kept {path}")
    if outcome.report is not None:
        note(f"report {outcome.report}")


@command(
    "study",
    argument("name", required=False),
    option("--data PATH", "A MovieLens folder or a table of ratings; by default the demo world."),
    shared_options.seed_option,
    option(
        "-o, --output FOLDER",
        "Where NAME.md and NAME.png go.",
        OUTPUT,
        type=FOLDER,
        default=Path("recsys-report"),
    ),
    shared_options.quiet_option,
)
def study_command(given: Given) -> None:
    """Run the study NAME: train small models, print the answer, draw the picture; without NAME list them."""
    from recsys.benching.studies import STUDIES, run_study

    if given.name is None:
        show("\n".join(f"{known:<20} {question}" for known, question in STUDIES.items()))
        return
    study = run_study(given.name, given.data, seed=given.seed)
    page, picture = study.save(given.output)
    show(study)
    note(f"written {page} and {picture}")
