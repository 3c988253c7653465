"""Tables and cards as HTML for notebooks, light or dark; everything in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from recsys.display.cells import Columns, format_cell, is_numeric, printable, verdict_colours
from recsys.display.number_words import plural


def notebook_table(
    columns: Columns, notes: Sequence[object], *, sections: Sequence[str] | None = None
) -> str:
    """Return a table for notebooks, light or dark; everything in it is escaped.

    Only the first of the `sections` and the notes that say what was counted are open, the others fold; notes
    that are records stay open, too.
    """
    right = {name for name, values in columns.items() if is_numeric(values)}
    heads = "".join(_html_cell("th", name, name, right) for name in columns)
    rows = [
        f"<tr>{''.join(_html_cell('td', n, v, right) for n, v in zip(columns, row, strict=True))}</tr>"
        for row in zip(*columns.values(), strict=True)
    ]

    def table(body: Iterable[str]) -> str:
        style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0 0 .5em"
        return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'

    rows_by_section: dict[str, list[int]] = {}
    for number, section in enumerate(sections or [""] * len(rows)):
        rows_by_section.setdefault(section, []).append(number)
    parts = [] if rows_by_section else [table(())]
    for number, (section, own) in enumerate(rows_by_section.items()):
        name, body = html.escape(format_cell(section)), table(rows[row] for row in own)
        if number == 0:
            parts.append((f"<div><b>{name}</b></div>" if name else "") + body)
        else:
            words = html.escape(_outcomes(columns, own))
            parts.append(f"<details><summary><b>{name}</b> {words}</summary>{body}</details>")
    lines = [f"<div><small>{html.escape(printable(str(note)))}</small></div>" for note in notes]
    more = [n for n, note in enumerate(notes) if n > 1 and isinstance(note, str)]
    if len(more) > 2:
        count = plural(len(more), "more note")
        folded = "".join(lines[n] for n in more)
        lines = [line for n, line in enumerate(lines) if n not in more]
        lines.insert(2, f"<details><summary><small>{count}</small></summary>{folded}</details>")
    return f"<div>{''.join(parts)}{''.join(lines)}</div>"


def notebook_card(heading: str, *lines: str) -> str:
    """Return a heading and the lines below it in a frame, for notebooks, light or dark.

    Everything is escaped.
    """
    frame = "border:1px solid rgba(128,128,128,.6);border-radius:6px;padding:.6em 1em;margin:0 0 .8em"
    title, *texts = (html.escape(printable(line)) for line in (heading, *lines))
    below = "".join(f'<div style="margin:.3em 0 0">{text}</div>' for text in texts)
    return f'<div style="{frame}"><b style="font-size:1.3em">{title}</b>{below}</div>'


def _outcomes(columns: Columns, rows: Sequence[int]) -> str:
    """Return the verdicts of these rows in a few words, where there are verdicts."""
    names, verdicts = next(iter(columns.values())), columns.get("verdict", ())
    others = columns.get("baseline")
    lines: list[str] = []
    for row in rows if verdicts else ():
        word = getattr(verdicts[row], "word", None)
        against = "" if others is None else f" against {format_cell(others[row])}"
        lines += [] if word is None else [f"{format_cell(names[row])}{against} {word}"]
    return ", ".join(lines)


def _html_cell(tag: str, column: str, value: Any, right: set[str]) -> str:
    """Return a cell of a table in a notebook: numbers to the right, a verdict in its colour."""
    cell = html.escape(format_cell(value))
    style = f"text-align:{'right' if column in right else 'left'};padding:.15em .8em;border:0;background:none"
    if tag == "th":
        style += ";border-bottom:1px solid rgba(128,128,128,.6)"
    elif (colours := verdict_colours(column, value)) is not None:
        word = html.escape(getattr(value, "word", str(value)))
        cell = f'<b style="color:{colours.page}">{word}</b>{cell[len(word) :]}'
    elif column == "95% interval":
        style += ";white-space:nowrap;opacity:.75"
    return f'<{tag} style="{style}">{cell}</{tag}>'
