"""Every file comes to the same in memory and with memory=: the same values and ids, or the same error."""

from __future__ import annotations

import pandas as pd
import pytest

import recsys
from recsys.errors import FileError, IdTypeError
from recsys.inputs.files import text
from worlds.table_files import CASES, put, read_alike

pytest.importorskip("duckdb")
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")
TRUTH = pd.DataFrame({"user": ["1"], "item": ["a"]})
TYPED_ONLY = [case for case in CASES if case.endswith(".parquet")]


@pytest.mark.parametrize(("kind", "ids"), [("lists", "auto"), ("truth", "auto"), ("lists", "int")])
@pytest.mark.parametrize("case", CASES)
def test_a_file_is_read_alike(tmp_path, case, kind, ids):
    inside, beyond = read_alike(put(tmp_path, case), kind, ids=ids)
    assert beyond == inside


@pytest.mark.parametrize("case", [case for case in CASES if case not in TYPED_ONLY])
def test_text_is_read_alike_some_bytes_at_a_time(tmp_path, monkeypatch, case):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 17)
    path = put(tmp_path, case)
    for kind in ("lists", "truth"):
        inside, beyond = read_alike(path, kind)
        assert beyond == inside


def test_the_line_of_a_fault_is_found_in_a_later_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 17)
    rows = "".join(f"{user},a,0.5\n" for user in range(50))
    for wrong, words in (("7,b,high", "the score 'high'"), ("7,b", "2 columns"), ("7,,1", "the item id")):
        for form in ("\n", "\r\n"):
            (tmp_path / "a.csv").write_bytes(
                f"user,item,score\n\n{rows}{wrong}\n".replace("\n", form).encode()
            )
            with pytest.raises(FileError, match=rf"a\.csv, line 53: {words}"):
                recsys.evaluate(str(tmp_path / "a.csv"), TRUTH, ["mrr"], memory="64GB")
    (tmp_path / "a.csv").write_bytes(f"user,item,score\n{rows}".encode() + b"7,\xe9,1\n")
    with pytest.raises(FileError, match=rf"line 52: byte {16 + len(rows) + 2} \(0xe9\) is not utf-8"):
        recsys.evaluate(str(tmp_path / "a.csv"), TRUTH, ["mrr"], memory="64GB")


def test_ids_that_become_equal_as_numbers_are_found_beyond_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 17)
    rows = "".join(f"{user},{user},1\n" for user in range(20))
    (tmp_path / "a.csv").write_text(f"user,item,score\n{rows}30,007,1\n")
    with pytest.raises(IdTypeError, match="two are the same whole number"):
        recsys.evaluate(
            str(tmp_path / "a.csv"), TRUTH.astype({"user": int}), ["mrr"], ids="int", memory="64GB"
        )
