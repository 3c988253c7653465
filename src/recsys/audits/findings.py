"""The result of an audit: findings, each with a message, a count, examples and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recsys.display.number_words import plural
from recsys.display.tabled import Tabled
from recsys.display.text_tables import note_text
from recsys.errors import check_choice
from recsys.records.json_values import json_value

SEVERITIES = ("error", "warning", "info")
"""How bad a finding is, worst first; an error fails the audit."""


@dataclass(frozen=True)
class Finding:
    """One finding. An error makes the audit fail, a warning needs attention, info is worth knowing.

    The audit gives a finding the name and the area of the check that made it.
    """

    severity: str
    message: str
    count: int = 0
    examples: tuple[Any, ...] = ()
    todo: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    area: str = "ids"  # ids, leakage, candidates, sampling or bias
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "severity": self.severity,
            "area": self.area,
            "message": self.message,
            "count": self.count,
            "examples": json_value(self.examples),
            "todo": self.todo,
            "values": json_value(self.values),
        }


class Audit(Tabled, Sequence[Finding]):
    """The findings, most severe first; prints as a report, passes if none is an error.

    `checked` lists the checks that ran; `skipped` is {check: why it did not run}.
    """

    def __init__(
        self,
        findings: Sequence[Finding],
        checked: Sequence[str] = (),
        skipped: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.findings = sorted(findings, key=lambda f: SEVERITIES.index(f.severity))
        self.checked = list(checked)
        self.skipped = dict(skipped or {})
        self.facts = dict(facts or {})

    @property
    def passed(self) -> bool:
        """Whether no finding is an error."""
        return self.passes("error")

    def passes(self, fail_on: str = "error") -> bool:
        """Whether no finding is as severe as `fail_on` (error, warning or info)."""
        check_choice("severity", fail_on, SEVERITIES)
        worst = SEVERITIES.index(fail_on)
        return not any(SEVERITIES.index(f.severity) <= worst for f in self.findings)

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "warning"]

    def __getitem__(self, key: Any) -> Any:
        """A finding by position, or the first one with a name."""
        if not isinstance(key, str):
            return self.findings[key]
        for finding in self.findings:
            if finding.name == key:
                return finding
        raise KeyError(f"nothing was found by {key!r}; the findings are {[f.name for f in self.findings]}.")

    def __contains__(self, key: object) -> bool:
        return any(f is key or f.name == key for f in self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "findings": [f.to_dict() for f in self.findings],
            "checked": self.checked,
            "skipped": self.skipped,
            "facts": json_value(self.facts),
        }

    def _all_columns(self) -> dict[str, list[Any]]:
        names = ("severity", "name", "area", "count", "message", "examples", "todo")
        columns = {name: [getattr(finding, name) for finding in self.findings] for name in names}
        return columns | {"examples": [_format_examples(each) for each in columns["examples"]]}

    def _columns(self) -> dict[str, list[Any]]:
        """The columns for readers: no count where a finding has none."""
        columns = self._all_columns()
        return columns | {"count": [count or "" for count in columns["count"]]}

    def _summary(self) -> str:
        counts = {s: sum(f.severity == s for f in self.findings) for s in SEVERITIES}
        words = ((n, "info|info" if s == "info" else s) for s, n in counts.items() if n)
        totals = ", ".join(plural(n, noun) for n, noun in words)
        verdict = "passed" if self.passed else "failed"
        n_checks = plural(len(self.checked), "check")
        return f"audit {verdict}: {totals or 'nothing found'} ({n_checks})"

    def to_text(self) -> str:
        """The findings as paragraphs, and what was not checked."""
        lines = [self._summary()]
        for f in self.findings:
            lines += ["", f"{f.severity}: {f.name} ({f.area})", _wrap(f.message)]
            lines += [_wrap(f"for example {_format_examples(f.examples)}")] if f.examples else []
            lines += [_wrap("-> " + f.todo)] if f.todo else []
        if self.skipped:
            checks_by_reason: dict[str, list[str]] = {}
            for name, reason in self.skipped.items():
                checks_by_reason.setdefault(reason, []).append(name)
            skipped = (reason + f": {', '.join(names)}" for reason, names in checks_by_reason.items())
            lines += ["", "not checked:", *map(_wrap, skipped)]
        return "\n".join(lines)

    def _footnotes(self) -> list[str]:
        return [self._summary()]


def _format_examples(examples: Sequence[Any]) -> str:
    """Examples in one line; a pair is a user and an item."""
    texts = (
        f"user {e[0]!r} item {e[1]!r}" if isinstance(e, tuple) and len(e) == 2 else str(e) for e in examples
    )
    return "; ".join(texts)


def _wrap(text: str) -> str:
    """Indented lines for a terminal, without control characters."""
    return note_text(text, indent="  ", width=100)
