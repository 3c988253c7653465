"""`recsys gate`: may the new model ship? An exit code for CI and a summary for the pull request."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, print_warnings
from recsys.cli.output import check_target


@click.command("gate")
@click.argument("new", metavar="NEW")
@click.option("--against", required=True, metavar="FILE", help="The saved result in force.")
@click.option("-m", "--metric", "metrics", multiple=True, required=True, help="Such as ndcg@10; repeatable.")
@click.option("--non-inferior", "margin", metavar="MARGIN", default="1%", show_default=True,
              help="How much worse it may be: 1% of the old value, or 0.005 in its units.")  # fmt: skip
@click.option("--better", is_flag=True, help="Require that it is shown to be better.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--summary", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the Markdown summary here, too.")  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@shared_options.json_option
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Exit with 0 if NEW is shown to be no worse than the other result by more than the margin, else with 1.

    Both are files of `recsys evaluate --save`. Margins of their own: -m ndcg@10=0.5% -m recall@10=2%
    """
    from recsys.comparison.gate import gate
    from recsys.evaluation.results import load

    if options["as_json"] and options["markdown"]:
        raise click.UsageError("--json and --markdown exclude each other.")
    margins: dict[str, str] = {}
    for text in options["metrics"]:
        name, sign, margin = text.rpartition("=")
        if not sign or ")" in margin:  # no margin of its own: an "=" in parentheses is the metric's
            name, margin = text, options["margin"]
        if name in margins:
            raise click.UsageError(f"-m {name} is given twice: name each metric once.")
        margins[name] = "0" if options["better"] else margin
    if options["summary"] is not None:
        check_target(options["summary"], "summary", inputs=(options["new"], options["against"]))
    with print_warnings(quiet=options["quiet"]):
        decision = gate(
            load(options["new"]), load(options["against"]), margins, confidence=options["confidence"]
        )
    if options["summary"] is not None:
        from recsys.inputs.files import write_text

        write_text(options["summary"], decision.to_markdown() + "\n")
    if options["as_json"]:
        click.echo(decision.to_json())
    elif options["markdown"]:
        click.echo(decision.to_markdown())
    else:
        click.echo(str(decision))
    if not decision.passed:
        sys.exit(FAILED)
