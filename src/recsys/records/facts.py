"""What is known about a result, as records: notes on it, and the verdicts of comparisons.

They are made where the fact is known and carried as data; `str` of one is its sentence, which
`recsys.display.words` makes of the fields. Read the fields, not the sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from recsys.display.words import sentence as sentence_of
from recsys.display.words import verdict as verdict_sentence
from recsys.display.words import verdict_word

Kind = Literal[
    "better", "worse", "equivalent", "no_worse", "no_difference", "identical", "nothing_found", "higher",
    "lower", "undecided", "shown", "not_shown", "passed", "failed", "too_small",
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
    def words(self) -> str:
        """The sentence without its subject."""
        return sentence_of(self.code, self.values)

    @property
    def sentence(self) -> str:
        """The sentence, after its subject."""
        return self.words if self.subject is None else f"{self.subject}: " + self.words

    def but(self, **values: Any) -> Self:
        """Return the same note with other values, of those that it has."""
        return replace(self, values={n: values.get(n, value) for n, value in self.values.items()})

    def about(self, subject: str) -> Self:
        """Return the same note about one metric, model, group or table."""
        return replace(self, subject=subject)

    def __str__(self) -> str:
        return self.sentence


class Caution(Note):
    """A note that the numbers may answer another question than was meant; a page explains it.

    >>> caution = Caution.of("k_beyond_lists", "no list is longer than 3")
    >>> str(caution), caution.page
    ('caution: no list is longer than 3 [k_beyond_lists]', 'cautions.md#k_beyond_lists')
    """

    @classmethod
    def of(cls, code: str, text: str) -> Caution:
        """Return the caution of a rule, in the words of the rule."""
        return cls(code, {"text": text})

    @property
    def page(self) -> str:
        """Where the documentation explains it."""
        return f"cautions.md#{self.code}"

    def to_dict(self) -> dict[str, str]:
        """Return code, sentence and page, as files hold them."""
        return {"code": self.code, "sentence": self.sentence, "page": self.page}

    def __str__(self) -> str:
        return "caution: " + self.sentence + f" [{self.code}]"


def note(code: str, subject: str | None = None, /, **values: Any) -> Note:
    """Return a note that does not warn."""
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
        return verdict_word(self.kind, self.numbers)

    @property
    def tone(self) -> Tone:
        """Whether it is good or bad news for the model."""
        return _TONES.get(self.kind, "neither")

    def __str__(self) -> str:
        return verdict_sentence(self.kind, self.numbers)
