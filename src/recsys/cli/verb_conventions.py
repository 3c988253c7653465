"""`recsys conventions`: the presets, one of them, or how two differ."""

from __future__ import annotations

import json
from typing import Any

import click

from recsys.cli.facts import all_presets, preset_facts
from recsys.conventions.decisions import Conventions, describe
from recsys.conventions.presets import preset


@click.command("conventions")
@click.argument("first", required=False)
@click.argument("second", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(first: str | None, second: str | None, *, as_json: bool) -> None:
    """List the presets; with FIRST describe one; with SECOND say which decisions differ between the two."""
    if second is not None and first is not None:
        changes = differences(first, second)
        text = json.dumps(changes, indent=2, ensure_ascii=False) if as_json else format_changes(first, second)
        click.echo(text)
    elif first == "default":
        decisions = {
            name: {"value": value, "words": describe(name, value)}
            for name, value in Conventions().items()
            if name != "per_metric"
        }
        facts = {"name": first, "decisions": decisions}
        click.echo(
            json.dumps(facts, indent=2, ensure_ascii=False) if as_json else "\n".join(_decision_lines(facts))
        )
    elif first is not None:
        facts = preset_facts(preset(first))
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else format_preset(facts))
    elif as_json:
        click.echo(json.dumps(all_presets(), indent=2, ensure_ascii=False))
    else:
        _print_table(all_presets())


def format_preset(facts: dict[str, Any]) -> str:
    """One preset in full, as lines."""
    lines = [f"{facts['name']}: {facts['library']} {facts['version']}, checked {facts['checked']}", ""]
    lines += _decision_lines(facts)
    for metric, changes in facts["per_metric"].items():
        lines.append(f"for {metric} only: " + ", ".join(f"{n}={v}" for n, v in changes.items()))
    lines += [f"not copied: {defect}" for defect in facts["defects"]]
    lines += [f"note: {fact}" for fact in facts["facts"]]
    return "\n".join(lines)


def _decision_lines(facts: dict[str, Any]) -> list[str]:
    return [
        f"{name}={decision['value']}: {decision['words']}" for name, decision in facts["decisions"].items()
    ]


def differences(first: str, second: str) -> dict[str, dict[str, Any]]:
    """{decision: {from, to, words}} where two presets differ; the words explain the second."""
    changes = Conventions.of(first).diff(Conventions.of(second))
    return {n: {"from": a, "to": b, "words": describe(n, b)} for n, (a, b) in changes.items()}


def format_changes(first: str, second: str) -> str:
    """Which decisions differ between two presets, from what to what, and what the second one means."""
    lines = [f"{first} -> {second}"]
    for name, change in differences(first, second).items():
        values = "" if name == "per_metric" else f" {change['from']} -> {change['to']},"
        lines.append(f"- {name}:{values} {change['words']}")
    return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}: no decision differs"


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from recsys.cli.output import console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "library", "version", "differs from the default in"):
        table.add_column(name, no_wrap=name in {"name", "version"})
    for row in rows:
        changed = [f"{name}={decision['value']}" for name, decision in row["decisions"].items()]
        if row["per_metric"]:
            changed.append("others for " + ", ".join(row["per_metric"]))
        table.add_row(row["name"], row["library"], row["version"], ", ".join(changed) or "nothing")
    console().print(table)
