"""Writes docs/parity.md: how many stored numbers of each library come out again, and why the rest do not."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from golden.table import RESULTS, Entry, conventions_of, entries, verdict  # noqa: E402
from golden.ways import PRESET_OF  # noqa: E402
from recsys.conventions.presets import PRESETS  # noqa: E402

INTRO = """\
# Numbers of other libraries

Nineteen libraries and the code of five design documents (`recsys.cf.evaluation` follows them) were run on
the same thirteen small inputs on 2026-11-15. `python tests/golden/page.py` writes this page from the stored
numbers, and a test checks that it is current. *Reproduced*: the library's preset gives the same number to
5e-7. *Refused*: the number is a defect or another quantity, and ours differs on purpose. *Failures*: the
library raised an error or returned NaN.
"""


def judged() -> list[tuple[Entry, str]]:
    return [(entry, verdict(entry)) for entry in entries()]


def page(rows: list[tuple[Entry, str]]) -> str:
    """The whole page as Markdown."""
    parts = [INTRO, totals(rows), "## Not reproduced, and why\n", reasons(rows), "## Presets\n", presets()]
    return "\n".join(parts)


def label(library: str) -> str:
    """The library as the page names it; results.json has short names for the design documents."""
    return PRESETS[PRESET_OF[library]].library if library.startswith("seed") else library


def totals(rows: list[tuple[Entry, str]]) -> str:
    lines = [
        "| library | version | preset | numbers | reproduced | refused | failures |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for library in [*RESULTS, "all"]:
        mine = [(e, v) for e, v in rows if library in (e.library, "all")]
        count = Counter(v for e, v in mine if e.is_number)
        numbers = sum(count.values())
        share = f"{count['reproduced']} ({count['reproduced'] / numbers:.1%})"
        version = RESULTS[library]["version"] if library != "all" else ""
        name = PRESET_OF.get(library, library) if library != "all" else ""
        failures = sum(not e.is_number for e, _ in mine)
        cells = (label(library), version, name, numbers, share, count["refused"], failures)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def reasons(rows: list[tuple[Entry, str]]) -> str:
    lines = ["| library | case | number | theirs | why |", "|---|---|---|---|---|"]
    for entry, outcome in rows:
        if outcome == "refused":
            theirs = entry.theirs if entry.is_number else str(entry.theirs).split(":")[0]
            case = entry.case.split("_")[0]
            lines.append(f"| {label(entry.library)} | {case} | {entry.key} | {theirs} | {entry.reason} |")
    return "\n".join(lines) + "\n"


def presets() -> str:
    lines = ["| preset | library | version | decisions that differ from ours |", "|---|---|---|---|"]
    lines += [f"| {r.name} | {r.library} | {r.version} | {differences(r.name)} |" for r in PRESETS.values()]
    lines.append("")
    for row in PRESETS.values():
        lines += [f"**{row.name}**", "", *(f"- {note}" for note in row.notes), ""] if row.notes else []
    return "\n".join(lines)


def differences(name: str) -> str:
    conventions = conventions_of(name)
    plain = type(conventions)()
    parts = [f"{d}={mine}" for d, (mine, _) in conventions.diff(plain).items() if d != "per_metric"]
    parts += [
        f"{metric}: " + ", ".join(f"{d}={value}" for d, value in decisions)
        for metric, decisions in conventions.per_metric
    ]
    return "; ".join(parts)


if __name__ == "__main__":
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs" / "parity.md").write_text(page(judged()), "utf-8")
