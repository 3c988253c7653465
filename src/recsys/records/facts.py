"""What is known about a result, as records: notes on it, and the verdicts of comparisons.

They are made where the fact is known and carried as data; `str` of one is its sentence, which
`recsys.display.words` makes of the fields. Read the fields, not the sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recsys.display import words

Kind = Literal[
    "better", "worse", "equivalent", "no_worse", "no_difference", "identical", "nothing_found", "higher",
    "lower", "not_settled", "shown", "not_shown", "passed", "failed",
]  # fmt: skip
Tone = Literal["good", "bad", "neither"]
_TONES: dict[str, Tone] = {
    **dict.fromkeys(("better", "equivalent", "no_worse", "shown", "passed"), "good"),
    **dict.fromkeys(("worse", "not_shown", "failed"), "bad"),
}


@dataclass(frozen=True)
class Note:
    """One fact about a result that its numbers alone do not show.

    Attributes:
        code: what kind of fact it is; `words.NOTES` has the sentence of each.
        values: what the sentence says, by name.
        subject: the metric, model, group or table it is about, None if it is about the whole result.
        warning: the category of the warning that was given with it, None if there was none.

    >>> str(Note("few_units", {"n": 2, "noun": "user", "so": "little"}))
    'only 2 users: an interval means little here'
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    subject: str | None = None
    warning: type[Warning] | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """The sentence without its subject."""
        return words.sentence(self.code, self.values)

    def about(self, subject: str) -> Note:
        """The same note about one metric, model, group or table."""
        return replace(self, subject=subject)

    def __str__(self) -> str:
        return self.sentence if self.subject is None else f"{self.subject}: {self.sentence}"


def note(code: str, subject: str | None = None, /, **values: Any) -> Note:
    """A note that does not warn."""
    return Note(code, values, subject)


@dataclass(frozen=True)
class Verdict:
    """What a comparison says about one metric: what kind of answer it is, and the numbers it rests on.

    >>> verdict = Verdict("identical", "ndcg@10", {"n_units": 300})
    >>> verdict.kind, str(verdict)
    ('identical', 'identical in this sample: all 300 units have the same value')
    """

    kind: Kind
    metric: str
    numbers: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def word(self) -> str:
        """The verdict without its numbers, such as "no clear difference"; its sentence begins with it."""
        return words.verdict_word(self.kind, self.numbers)

    @property
    def tone(self) -> Tone:
        """Whether it is good or bad news for the model."""
        return _TONES.get(self.kind, "neither")

    def __str__(self) -> str:
        return words.verdict(self.kind, self.numbers)
