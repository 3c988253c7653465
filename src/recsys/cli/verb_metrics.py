"""`recsys metrics`: the metrics of the registry, or one of them."""

from __future__ import annotations

import json
import re
from typing import Any

import click

from recsys.cli.facts import all_metrics, bounds_text, choices, metric_facts
from recsys.metrics import RATINGS, lookup


@click.command("metrics")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, *, as_json: bool) -> None:
    """List the metrics; with NAME (ndcg, f1, …) describe one."""
    if name is None:
        rows = all_metrics()
        if as_json:
            click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            _print_table(rows)
        return
    bare = re.split(r"[(@]", name)[0].strip().replace("-", "_")
    facts = metric_facts(lookup(bare)[0])
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else format_metric(facts))


def format_metric(facts: dict[str, Any]) -> str:
    """One metric in full, as lines."""
    lines = [
        f"{facts['name']}: {facts['meaning']}",
        *([facts["details"]] if facts["details"] else []),
        "",
        f"formula     {facts['formula']}",
        f"@k          {facts['at_k']}",
        f"better      {facts['better']}",
        f"bounds      {bounds_text(facts)}",
    ]
    if facts["conventions"]:  # a metric of predicted numbers has neither places nor decisions
        lines.append(f"ties        {facts['ties']}")
    if facts["parameters"]:
        lines.append("parameters  " + ", ".join(f"{n}={v}" for n, v in facts["parameters"].items()))
    if facts["aliases"]:
        lines.append("also called " + ", ".join(facts["aliases"]))
    lines += [f"needs       {need}" for need in facts["needs"]]
    lines.append(f"reference   {facts['reference']}")
    lines += ["", "conventions that move it:"] if facts["conventions"] else []
    for decision in facts["conventions"]:
        lines.append(f"  {decision}")
        if decision in facts["own_conventions"]:
            lines += [f"    {value}: {words}" for value, words in choices(decision).items()]
    return "\n".join(lines)


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from recsys.cli.output import console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "@k", "better", "bounds", "meaning"):
        table.add_column(name, no_wrap=name != "meaning")
    for row in rows:
        table.add_row(row["name"], row["at_k"], row["better"], bounds_text(row), row["meaning"])
    console().print(table)
    rating_metrics = [name for name in RATINGS.load_plugins() if not name.startswith("user_")]
    click.echo(f"\nof predicted ratings and clicks, for recsys.evaluate_ratings: {', '.join(rating_metrics)}")
