"""What is known about a result, as records."""

import ast
import pickle
import re
from pathlib import Path
from typing import get_args

import pytest

import recsys
from recsys.display.words import NOTES, merged
from recsys.records.facts import Caution, Kind, Note, Verdict, note

SOURCE = Path(recsys.__file__).parent
NUMBERS = {
    "difference": 0.02, "interval": (0.01, 0.03), "lift": 0.1, "lift_interval": (0.05, 0.15),
    "effect": ("d_z", 0.3), "p": 0.012, "correction": "holm",
}  # fmt: skip
SHOWN = "+10.0% [5.0, 15.0], d_z 0.30, p_holm = 0.012"
MARGIN = {"margin": 0.05, "margin_p": 0.004}
SENTENCES = {
    "better": (NUMBERS, f"better: {SHOWN}"),
    "worse": (NUMBERS, f"worse: {SHOWN}"),
    "higher": (NUMBERS, f"higher: {SHOWN}"),
    "lower": (NUMBERS, f"lower: {SHOWN}"),
    "no_difference": (NUMBERS, f"no clear difference: {SHOWN}"),
    "equivalent": (NUMBERS | MARGIN, f"equivalent: {SHOWN}, within 0.05 by p_holm = 0.004"),
    "no_worse": (NUMBERS | MARGIN, f"not worse: {SHOWN}, by less than 0.05, p_holm = 0.004"),
    "identical": ({"n_units": 30}, "identical in this sample: all 30 units have the same value"),
    "nothing_found": ({"n_units": 30}, "both found nothing: the value is 0 for all 30 units"),
    "undecided": ({}, "undecided"),
    "shown": ({"limit": "1%", "least": "-0.20%"}, "shown to be no worse than 1%: at least -0.20%"),
    "not_shown": ({"limit": None, "least": "-0.20%"}, "not shown that it is better: it may be -0.20%"),
    "passed": ({}, "pass"),
    "failed": ({}, "FAIL"),
    "too_small": ({"needed": 58.2}, "too few users: 59 needed"),
}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_sentence_of_a_verdict_begins_with_its_word(kind):
    numbers, sentence = SENTENCES[kind]
    verdict = Verdict(kind, "ndcg@10", numbers)
    assert str(verdict) == sentence
    assert sentence.startswith(verdict.word)
    assert pickle.loads(pickle.dumps(verdict)) == verdict  # noqa: S301 - our own


def test_verdicts_show_runs_looks_and_experiments_that_are_not_to_be_trusted():
    runs = Verdict("better", "mrr", NUMBERS | {"better_in": 4, "n_runs": 5})
    assert str(runs) == f"better: {SHOWN}, better in 4 of 5 runs"
    look = NUMBERS | {"boundary": 2.5, "z": 2.0, "is_trusted": False}
    words = "not to be trusted (sample ratio); no clear difference"
    assert str(Verdict("no_difference", "mrr", look)) == (
        f"{words}: +10.0% [5.0, 15.0], d_z 0.30, |z| 2.00 against a boundary of 2.50 at this look"
    )
    alone = Verdict("identical", "coverage@10")
    assert str(alone) == "identical in this sample: the value is the same whichever is left out"


def test_a_note_names_its_subject_once():
    plain = note("few_differ_in_runs")
    about = plain.about("hit@1")
    assert (str(plain), str(about)) == (plain.words, f"hit@1: {plain.words}")
    assert about.words == plain.words
    assert {about, Note("few_differ_in_runs", subject="hit@1")} == {about}


def test_notes_that_say_the_same_become_one_line():
    notes = [note("no_spread", "hit"), note("no_spread", "mrr"), note("folds_only"), note("folds_only")]
    spread, folds = notes[0].words, notes[2].words
    assert merged(notes) == [f"hit, mrr: {spread}", folds]
    notes += [note("single_run", name) for name in ("hit", "mrr")]
    assert merged(notes, together=True) == [folds, f"hit, mrr: {spread}; {notes[-1].words}"]


def test_a_note_of_an_unknown_code_is_its_text():
    assert str(note("from_an_old_file", text="as it was {written}")) == "as it was {written}"


def test_every_note_that_is_made_has_a_sentence_and_every_sentence_a_note():
    made = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("note", "caution", "Note"):
                texts = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
                made |= {text for text in texts if text in NOTES} or set(texts[:1])
            if isinstance(node, ast.Constant) and node.value in NOTES and path.name != "words.py":
                made.add(node.value)
    assert made == NOTES.keys()


def test_nobody_reads_the_sentence_of_a_verdict():
    """What depends on a verdict reads its kind: the words may change."""
    parsed = re.compile(r"verdict\w*\)?\.(startswith|split|partition|rpartition|endswith)\(|merge_notes")
    for path in SOURCE.rglob("*.py"):
        assert not parsed.search(path.read_text(encoding="utf-8")), path


def test_a_caution_is_a_note_with_a_page():
    caution = Caution.of("seen_differs", "a leaves out {train}, b does not")
    assert str(caution) == "caution: a leaves out {train}, b does not [seen_differs]"
    about = caution.about("als, bpr")
    assert isinstance(about, Caution)
    assert about.to_dict() == {
        "code": "seen_differs",
        "sentence": "als, bpr: a leaves out {train}, b does not",
        "page": "cautions.md#seen_differs",
    }
    assert {caution, Caution.of(*[*caution.to_dict().values()][:2])} == {caution}
