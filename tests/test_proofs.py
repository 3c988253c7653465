"""What the long proofs of scripts/ rest on: kept pieces, and arguments that fit the mutants they speak of."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield
    for name in ("mutants", "measured_tests", "proofs"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("scripts")
def test_each_argument_for_equivalence_speaks_of_the_mutants_it_says():
    import mutants

    stated = mutants.equivalents()
    found = Counter(
        mutants.identity(mutant)
        for module in {module for module, *_ in stated}
        for mutant in mutants.mutants_of(module)
    )
    assert {identity: found[identity] for identity in stated} == stated


@pytest.mark.usefixtures("scripts")
def test_a_piece_that_a_kill_has_cut_is_left_out_and_the_next_is_whole(tmp_path):
    import proofs

    path, source = tmp_path / "kept" / "pieces.jsonl", tmp_path / "source.py"
    source.write_text("1")
    proofs.ROOT, proofs.LOCK = tmp_path, source
    proofs.Finished(path, [source]).add({"piece": "one", "n": 1})
    with path.open("a") as file:
        file.write('{"piece": "two", "n"')
    again = proofs.Finished(path, [source])
    assert list(again.done) == ["one"]
    again.add({"piece": "three"})
    assert [piece["piece"] for piece in proofs.read_lines(path)] == ["one", "three"]
    source.write_text("2")
    assert proofs.Finished(path, [source]).done == {}


@pytest.mark.usefixtures("scripts")
def test_a_section_goes_between_its_marks_and_nowhere_else(tmp_path):
    import proofs

    proofs.PAGE = tmp_path / "page.md"
    proofs.PAGE.write_text("a\n<!-- load: written by scripts/load.py -->\nold\n<!-- end of load -->\nb\n")
    proofs.write_section("load", "new")
    text = proofs.PAGE.read_text()
    assert text == "a\n<!-- load: written by scripts/load.py -->\n\nnew\n\n<!-- end of load -->\nb\n"
    with pytest.raises(SystemExit, match=r"page\.md has no place"):
        proofs.write_section("fuzz", "new")
