"""`recsys doctor`: what is installed, what is in use, and the command that installs what is missing."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Any

import click

from recsys.cli import shared_options

_REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+).*extra\s*==\s*['\"]([\w-]+)['\"]")
_DISTRIBUTION = "recsys-evaluation"


@click.command("doctor")
@shared_options.json_option
def command(*, as_json: bool) -> None:
    """Show which kernels are in use and why, versions, and which optional packages are installed."""
    from recsys.evaluation.provenance import library_version
    from recsys.kernels import show_backends

    facts: dict[str, Any] = {
        "recsys": library_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "kernels": str(show_backends()),
        "packages": {name: _version(name) for name in ("numpy", "scipy", "pandas", "narwhals")},
        "extras": _extras(),
    }
    click.echo(json.dumps(facts, indent=2) if as_json else _format_facts(facts))


def _extras() -> dict[str, dict[str, str | None]]:
    """{extra: {package: version or None}} as the installed distribution declares them."""
    try:
        declared = metadata(_DISTRIBUTION).get_all("Requires-Dist") or []
    except PackageNotFoundError:
        return {}
    extras: dict[str, dict[str, str | None]] = {}
    for line in declared:
        match = _REQUIREMENT.match(line)
        if match and match.group(1) != _DISTRIBUTION:
            extras.setdefault(match.group(2), {})[match.group(1)] = _version(match.group(1))
    return extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _format_facts(facts: dict[str, Any]) -> str:
    lines = [f"recsys {facts['recsys']}, Python {facts['python']}, {facts['system']}", ""]
    lines += [*facts["kernels"].splitlines(), ""]
    lines += [", ".join(f"{name} {number}" for name, number in facts["packages"].items()), ""]
    for extra, packages in facts["extras"].items():
        missing = [name for name, number in packages.items() if number is None]
        installed = ", ".join(f"{name} {number}" for name, number in packages.items() if number)
        state = installed if not missing else f"missing: pip install '{_DISTRIBUTION}[{extra}]'"
        lines.append(f"{extra:<12} {state}")
    return "\n".join(lines)
