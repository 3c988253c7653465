"""What a package index shows of the project: the README and the addresses, made when a package is built.

A package index shows the README alone, without the files beside it. With RECSYS_SOURCE_URL, the address of
the public source tree, links and pictures lead there and the metadata names the project's addresses:

    RECSYS_SOURCE_URL=https://git.example.org/us/recsys pip wheel --no-deps .

Without it nothing is known of an address: links become plain text and pictures are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """The fields `readme` and `urls` of [project]; called by the build backend."""
    source = os.environ.get("RECSYS_SOURCE_URL", "").rstrip("/")
    text = index_readme((ROOT / "README.md").read_text(encoding="utf-8"), source)
    return {"readme": {"text": text, "content-type": "text/markdown"}, "urls": project_urls(source)}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:  # noqa: ARG001
    """Both may differ between a source distribution and a wheel made from it elsewhere."""
    return {"readme": True, "urls": True}


def project_urls(source: str) -> dict[str, str]:
    """The addresses of the project, below that of its source tree; none if it is not known."""
    if not source:
        return {}
    return {
        "Homepage": source,
        "Documentation": f"{source}/blob/HEAD/docs/index.md",
        "Source": source,
        "Changelog": f"{source}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{source}/issues",
    }


def index_readme(text: str, source: str) -> str:
    """The README with links that lead somewhere from any page."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.group("picture", "text", "path")
        if not source:
            return "" if picture else words
        return f"{picture}[{words}]({source}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return _LINK.sub(link, text)
