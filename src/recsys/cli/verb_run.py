"""`recsys run`: execute a protocol file and keep its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import in_protocol, note, print_warnings


@click.command("run")
@click.argument("protocol", type=click.Path(dir_okay=False, path_type=Path), metavar="PROTOCOL.toml")
@click.option("-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where results are added; by default where the protocol says.")  # fmt: skip
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Also write the report (.html).")  # fmt: skip
@click.option("--check", is_flag=True, help="Only check the file and its inputs.")
@click.option("--fingerprints", is_flag=True, help="Only print the [data.sha256] table of its inputs.")
@shared_options.json_option
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Split, evaluate and compare as PROTOCOL.toml says; the same file and data give the same bytes."""
    from recsys.cli.protocol import read_protocol, run_protocol
    from recsys.cli.protocol.protocol_run import fingerprints

    protocol = read_protocol(options["protocol"])
    if options["fingerprints"]:
        digests = fingerprints(protocol, check=False)
        rows = [f'{json.dumps(name, ensure_ascii=False)} = "{digest}"' for name, digest in digests.items()]
        click.echo("\n".join(["[data.sha256]", *rows]))
        return
    if options["check"]:
        fingerprints(protocol)
        click.echo(f"{options['protocol']}: {len(protocol.content['models'])} models, "
                   f"{len(protocol.requests)} metrics, all inputs found.")  # fmt: skip
        return
    with print_warnings(quiet=options["quiet"]), in_protocol():
        outcome = run_protocol(
            protocol,
            folder=options["folder"],
            report=options["report"],
            progress=None if options["quiet"] else note,
        )
    click.echo(outcome.to_json() if options["as_json"] else str(outcome))
    if options["quiet"]:
        return
    for path in outcome.paths.values():
        note(f"kept {path}")
    if outcome.report is not None:
        note(f"report {outcome.report}")
