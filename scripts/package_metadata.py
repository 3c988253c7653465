"""What a package index shows of the project: the README and the addresses, made when a package is built.

A package index shows the README alone, without the files beside it, so its links and pictures must lead to
the public source tree, and the metadata names the project's addresses there. The tree is where the checkout
was cloned from, or what RECSYS_SOURCE_URL says:

    RECSYS_SOURCE_URL=https://git.example.org/us/recsys pip wheel --no-deps .

Where neither is an address (a clone of a folder), links become plain text and pictures are left out.
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
    source = source_address(os.environ.get("RECSYS_SOURCE_URL"), ROOT / ".git" / "config")
    text = index_readme((ROOT / "README.md").read_text(encoding="utf-8"), source)
    return {"readme": {"text": text, "content-type": "text/markdown"}, "urls": project_urls(source)}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:  # noqa: ARG001
    """Both may differ between a source distribution and a wheel made from it elsewhere."""
    return {"readme": True, "urls": True}


def source_address(named: str | None, git_config: Path) -> str:
    """The address of the public source tree: as named, else where the checkout was cloned from; or none."""
    if named is not None:
        return named.rstrip("/")
    text = git_config.read_text(encoding="utf-8") if git_config.is_file() else ""
    origin = re.search(r'^\[remote "origin"\]\n(?:\s+.*\n)*?\s+url = (\S+)$', text, re.MULTILINE)
    # https://user:secret@host/path.git, ssh://git@host/path.git, git@host:path.git; a secret is never kept
    parts = re.fullmatch(
        r"(?:(?:https|ssh)://(?:[^@/]*@)?|git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", origin[1] if origin else ""
    )
    return f"https://{parts[1]}/{parts[2]}" if parts else ""


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
