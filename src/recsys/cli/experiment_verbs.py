"""Whole experiments: `recsys demo`, `recsys run` and `recsys study`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import print_page
from recsys.cli.shared_options import FILE, FOLDER


@click.command("demo", cls=VerbCommand)
@shared_options.seed_option
@click.option("-o", "--output", type=FILE, metavar="FILE", default=Path("recsys-report", "demo.html"),
              show_default=True, help="The report.")  # fmt: skip
@click.option("--no-report", is_flag=True, help="Only the table.")
@shared_options.quiet_option
def demo_command(*, seed: int, output: Path, no_report: bool, quiet: bool) -> None:
    """Compare ALS, BPR, popularity, chance, item similarity and a hybrid; nothing is downloaded."""
    from recsys.cli.demo import showcase
    from recsys.errors import MissingExtraError

    with print_warnings(quiet=quiet):
        result = showcase(seed)
        print_page(result)
        if no_report:
            return
        try:
            written = result.report(output)
        except MissingExtraError as error:
            note(f"no report: {error}")
            return
    click.echo(f"\nreport: {written}")


@click.command("run", cls=VerbCommand)
@click.argument("protocol", type=FILE, metavar="PROTOCOL.toml")
@click.option("-o", "--output", "folder", type=FOLDER, metavar="FOLDER",
              help="Where results are added; by default where the protocol says.")  # fmt: skip
@click.option("--report", type=FILE, metavar="FILE", help="Also write the report (.html).")
@click.option("--check", is_flag=True, help="Only check the file and its inputs.")
@click.option("--fingerprints", is_flag=True, help="Only print the [data.sha256] table of its inputs.")
@shared_options.cautions_option
@shared_options.json_option
@shared_options.quiet_option
def run_command(
    *,
    protocol: Path,
    folder: Path | None,
    report: Path | None,
    check: bool,
    fingerprints: bool,
    silenced: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Split, evaluate and compare as PROTOCOL.toml says; the same file and data give the same bytes."""
    from recsys.benching.protocol import input_digests, read_protocol, run_protocol
    from recsys.benching.protocol.keys import as_key

    cautions = shared_options.silenced_cautions(silenced)
    written = read_protocol(protocol)
    if fingerprints:
        digests = input_digests(written, check=False)
        rows = [f'{json.dumps(name, ensure_ascii=False)} = "{digest}"' for name, digest in digests.items()]
        click.echo("\n".join(["[data.sha256]", *rows]))
        return
    if check:
        input_digests(written)
        click.echo(f"{protocol}: {len(written.content['models'])} models, {len(written.requests)} metrics, "
                   "all inputs found.")  # fmt: skip
        return
    progress = None if quiet else partial(note, face=as_key)
    with print_warnings(quiet=quiet, face=as_key):
        outcome = run_protocol(written, folder=folder, report=report, cautions=cautions, progress=progress)
    print_page(outcome, as_json=as_json, face=as_key)
    if quiet:
        return
    for path in outcome.paths.values():
        note(f"kept {path}")
    if outcome.report is not None:
        note(f"report {outcome.report}")


@click.command("study", cls=VerbCommand)
@click.argument("name", required=False)
@click.option(
    "--data", metavar="PATH", help="A MovieLens folder or a table of ratings; by default the demo world."
)
@shared_options.seed_option
@click.option("-o", "--output", "folder", type=FOLDER, metavar="FOLDER", show_default=True,
              default=Path("recsys-report"), help="Where NAME.md and NAME.png go.")  # fmt: skip
@shared_options.quiet_option
def study_command(*, name: str | None, data: str | None, seed: int, folder: Path, quiet: bool) -> None:
    """Run the study NAME: train small models, print the answer, draw the picture; without NAME list them."""
    from recsys.benching.studies import STUDIES, run_study

    if name is None:
        print_page("\n".join(f"{known:<20} {question}" for known, question in STUDIES.items()))
        return
    with print_warnings(quiet=quiet):
        study = run_study(name, data, seed=seed)
        page, picture = study.save(folder)
    print_page(study)
    if not quiet:
        note(f"written {page} and {picture}")
