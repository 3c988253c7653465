"""Tables as Markdown and LaTeX; in a cell nothing is either."""

from __future__ import annotations

import re
from typing import Any

from recsys.display.cells import Columns, format_cell, is_numeric

_LINKED = re.compile(
    r"(?<!\w)@(?!\d+(?![\w-]))(?=\w)|@(?=[\w-]+\.[a-z])|:(?=//)|www(?=\.)|\b(?:mailto|xmpp):", re.IGNORECASE
)
_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", **{char: f"\\{char}" for char in "&%$#_{}"},
}  # fmt: skip


def markdown_table(columns: Columns) -> str:
    """Return a pipe table."""
    rule = ["---:" if is_numeric(v) else "---" for v in columns.values()]
    head, *body = ([markdown_text(v) for v in row] for row in (columns, *zip(*columns.values(), strict=True)))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def markdown_text(value: Any) -> str:
    r"""Return a cell in which nothing is Markdown: no emphasis, link, image, code, HTML or mention.

    >>> print(markdown_text("![x](a.b)"), markdown_text("item_knn"), markdown_text("ndcg@10"))
    \!\[x\](a.b) item\_knn ndcg@10
    >>> markdown_text("@everyone https://a.b")
    '@\u200beveryone https:\u200b//a.b'
    """
    # No escape keeps the sites that show Markdown from linking these; a space without width does.
    text = _LINKED.sub(lambda found: f"{found[0]}\u200b", format_cell(value))
    return re.sub(r"([|\\`*_<!\[\]])", r"\\\1", text)


def latex_table(columns: Columns) -> str:
    """Return a booktabs tabular."""
    spec = "".join("r" if is_numeric(v) else "l" for v in columns.values())
    lines = [" & ".join(latex_text(format_cell(n)) for n in columns) + r" \\", r"\midrule"]
    lines += [
        " & ".join(latex_text(format_cell(v)) for v in row) + r" \\"
        for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join([rf"\begin{{tabular}}{{{spec}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"])


def latex_text(cell: str) -> str:
    """Return a text in which nothing is LaTeX."""
    return "".join(_TEX.get(char, char) for char in cell)
