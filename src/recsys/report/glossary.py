"""The words of a report that not every reader knows, each with one plain sentence.

The registry of metrics defines the metrics; the words of statistics and of this page are defined here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recsys.metrics.registry import Request

WORDS: dict[str, str] = {
    "interval": "The values or differences that are plausible, given how much users differ.",
    "simultaneous": "Of intervals that are all right together in 95 of 100 tests, so that the largest or the "
    "smallest may be picked out.",
    "p": "How often chance alone would make a difference this large, if the two models were equally good.",
    "adjusted p": "p after the correction for the number of comparisons: below 0.05 it counts as clear.",
    "Holm": "A correction of p-values that keeps false alarms rare over all comparisons of a family at once.",
    "max-T": "A correction of p-values over a family that uses how strongly its comparisons go together.",
    "d_z": "The difference per user over its spread between users: 0.2 is small, 0.5 medium, 0.8 large.",
    "lift": "The difference as a share of the baseline's value: +50% is half as much again.",
    "baseline": "The model the others are held against, usually what runs today or something very simple.",
    "tie": "No test separates the two models: with these users either could be the better one.",
    "won / tied / lost": "How many users the model serves better than the baseline, as well, and worse.",
    "cut-off": "Only the first k places of a list count: ndcg@10 looks at ten.",
    "head": "The most popular fifth of the items in training; equally popular items stay together.",
    "tail": "All items in training that are not in the head.",
    "cold": "Without any history in training.",
    "beyond accuracy": "What the lists are like, relevant or not. More coverage, novelty or variety is not "
    "better in itself: random lists have most of it.",
    "bits": "The unit of novelty: one bit more means that the items shown are known to half as many users.",
    "conventions: default": "The decisions behind the numbers, such as what a user without a list counts "
    "for; all of them are listed under Conventions.",
    "audit": "A check of data and protocol for what makes such numbers wrong: leaks, ties, a weak baseline.",
    "caution": "A sign that a number may answer another question than was meant.",
    "secondary": "Of the metrics that do not decide: their comparisons are corrected together, apart from "
    "those of the headline metric, which they never change.",
}
_IN_PROSE = re.compile(
    r"\b(Holm|max-T|d_z|bits|p(?=[\s\u00a0][<=>≥])|secondary|simultaneous|95% interval|beyond accuracy)"
)
_SAME = {"95% interval": "interval", "low": "interval", "high": "interval"}


@dataclass(frozen=True)
class Entry:
    """A word of the glossary: its anchor on the page, the word and what it means."""

    anchor: str
    word: str
    meaning: str


class Glossary:
    """The entries of a page, and links to them."""

    def __init__(self, requests: Mapping[str, Request] | None = None) -> None:
        meanings = {
            r.metric.name: (str(r).partition("@")[0], r.metric.meaning) for r in (requests or {}).values()
        }
        words = [*dict.fromkeys(meanings.values()), *WORDS.items()]
        self.entries = [Entry(f"word-{n}", word, meaning) for n, (word, meaning) in enumerate(words)]
        self._by_word = {entry.word: entry for entry in self.entries}
        for name, request in (requests or {}).items():
            self._by_word[name] = self._by_word[meanings[request.metric.name][0]]

    def entry(self, word: str) -> Entry | None:
        """Return the entry of a word, of a metric at any cut-off, or of a heading that means the same."""
        same = "lift" if word.startswith("lift over ") else _SAME.get(word, "")
        return self._by_word.get(word) or self._by_word.get(same)

    def linked(self, text: str) -> Any:
        """Return a text whose words of statistics are links to their entries; everything else is escaped."""
        from markupsafe import Markup, escape

        parts: Iterable[str] = _IN_PROSE.split(text)
        made = Markup()
        for number, part in enumerate(parts):
            entry = self.entry(part) if number % 2 else None
            made += escape(part) if entry is None else self.link(entry, part)
        return made

    def link(self, entry: Entry, text: str) -> Any:
        """Return a link to an entry that shows what it says when it is pointed at."""
        from markupsafe import Markup

        return Markup('<a class="term" href="#{}" title="{}">{}</a>').format(
            entry.anchor, entry.meaning, text
        )
