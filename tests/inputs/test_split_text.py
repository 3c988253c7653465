"""The two splitters of text agree: Arrow's and that of the csv module, on columns, types and errors."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recsys.errors import InputError, RecsysError
from recsys.inputs.files import read_file, split_text
from recsys.inputs.files.formats import FileContent, ReadOptions
from recsys.inputs.files.reader import read_table
from recsys.inputs.files.split_text import TextColumn, read_text

pa = pytest.importorskip("pyarrow")

HEADERS = {
    "csv": "user,item,score,time",
    "tsv": "user\titem\trating\ttimestamp",
    "inter": "user_id:token\titem_id:token\trating:float\ttimestamp:float",
    "ratings": "1::2::3::881250949",
    "trec": "q 0 d 1",
}
NUMBERS = [
    "0", "1", "-2", "+3", "007", "0.5", ".5", "5.", "1e3", "1E-3", "1e", " 4", "4 ", "1e400", "-1e400",
    "1e-400", "9007199254740993", "9223372036854775808", "99999999999999999999", "0x10", "0X1p3", "1_0",
    "nan", "-NaN", "nan(1)", "inf", "Infinity", "-inf", "\uff11", "\u0661", "1d", "1f", "1,5", "", "high",
    "--1", "True", "2020-01-01", "0.30000000000000004", "4.35", "2.2250738585072011e-308",
]  # fmt: skip
TEXTS = [
    "u", "i", "", " u", "u ", "NA", "null", "\u2028", "\x85", "\x1c", "é", "\ufeff", '"', '"u"', '"u', "#",
]  # fmt: skip
BETWEEN = ["", " ", "# no", "u", ",,,,,", "\ufeff"]
CELLS = st.sampled_from(TEXTS + NUMBERS) | st.text(st.sampled_from('ab1 ,\t;"\r\n#\ufeffé'), max_size=4)


@st.composite
def files(draw):
    """The name of a format, and a file of it: mostly whole rows, some cut short or with lines in between."""
    form = draw(st.sampled_from(sorted(HEADERS)))
    mark = {"csv": ",", "ratings": "::", "trec": " "}.get(form, "\t")
    cells = [
        st.sampled_from(["u", "v", "1"]),
        st.sampled_from(["a", "b", "2"]),
        *[st.sampled_from(NUMBERS)] * 2,
    ]
    odd = draw(st.booleans())
    rows = draw(st.lists(st.tuples(*([CELLS] * 4 if odd else cells)), max_size=6))
    lines = [mark.join(row) for row in rows]
    if odd:
        for between in draw(
            st.lists(st.sampled_from(["", " ", "# no", "u", mark * 5, "\ufeff"]), max_size=2)
        ):
            lines.insert(draw(st.integers(0, len(lines))), between)
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    last = draw(st.sampled_from(["", end, end * 2]))
    return form, end.join([HEADERS[form], *lines]) + last


def outcome(path, form, kind, *, arrow):
    """What a file comes to, read by one splitter: all that a reader can see, or the error."""
    sizes = {"_ARROW_BYTES": 0, "_ARROW_CALL_BYTES": 0} if arrow else {"_import_arrow": lambda _: None}
    with mock.patch.multiple(split_text, **sizes):
        try:
            if kind == "columns":
                table = read_text(FileContent("a", path), form, ReadOptions())
                names = list(dict.fromkeys(table.names))
                return names, [column.texts() for column in table.columns(names)], [*table.rows()]
            if kind == "table":
                frame, roles = read_table(path, format=form)
                return roles, {name: (frame[name].dtype, repr(frame[name].tolist())) for name in frame}
            found = read_file(path, kind, format=form)
        except RecsysError as error:
            return type(error), str(error)
    parts = ("indptr", "codes", "scores", "ranks", "grades", "times", "counts")
    values = {name: getattr(found, name, None) for name in parts}
    shown = {name: None if v is None else (v.dtype, v.tolist()) for name, v in values.items()}
    return found.cases.values.tolist(), found.items.values.tolist(), shown, found.facts


@pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")
@pytest.mark.parametrize("kind", ["columns", "table", "lists", "truth"])
@given(file=files())
@example(file=("csv", "user,item\n\ufeffu,a\n"))
@example(file=("csv", '"user ""x""",item\n\ufeffu,a\n'))
def test_both_splitters_read_the_same(tmp_path_factory, kind, file):
    form, content = file
    path = tmp_path_factory.mktemp("split") / "a.txt"
    path.write_bytes(content.encode())
    assert outcome(path, form, kind, arrow=True) == outcome(path, form, kind, arrow=False)


@pytest.mark.parametrize("arrow", [True, False])
def test_a_cell_may_be_longer_than_the_csv_module_takes(tmp_path, arrow):
    path, long = tmp_path / "a.csv", "x" * 200_000
    path.write_text(f"user,item\nu,{long}\nv,b\n")
    found = outcome(path, "csv", "lists", arrow=arrow)
    assert found[:2] == (["u", "v"], ["b", long])
    path.write_text(f"user,item\nu,{long}\nv\n")
    assert "line 3: 1 columns, expected 2" in outcome(path, "csv", "lists", arrow=arrow)[1]


@pytest.mark.parametrize("cells", [*([each] for each in NUMBERS), ["1", "2"], ["1", "0.5"], ["3", "x"]])
def test_cells_are_the_same_numbers_and_times_packed_or_not(cells):
    plain, packed = TextColumn(cells), TextColumn(pa.chunked_array([cells]))
    assert packed.texts() == packed.packed().to_pylist() == plain.packed().to_pylist() == cells
    assert repr(plain.numbers()) == repr(packed.numbers())
    assert repr(plain.times()) == repr(packed.times())
    assert plain.times().dtype == packed.times().dtype


@pytest.mark.parametrize(("cell", "number"), [("1e3", 1000.0), ("+3", 3.0), ("1_0", None), ("\u0661", None)])
def test_what_is_a_number(cell, number):
    found = TextColumn([cell]).numbers()
    assert found is None if number is None else found.tolist() == [number]


def test_rows_below_the_first_block_keep_their_lines():
    rows = split_text.split_rows(b"user,item\nu\n", "a.csv", "csv", "lists", below_first=True, lines=40)
    with pytest.raises(InputError, match=r"a\.csv, line 42: 1 columns, expected 2"):
        rows.columns(["item"])
    assert np.array_equal(rows.names, ["user", "item"])
