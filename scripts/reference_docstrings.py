"""For the API reference: examples (`>>> …`) in docstrings are shown as code; mkdocstrings reads Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:\1(?:>>>|\.\.\.|\S).*\n?)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that has one."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = _EXAMPLE.sub(_fence, obj.docstring.value)


def _fence(found: re.Match[str]) -> str:
    margin = found.group(1)
    return f"\n{margin}```pycon\n{found.group().rstrip()}\n{margin}```\n"
