"""Words that a native engineer would not write, in the sources, the pages and the README: at most how often.

python scripts/english.py          prints how often each occurs; house.py --check fails above a ceiling
python scripts/english.py WORD     prints where a word of the table below occurs
python scripts/english.py --lower  lowers the ceilings to today's counts; nothing raises them

To lower a count, read the sentence and write another: exchanging the word rarely makes a better one. Pages
that scripts write are not counted, for their text is in the sources.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyi", ".cpp", ".hpp", ".html", ".js", ".md"}
GENERATED = "<!-- Written by scripts/write_docs.py"
NOT_THERE = r"(?<![Tt]here )\b(?:is|are|was|were|be)"  # "there is no list" is good English
# What to write instead depends on the sentence; these are for a start.
WORDS = {
    "is no": (NOT_THERE + r" no\b(?! (?:longer|more|less|better|worse|fewer)\b)", "is not a"),
    "is none": (NOT_THERE + r" none\b", "is not one"),
    "told": (r"\btold\b", "given, known, distinguished"),
    "said": (r"\bsaid\b", "reported, stated"),
    "settle": (r"\bsettle[sd]?\b", "decide, break (ties)"),
    "in words": (r"(?<!word )(?<!not )\bin words\b(?!\.\w|\)|:)", "as text, in sentences"),
    "nobody": (r"\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever)\b", "no user, anyone who"),
    "beside": (r"\b[Bb]eside\b", "next to, in addition to"),
    "mend": (r"\b[Mm]end(?:s|ed|ing)?\b", "fix"),
    "lie": (r"\b(?:lies?|lay)\b(?! (?:between|within|in|inside|outside|above|below)\b)", "is, is stored"),
    "stand": (r"\b(?:stands?|stood)\b(?!-| (?:for|alone|in for|out)\b)", "is, is written"),
    "alike": (r"\balike\b", "equal, the same, both"),
}
CEILINGS = {
    "is no": 0,
    "is none": 0,
    "told": 0,
    "said": 0,
    "settle": 0,
    "in words": 0,
    "nobody": 6,
    "beside": 0,
    "mend": 0,
    "lie": 0,
    "stand": 0,
    "alike": 0,
}


def places(word: str, text: str) -> Iterator[int]:
    """Where a word of the table occurs in a text, also if it is broken over two lines of a comment."""
    pattern = WORDS[word][0].replace(" no", r"\s+(?:(?:#|//)\s+)?no")
    return (match.start() for match in re.finditer(pattern, text))


def texts() -> Iterator[tuple[Path, str]]:
    """Every file that people write below src and docs, the README, and what writes the other pages."""
    single = (ROOT / "README.md", ROOT / "scripts" / "write_docs.py")
    for path in (*single, *(ROOT / "src").rglob("*"), *(ROOT / "docs").rglob("*")):
        if path.suffix in SUFFIXES:
            text = path.read_text(encoding="utf-8")
            if path.suffix != ".md" or GENERATED not in text:
                yield path.relative_to(ROOT), text


def counted() -> dict[str, int]:
    """{word: how often it occurs}."""
    written = [text for _, text in texts()]
    return {word: sum(len(list(places(word, text))) for text in written) for word in WORDS}


def above_ceilings() -> list[str]:
    """A line for each word that occurs more often than it may, with what to write instead."""
    return [
        f'the word "{word}" occurs {count} times, at most {CEILINGS[word]} may stay: write another sentence '
        f'({WORDS[word][1]}); python scripts/english.py "{word}" shows where'
        for word, count in counted().items()
        if count > CEILINGS[word]
    ]


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in WORDS:
        for path, text in texts():
            for start in places(arguments[0], text):
                line = text.count("\n", 0, start)
                print(f"{path}:{line + 1}: {text.splitlines()[line].strip()}")
        return 0
    counts = counted()
    if "--lower" in arguments:
        own = Path(__file__)
        lowered = own.read_text(encoding="utf-8")
        for word, ceiling in CEILINGS.items():
            lowered = lowered.replace(f'"{word}": {ceiling},', f'"{word}": {min(counts[word], ceiling)},')
        own.write_text(lowered, encoding="utf-8")
        return 0
    for word, count in counts.items():
        print(f"{word:10}{count:5} of at most {CEILINGS[word]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
