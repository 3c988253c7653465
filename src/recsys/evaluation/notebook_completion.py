"""Keywords in notebooks: IPython completes what a signature names, and evaluate takes more than that."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

# The innermost call that is still open where the cursor is, and the keyword that begins there.
_OPEN_CALL = re.compile(r"([\w.]+)\((?:[^()]|\([^()]*\))*$")


def complete_in_notebooks() -> None:
    """Let IPython complete the keywords of our functions, where it runs."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    completer = getattr(shell, "Completer", None)
    if completer is None or any(getattr(m, "__name__", "") == "recsys" for m in completer.custom_matchers):
        return

    def matcher(text: str) -> list[str]:
        return [f"{name}=" for name in _keywords(completer) if name.startswith(text)]

    matcher.__name__ = "recsys"
    completer.custom_matchers.append(matcher)


def _keywords(completer: Any) -> tuple[str, ...]:
    """Return the keywords of the function whose call the cursor is in; none if it is not one of ours."""
    call = _OPEN_CALL.search(completer.text_until_cursor)
    if call is None:
        return ()
    first, *names = call.group(1).split(".")
    value = completer.namespace.get(first)
    for name in names:
        value = getattr(value, name, None) if isinstance(value, ModuleType) else None
    keywords = getattr(value, "keywords", ())
    return keywords if isinstance(keywords, tuple) else ()
