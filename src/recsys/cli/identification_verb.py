"""`recsys identify`: which conventions an evaluator, in any language, follows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import check_target, print_page


@click.command("identify", cls=VerbCommand)
@click.argument("command", nargs=-1, metavar="[COMMAND …]")
@click.option("-m", "--metric", default="ndcg", show_default=True, help="What it computes, without @k.")
@click.option("--probes", "target", type=shared_options.FILE, metavar="FILE",
              help="Write the questions, one per line as JSON, to be answered elsewhere.")  # fmt: skip
@click.option("--answers", type=shared_options.FILE, metavar="FILE",
              help="Read answers given elsewhere: the same lines, each with a value.")  # fmt: skip
@click.option("--tolerance", type=click.FloatRange(min=0, min_open=True),
              help="The largest difference; by default 1e-6, or half of the last decimal given.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              metavar="SECONDS", help="How long COMMAND may take.")  # fmt: skip
@shared_options.json_option
@shared_options.quiet_option
def identify_command(
    *,
    command: tuple[str, ...],
    metric: str,
    target: Path | None,
    answers: Path | None,
    tolerance: float | None,
    timeout: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say which decisions and presets the evaluator COMMAND follows; exit with 1 if nothing known fits.

    COMMAND reads one question per line as JSON, {"run": {user: [[item, score], …]}, "truth": {user: {item:
    grade}}, "k": 3}, and prints {"value": …} for each, one number or one per user:
    recsys identify -m ndcg -- node evaluator.mjs
    """
    from recsys.comparison.identify import identify, probe_lines
    from recsys.inputs.files import write_text

    if sum((bool(command), target is not None, answers is not None)) != 1:
        raise click.UsageError("Name a COMMAND, or --probes FILE to write questions, or --answers FILE.")
    if target is not None:
        check_target(target, "probes")
        lines = probe_lines(metric)
        write_text(target, "".join(json.dumps(line) + "\n" for line in lines))
        if not quiet:
            note(f"{target}: {len(lines)} questions about {metric}. Add a value to each line; then: "
                 f"recsys identify -m '{metric}' --answers {target}", head="note")  # fmt: skip
        return
    words = command[0] if len(command) == 1 else list(command)
    found = identify(
        None if answers is not None else words, metric, answers=answers, tolerance=tolerance, timeout=timeout
    )
    print_page(found, as_json=as_json)
    if not found:
        sys.exit(FAILED)
