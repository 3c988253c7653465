"""`recsys conventions`: the presets, one of them, or how two differ."""

from __future__ import annotations

import json
from typing import Any

import click

from recsys.cli.facts import all_presets, preset_facts
from recsys.conventions.decisions import Conventions, describe
from recsys.conventions.presets import preset


@click.command("conventions", short_help="List the presets, describe one, or say how two differ.")
@click.argument("first", required=False)
@click.argument("second", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(first: str | None, second: str | None, *, as_json: bool) -> None:
    """List the presets; with FIRST describe one; with SECOND say which decisions differ between the two."""
    if second is not None and first is not None:
        changes = differences(first, second)
        told = json.dumps(changes, indent=2, ensure_ascii=False) if as_json else compared(first, second)
        click.echo(told)
    elif first == "default":
        facts = {"name": first, "decisions": _decided(Conventions())}
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else "\n".join(_told(facts)))
    elif first is not None:
        facts = preset_facts(preset(first))
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else described(facts))
    elif as_json:
        click.echo(json.dumps(all_presets(), indent=2, ensure_ascii=False))
    else:
        _table(all_presets())


def described(facts: dict[str, Any]) -> str:
    """One preset in full, as lines."""
    lines = [f"{facts['name']}: {facts['library']} {facts['version']}, checked {facts['checked']}", ""]
    lines += _told(facts)
    for metric, changes in facts["per_metric"].items():
        lines.append(f"for {metric} only: " + ", ".join(f"{n}={v}" for n, v in changes.items()))
    lines += [f"not copied: {defect}" for defect in facts["defects"]]
    lines += [f"note: {fact}" for fact in facts["facts"]]
    return "\n".join(lines)


def _told(facts: dict[str, Any]) -> list[str]:
    return [f"{name}={made['value']}: {made['words']}" for name, made in facts["decisions"].items()]


def _decided(conventions: Conventions) -> dict[str, dict[str, Any]]:
    """Every decision, whatever it is in the default."""
    return {
        name: {"value": value, "words": describe(name, value)}
        for name, value in conventions.items()
        if name != "per_metric"
    }


def differences(first: str, second: str) -> dict[str, dict[str, Any]]:
    """{decision: from, to and what the second one means} where two presets differ."""
    changes = Conventions.of(first).diff(Conventions.of(second))
    return {n: {"from": a, "to": b, "words": describe(n, b)} for n, (a, b) in changes.items()}


def compared(first: str, second: str) -> str:
    """Which decisions differ between two presets, from what to what, and what the second one means."""
    lines = [f"{first} -> {second}"]
    for name, made in differences(first, second).items():
        change = "" if name == "per_metric" else f" {made['from']} -> {made['to']},"
        lines.append(f"- {name}:{change} {made['words']}")
    return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}: no decision differs"


def _table(rows: list[dict[str, Any]]) -> None:
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
