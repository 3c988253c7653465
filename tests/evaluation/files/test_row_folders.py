"""Folders of values per user: what was written comes back, however it was cut; damage and kills are met."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from recsys.errors import ColumnError, FileError, IdTypeError, InputError, MissingExtraError
from recsys.evaluation.files import row_folders
from recsys.evaluation.files.row_folders import Piece, RowFolder, RowWriter
from recsys.evaluation.files.rows_in_step import rows_in_step
from recsys.inputs.files import atomic_folder
from recsys.records.arrays import PerCase

few = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
floats = st.floats(allow_nan=True, width=64) | st.sampled_from([0.0, -0.0, 1.0, 0.5, np.nan, np.inf])
ids_of = {
    "int": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 40),
    "str": st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text("ab", max_size=3),
}


def as_ids(values):
    is_int = all(isinstance(value, int) for value in values)
    out = np.empty(len(values), dtype=np.int64 if is_int and values else object)
    out[:] = values
    return out


@st.composite
def tables(draw, min_rows=1):
    """Any rows: ids of one kind, any floats; with or without clusters, weights, terms, keys."""
    kind = draw(st.sampled_from(["int", "str"]))
    ids = as_ids(sorted(draw(st.sets(ids_of[kind], min_size=min_rows, max_size=25))))
    n = len(ids)

    def column():
        return np.array(draw(st.lists(floats, min_size=n, max_size=n)))

    def maybe(value):
        return value() if draw(st.booleans()) else None

    users = ids_of[draw(st.sampled_from(["int", "str"]))]
    clusters = maybe(lambda: as_ids(draw(st.lists(users, min_size=n, max_size=n))))
    columns = {name: column() for name in draw(st.sampled_from([[], ["mrr"], ["rbp(p=0.8)@10", "f1@10"]]))}
    terms = {name: (column(), column()) for name in columns if name == "f1@10"}
    keys = maybe(
        lambda: np.array(draw(st.lists(st.integers(0, 2**64 - 1), min_size=n, max_size=n)), np.uint64)
    )
    return Piece(PerCase(ids, columns, clusters, maybe(column)), terms, keys)


@st.composite
def cuts(draw, n):
    """The rows of each piece: ranges or any deal, in any order; some are empty."""
    n_pieces = draw(st.integers(1, 5))
    owner = np.array(draw(st.lists(st.integers(0, n_pieces - 1), min_size=n, max_size=n)), dtype=np.int64)
    if draw(st.booleans()):
        owner.sort()
    return [np.flatnonzero(owner == piece) for piece in draw(st.permutations(range(n_pieces)))]


def write(folder, table, pieces=None, manifest=None):
    with RowWriter(folder) as writer:
        for which in [np.arange(len(table.rows))] if pieces is None else pieces:
            writer.write(*table.take(which))
        return writer.close(manifest or {})


def same_bits(a, b):
    if a is None or b is None:
        return a is b
    if a.dtype == object:
        return b.dtype == object and a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def in_another_process(value):
    """What arrives there."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def assert_same(a, b):
    assert same_bits(a.rows.ids, b.rows.ids)
    assert same_bits(a.rows.clusters, b.rows.clusters)
    assert same_bits(a.rows.weights, b.rows.weights)
    assert list(a.rows.columns) == list(b.rows.columns)
    assert list(a.terms) == list(b.terms)
    assert all(same_bits(a.rows.columns[name], b.rows.columns[name]) for name in a.rows.columns)
    assert all(same_bits(x, y) for name in a.terms for x, y in zip(a.terms[name], b.terms[name], strict=True))
    assert same_bits(a.truth_keys, b.truth_keys)


def joined(pieces):
    """One piece of several, in ascending order of ids."""
    pieces = list(pieces)

    def both(get):
        arrays = [get(piece) for piece in pieces]
        return None if arrays[0] is None else np.concatenate(arrays)

    rows = PerCase(
        both(lambda p: p.rows.ids),
        {name: both(lambda p, name=name: p.rows.columns[name]) for name in pieces[0].rows.columns},
        both(lambda p: p.rows.clusters),
        both(lambda p: p.rows.weights),
    )
    terms = {
        name: tuple(both(lambda p, name=name, at=at: p.terms[name][at]) for at in (0, 1))
        for name in pieces[0].terms
    }
    whole = Piece(rows, terms, both(lambda p: p.truth_keys))
    return whole.take(np.argsort(rows.ids, kind="stable"))


@pytest.fixture
def quick_disk(monkeypatch):
    """Hundreds of folders need not be safe from a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture
def small_memory(monkeypatch):
    """Dealt pieces of more than 6 rows are sorted in ranges of about 4."""
    monkeypatch.setattr(row_folders, "_ROWS_IN_MEMORY", 6)
    monkeypatch.setattr(row_folders, "_ROWS_OF_RANGE", 4)
    monkeypatch.setattr(row_folders, "_SAMPLED_ROWS", 2)


@few
@pytest.mark.usefixtures("quick_disk")
@given(data=st.data(), table=tables())
def test_what_was_written_comes_back_however_it_was_cut(tmp_path, small_memory, data, table):
    first = write(tmp_path / "a", table, manifest={"result": {"by": None}})
    assert first.manifest["result"] == {"by": None}
    pieces = data.draw(cuts(len(table.rows)))
    folder = write(tmp_path / "b", table, pieces)
    assert folder.manifest["content"] == first.manifest["content"]
    folder.check()
    lazy = folder.rows()
    assert len(folder) == len(lazy) == len(table.rows)
    assert_same(Piece(lazy, folder.terms, folder.truth_keys), table)
    rows = data.draw(st.integers(1, 9))
    read = list(folder.pieces(rows=rows))
    assert all(len(piece.rows) <= rows for piece in read)
    assert_same(joined(read), table)
    in_order = list(folder.ascending_pieces(rows=rows))
    assert np.concatenate([piece.rows.ids for piece in in_order]).tolist() == table.rows.ids.tolist()
    assert_same(joined(in_order), table)
    edges = [table.rows.ids[which] for which in pieces if len(which)]
    edges.sort(key=lambda ids: ids[0])
    assert folder.is_sorted == all(a[-1] < b[0] for a, b in pairwise(edges))


def changes_of(table, data):
    """One change of one cell, or values exchanged between two users."""
    n = len(table.rows)
    at = data.draw(st.integers(0, n - 1))
    floats_of = {
        **table.rows.columns,
        **{f"{m}|{i}": t for m, both in table.terms.items() for i, t in enumerate(both)},
    }
    if table.rows.weights is not None:
        floats_of["weight"] = table.rows.weights
    if table.truth_keys is not None:
        floats_of["truth"] = table.truth_keys
    kind = data.draw(st.sampled_from(["id", "row", "cluster", *["bit", "swap"] * bool(floats_of)]))
    if kind == "row":
        assume(n > 1)
        return table.take(np.delete(np.arange(n), at))
    if kind in ("id", "cluster"):
        old = table.rows.ids if kind == "id" else table.rows.clusters
        assume(old is not None)
        new = old.copy()
        new[at] = data.draw(ids_of["str" if new.dtype == object else "int"])
        assume(new[at] != old[at] and (kind == "cluster" or len(set(new.tolist())) == n))
        changed = dataclasses.replace(table.rows, **{"cases" if kind == "id" else "clusters": new})
        return table._replace(rows=changed).take(np.argsort(changed.ids, kind="stable"))
    name = data.draw(st.sampled_from(sorted(floats_of)))
    old = floats_of[name]
    new = old.copy()
    if kind == "swap":
        other = data.draw(st.integers(0, n - 1))
        new[[at, other]] = new[[other, at]]
    else:
        new.view(np.uint64)[at] ^= np.uint64(1) << np.uint64(data.draw(st.integers(0, 63)))
    differs = old.view(np.uint64) != new.view(np.uint64)
    if old.dtype == np.float64:
        differs &= ~(np.isnan(old) & np.isnan(new))
    assume(differs.any())
    if name == "weight":
        return table._replace(rows=dataclasses.replace(table.rows, weights=new))
    if name == "truth":
        return table._replace(truth_keys=new)
    if name in table.rows.columns:
        columns = {**table.rows.columns, name: new}
        return table._replace(rows=dataclasses.replace(table.rows, columns=columns))
    metric, term = name.split("|")
    both = [new if i == int(term) else t for i, t in enumerate(table.terms[metric])]
    return table._replace(terms={**table.terms, metric: tuple(both)})


@settings(few, max_examples=150)
@pytest.mark.usefixtures("quick_disk")
@given(data=st.data(), table=tables())
def test_any_change_of_content_changes_the_hash(tmp_path, data, table):
    changed = changes_of(table, data)
    before, after = write(tmp_path / "a", table), write(tmp_path / "b", changed)
    assert before.manifest["content"] != after.manifest["content"]


def test_the_hash_is_of_content_names_and_kinds(tmp_path):
    def content(ids, **columns):
        table = PerCase(as_ids(ids), {name: np.array(values) for name, values in columns.items()})
        return write(tmp_path / "f", Piece(table, {}, None)).manifest["content"]

    plain = content([1, 2], a=[0.0, 1.0], b=[2.0, 3.0])
    assert plain == content([1, 2], b=[2.0, 3.0], a=[0.0, 1.0])
    others = [
        content([1, 2], a=[-0.0, 1.0], b=[2.0, 3.0]),
        content([1, 2], b=[0.0, 1.0], a=[2.0, 3.0]),
        content([1, 2], a=[0.0, 1.0], c=[2.0, 3.0]),
        content(["1", "2"], a=[0.0, 1.0], b=[2.0, 3.0]),
    ]
    assert len({plain, *others}) == 5
    payload = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    assert content([1], a=[np.nan]) == content([1], a=[payload]) == content([1], a=[-np.nan])
    # Text that differs only in zero bytes or in where one id ends.
    assert (
        len({content(ids) for ids in (["a"], ["a\0"], ["a", "aa"], ["", "aaa"], ["aaaaaaaa"], ["aaaaaaaab"])})
        == 6
    )


def mix(word):
    word = (word + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


@few
@pytest.mark.usefixtures("quick_disk")
@given(st.dictionaries(ids_of["str"], floats, min_size=1, max_size=9))
def test_the_hash_is_that_of_the_plain_formula(tmp_path, values):
    ids = as_ids(sorted(values))
    column = np.array([values[name] for name in ids.tolist()])
    folder = write(tmp_path / "f", Piece(PerCase(ids, {"a": column}), {}, None))
    sums = []
    for start in (0x6A09E667F3BCC908, 0xBB67AE8584CAA73B):
        total = 0
        for name, value in values.items():
            text = name.encode()
            word = mix(len(text) + start)
            for at in range(0, len(text), 8):
                word = mix((word + int.from_bytes(text[at : at + 8], "little")) % 2**64)
            bits = int(np.float64(np.nan if np.isnan(value) else value).view(np.uint64))
            total += mix((mix((start + bits) % 2**64) + word) % 2**64)
        sums.append(f"{total % 2**64:016x}")
    assert folder.manifest["pieces"][0]["content"] == "".join(sums)


@few
@pytest.mark.usefixtures("quick_disk")
@given(data=st.data(), first=tables(), second=tables())
def test_folders_go_side_by_side_through_the_same_ranges(tmp_path, small_memory, data, first, second):
    assume(first.rows.ids.dtype == second.rows.ids.dtype)
    written = {"a": first, "b": second, "c": first.take(slice(1))}
    folders = {
        name: write(tmp_path / name, table, data.draw(cuts(len(table.rows))))
        for name, table in written.items()
    }
    rows = data.draw(st.integers(1, 9))
    ranges = list(rows_in_step(folders, rows=rows))
    for name, table in written.items():
        pieces = [found[name] for found in ranges]
        assert all(len(piece.rows) <= rows for piece in pieces)
        assert np.concatenate([piece.rows.ids for piece in pieces]).tolist() == table.rows.ids.tolist()
        assert_same(joined(pieces), table)
    for before, after in pairwise(ranges):
        last = max(piece.rows.ids[-1] for piece in before.values() if len(piece.rows))
        assert all(piece.rows.ids[0] > last for piece in after.values() if len(piece.rows))


def table_of(n=20, seed=0, start=0, name="mrr"):
    values = np.random.default_rng(seed).random(n)
    return Piece(PerCase(np.arange(start, start + n), {name: values}), {}, None)


HALVES = [np.arange(10), np.arange(10, 20)]


def test_columns_are_read_when_they_are_used_and_once(tmp_path, monkeypatch):
    table = table_of()
    terms = {"f1": (np.ones(20), np.zeros(20))}
    rows = dataclasses.replace(
        table.rows, columns={**table.rows.columns, "f1": np.ones(20)}, weights=np.ones(20)
    )
    folder = write(tmp_path / "f", Piece(rows, terms, None))
    read = []
    batches = RowFolder._batches
    monkeypatch.setattr(
        RowFolder,
        "_batches",
        lambda self, piece, names, n: read.append(names) or batches(self, piece, names, n),
    )
    lazy = folder.rows()
    assert isinstance(lazy, PerCase)
    assert (len(lazy), list(lazy.columns), "mrr" in lazy.columns, list(folder.terms)) == (
        20,
        ["mrr", "f1"],
        True,
        ["f1"],
    )
    assert "20 rows: mrr, f1" in repr(lazy)
    assert lazy.clusters is None
    assert read == []
    assert lazy.columns["mrr"] is lazy.columns["mrr"]
    assert lazy.ids is lazy.ids
    assert folder.terms["f1"] is folder.terms["f1"]
    assert read == [["mrr"], ["user"], ["f1|first"], ["f1|second"]]
    changed = dataclasses.replace(lazy, cases=lazy.ids + 1)
    assert (changed.ids[0], len(changed), changed.columns is lazy.columns) == (1, 20, True)
    assert same_bits(in_another_process(lazy).weights, rows.weights)
    assert list(folder.rows(["f1"]).columns) == ["f1"]
    assert [*next(folder.pieces(["mrr"])).terms] == []
    with pytest.raises(ColumnError, match=r"has no metric 'map'\. It has: mrr, f1\."):
        folder.rows(["map"])
    with pytest.raises(KeyError):
        folder.rows(["f1"]).columns["mrr"]


def test_other_tools_read_the_files_as_they_are(tmp_path):
    rows = PerCase(as_ids(["a", "b"]), {"ndcg@10": np.array([0.5, np.nan])}, as_ids([7, 7]), np.ones(2))
    write(tmp_path / "f", Piece(rows, {"f1": (np.ones(2), np.ones(2))}, np.array([1, 2**64 - 1], np.uint64)))
    file = pq.ParquetFile(tmp_path / "f" / "part-00000.parquet")
    assert file.schema_arrow.names == ["case", "user", "weight", "ndcg@10", "f1|first", "f1|second", "truth"]
    first = file.metadata.row_group(0)
    assert {first.column(at).compression for at in range(7)} == {"ZSTD"}
    assert (first.column(0).statistics.min, first.column(0).statistics.max) == ("a", "b")
    assert file.read().column("truth").to_pylist() == [1, 2**64 - 1]


def edit(change):
    def damage(folder):
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    return damage


def swap(folder):
    (folder / "part-00000.parquet").rename(folder / "x")
    (folder / "part-00001.parquet").rename(folder / "part-00000.parquet")
    (folder / "x").rename(folder / "part-00001.parquet")


def other_model(folder):
    """The same users and columns, other values."""
    write(folder.parent / "other", table_of(seed=1), HALVES)
    (folder.parent / "other" / "part-00001.parquet").replace(folder / "part-00001.parquet")


def flip(at):
    def damage(folder):
        path = folder / "part-00001.parquet"
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return damage


def without_tag(folder):
    """The right users, columns and length, made by another program."""
    path = folder / "part-00001.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


def without_ids(folder):
    path = folder / "part-00001.parquet"
    pq.write_table(pq.read_table(path).select(["mrr"]), path)


def other_lengths(manifest):
    manifest["pieces"][0]["rows"], manifest["pieces"][1]["rows"] = 9, 11


def with_a_forged_tag(folder):
    path = folder / "part-00001.parquet"
    table = pq.read_table(path)
    values = table.column("mrr").to_numpy().copy()
    values[[0, 1]] = values[[1, 0]]
    pq.write_table(table.set_column(1, "mrr", [values]), path)


DAMAGE = {
    "missing": (lambda f: (f / "part-00001.parquet").unlink(), "part-00001.parquet is missing"),
    "extra": (lambda f: (f / "part-00002.parquet").touch(), "holds part-00002.parquet, which its manifest"),
    "swapped": (swap, "belongs to another result"),
    "of another model": (other_model, "belongs to another result"),
    "rewritten": (without_tag, "belongs to another result"),
    "forged": (with_a_forged_tag, "holds other rows"),
    "other columns": (without_ids, "other columns"),
    "cut off": (lambda f: os.truncate(f / "part-00001.parquet", 100), "damaged or cannot be read"),
    "emptied": (lambda f: os.truncate(f / "part-00001.parquet", 0), "damaged or cannot be read"),
    "a flipped bit of ids": (flip(20), "damaged or cannot be read"),
    "a flipped bit of the last byte": (flip(-1), "damaged or cannot be read"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json cannot be read"),
    "no JSON": (lambda f: (f / "manifest.json").write_text("{"), "not a manifest of values per user"),
    "a list": (lambda f: (f / "manifest.json").write_text("[]"), "not a manifest of values per user"),
    "no UTF-8": (lambda f: (f / "manifest.json").write_bytes(b"\xff"), "manifest.json cannot be read"),
    "another format": (edit(lambda m: m.update(schema=3)), "format 3; this version of recsys reads format 2"),
    "another kind": (edit(lambda m: m.update(recsys="split")), "not a manifest of values per user"),
    "rows": (edit(lambda m: m.update(rows=21)), "contradicts itself"),
    "rows of a piece": (edit(lambda m: m["pieces"][0].update(rows=9)), "contradicts itself"),
    "rows that add up": (edit(other_lengths), "belongs to another result"),
    "an edge": (edit(lambda m: m["pieces"][0].update(first=-1)), "holds other rows"),
    "a float edge": (edit(lambda m: m["pieces"][0].update(first=0.0)), "contradicts itself"),
    "sorted": (edit(lambda m: m.update(sorted=False)), "contradicts itself"),
    "content": (edit(lambda m: m.update(content="0" * 64)), "contradicts itself"),
    "content of a piece": (edit(lambda m: m["pieces"][0].update(content="0" * 32)), "contradicts itself"),
    "no content": (edit(lambda m: m["pieces"][0].update(content="")), "not a manifest"),
    "a dropped piece": (edit(lambda m: m["pieces"].pop()), "contradicts itself"),
    "a repeated piece": (edit(lambda m: m["pieces"].append(m["pieces"][0])), "contradicts itself"),
    "a column": (edit(lambda m: m["columns"][1].__setitem__(0, "map")), "contradicts itself"),
    "ids": (edit(lambda m: m.update(ids="str")), "contradicts itself"),
    "a file elsewhere": (edit(lambda m: m["pieces"][0].update(file="../p.parquet")), "contradicts itself"),
    "pieces": (edit(lambda m: m.update(pieces=7)), "not a manifest of values per user"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_an_error_that_says_what_to_do(tmp_path, kind):
    damage, message = DAMAGE[kind]
    folder = tmp_path / "f"
    write(folder, table_of(), HALVES).check()
    damage(folder)
    with pytest.raises(FileError, match=message) as caught:
        RowFolder.open(folder).check()
    assert caught.value.hint


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    table = table_of(300)
    folder = write(tmp_path / "f", table)
    path = tmp_path / "f" / "part-00000.parquet"
    data = path.read_bytes()
    noticed = 0
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        try:
            folder.check()
            assert_same(joined(folder.pieces()), table)  # it was a bit of a name, or of statistics
        except FileError:
            noticed += 1
    assert noticed > len(data) / 7 / 2


def test_a_user_in_two_pieces_is_an_error_wherever_it_matters(tmp_path, small_memory):
    table = table_of(20)
    odd_and_even_and_three = [np.arange(0, 20, 2), np.sort(np.append(np.arange(1, 20, 2), 4))]
    folder = write(tmp_path / "f", table, odd_and_even_and_three)
    assert not folder.is_sorted
    for use in (folder.check, lambda: folder.rows().ids, lambda: list(rows_in_step({"f": folder}))):
        with pytest.raises(FileError, match="4 occurs twice"):
            use()


def test_ids_of_different_types_are_refused(tmp_path):
    texts = Piece(PerCase(as_ids(["1", "2"]), {"mrr": np.ones(2)}), {}, None)
    folders = {"a": write(tmp_path / "a", table_of()), "b": write(tmp_path / "b", texts)}
    with pytest.raises(IdTypeError, match=r"'a': 'int', 'b': 'str'"):
        list(rows_in_step(folders))


def test_pieces_must_fit_together(tmp_path):
    with RowWriter(tmp_path / "f") as writer:
        with pytest.raises(InputError, match="no piece was written"):
            writer.close({})
        writer.write(*table_of(0, name="of an empty partition"))
        writer.write(*table_of())
        with pytest.raises(
            InputError, match=r"columns user \(int\), map \(float\), the pieces before it user"
        ):
            writer.write(*table_of(name="map"))
        with pytest.raises(InputError, match="not in ascending order of ids: 3 comes after 3"):
            writer.write(PerCase(np.array([1, 3, 3]), {"mrr": np.ones(3)}), {})
        with pytest.raises(InputError, match="cannot be called 'user'"):
            writer.write(*table_of(name="user"))
        with pytest.raises(InputError, match="cannot be written as Parquet"):
            writer.write(PerCase(as_ids(["\ud800"]), {"mrr": np.ones(1)}), {})
        with pytest.raises(InputError, match="cannot be written as Parquet"):
            writer.write(PerCase(np.arange(2), {"mrr": np.ones(3)}), {})
        with pytest.raises(InputError, match="entries of its own called rows"):
            writer.close({"rows": 3})
        folder = writer.close({})
    folder.check()
    assert sorted(file.name for file in folder.path.iterdir()) == [
        "manifest.json",
        folder.manifest["pieces"][0]["file"],
    ]
    assert_same(joined(folder.pieces()), table_of())


def test_no_users_at_all(tmp_path):
    folder = write(tmp_path / "f", table_of(0))
    folder.check()
    assert (len(folder), folder.names, len(folder.rows().columns["mrr"]), list(folder.pieces())) == (
        0,
        ("mrr",),
        0,
        [],
    )
    (found,) = rows_in_step({"f": folder, "g": write(tmp_path / "g", table_of())})
    assert_same(found["f"], table_of(0))
    assert_same(found["g"], table_of())
    assert list(rows_in_step({"f": folder})) == []


def test_pieces_that_workers_wrote_are_added(tmp_path):
    with RowWriter(tmp_path / "f") as writer:
        row_folders.write_piece(writer.path / "part-7-1.parquet", *table_of(seed=5))  # an attempt that failed
        for at, which in enumerate(reversed(HALVES)):
            piece = row_folders.write_piece(writer.path / f"part-{at}-2.parquet", *table_of().take(which))
            writer.add(in_another_process(piece))
        folder = writer.close({})
    folder.check()
    assert folder.is_sorted
    assert_same(joined(folder.pieces()), table_of())


def test_the_rows_so_far_can_be_read_before_the_end(tmp_path):
    with RowWriter(tmp_path / "f") as writer:
        writer.write(*table_of().take(HALVES[1]))
        assert_same(joined(writer.preview().pieces()), table_of().take(HALVES[1]))
        writer.write(*table_of().take(HALVES[0]))
        preview = writer.preview()
        assert_same(Piece(preview.rows(), preview.terms, preview.truth_keys), table_of())
        assert writer.close({}).manifest["content"] == preview.manifest["content"]
    with pytest.raises(FileError, match="is missing"):
        list(preview.pieces())


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_folder_appears_at_once_or_not_at_all(tmp_path):
    old = write(tmp_path / "f", table_of(seed=1), HALVES)
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), RowWriter(tmp_path / "f") as writer:  # noqa: PT012 - what is interrupted
            writer.write(*table_of(seed=2))
            assert len(names_in(tmp_path)) == 2
            raise error
        assert names_in(tmp_path) == ["f"]
        old.check()
    (tmp_path / "f").chmod(0o750)
    with RowWriter(tmp_path / "f") as writer:
        writer.write(*table_of(seed=2))
        old.check()
        new = writer.close({})
    assert names_in(tmp_path) == ["f"]
    assert names_in(tmp_path / "f") == ["manifest.json", "part-00000.parquet"]
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o750
    assert_same(joined(new.pieces()), table_of(seed=2))
    with pytest.raises(FileError, match=r"belongs to another result|is missing"):
        old.rows().columns["mrr"]  # opened before it was replaced


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "f").mkdir()
    write(tmp_path / "f", table_of()).check()
    assert names_in(tmp_path) == ["f"]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_is_no_result_is_never_touched(tmp_path, when):
    target = tmp_path / "f"

    def refused(put, message):
        if when == "before":
            put()
        with pytest.raises(FileError, match=message), RowWriter(target) as writer:  # noqa: PT012
            writer.write(*table_of())
            put()
            writer.close({})

    def notes():
        target.mkdir(exist_ok=True)
        (target / "notes.txt").write_text("mine")

    refused(notes, "holds notes.txt, which is not part of an earlier result")
    assert names_in(tmp_path) == ["f"]
    (target / "notes.txt").unlink()
    write(target, table_of())
    refused(notes, "holds notes.txt, which is not part of an earlier result")
    assert names_in(target) == ["manifest.json", "notes.txt", "part-00000.parquet"]
    for file in target.iterdir():
        file.unlink()
    target.rmdir()
    refused(target.touch, "is a file. Name a folder")
    target.unlink()
    (tmp_path / "g").mkdir()
    refused(lambda: target.is_symlink() or target.symlink_to(tmp_path / "g"), "is a symbolic link")
    assert names_in(tmp_path) == ["f", "g"]


def test_a_folder_needs_its_parent(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        RowWriter(tmp_path / "a" / "b")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    folder = write(tmp_path / "f", table_of())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(RowFolder.open(tmp_path / "f")) == 20
    for use in (lambda: RowWriter(tmp_path / "g"), lambda: folder.rows().ids):
        with pytest.raises(MissingExtraError, match=r"recsys-evaluation\[arrow\]"):
            use()
    assert names_in(tmp_path) == ["f"]


def test_where_folders_cannot_be_exchanged_two_renames_do(tmp_path, monkeypatch):
    old = write(tmp_path / "f", table_of(seed=1))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_args, **_options: object())
    rename = Path.rename

    def refuse(self, target):
        if self.name.endswith(".unfinished"):
            raise OSError(5, "no luck")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(FileError, match=r"could not be written: no luck\. Nothing was changed"):
            write(tmp_path / "f", table_of(seed=2))
    old.check()
    assert names_in(tmp_path) == ["f"]
    assert_same(joined(write(tmp_path / "f", table_of(seed=2)).pieces()), table_of(seed=2))
    assert names_in(tmp_path) == ["f"]
    (tmp_path / "f").rename(tmp_path / ".f.0123.replaced")  # as if killed between the two
    with pytest.raises(FileError, match=r"Rename .*/\.f\.0123\.replaced back"):
        RowFolder.open(tmp_path / "f")
    write(tmp_path / "f", table_of(seed=3))
    assert names_in(tmp_path) == [".f.0123.replaced", "f"]


def test_an_interrupt_before_the_folder_is_anybodys_leaves_nothing(tmp_path, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_folder, "lock_folder", stop)
    with pytest.raises(KeyboardInterrupt):
        RowWriter(tmp_path / "f")
    assert names_in(tmp_path) == []


def test_an_earlier_folder_that_cannot_be_listed_is_an_error_of_ours(tmp_path, monkeypatch):
    write(tmp_path / "f", table_of())
    iterdir, listed = Path.iterdir, []

    def fail_later(path):
        listed.append(path)
        if len(listed) == 2:
            raise OSError(12, "Cannot allocate memory")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", fail_later)
    with pytest.raises(FileError, match="f cannot be read: Cannot allocate memory"):
        RowWriter(tmp_path / "f")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(5, "Input/output error")])
def test_a_removal_that_is_interrupted_or_fails_once_removes_all(tmp_path, monkeypatch, failure):
    (tmp_path / "f" / "inside").mkdir(parents=True)
    rmdir, failures = os.rmdir, [failure]

    def fail_once(*given, **options):
        if failures:
            raise failures.pop()
        return rmdir(*given, **options)

    monkeypatch.setattr(os, "rmdir", fail_once)
    with pytest.raises(KeyboardInterrupt) if failure is KeyboardInterrupt else contextlib.nullcontext():
        atomic_folder.remove_folder(tmp_path / "f")
    assert (failures, names_in(tmp_path)) == ([], [])


def test_a_file_of_a_failed_worker_that_cannot_be_removed_is_said_and_nothing_changed(tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise OSError(5, "Input/output error")

    with RowWriter(tmp_path / "f") as writer:
        writer.write(*table_of())
        (writer.path / "stray").write_text("half")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", fail)
            with pytest.raises(FileError, match=r"could not be written: Input/output error\. Nothing was"):
                writer.close({})
    assert names_in(tmp_path) == []


def in_a_process(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


PEAK = """
import re, sys
from pathlib import Path
from recsys.evaluation.files import row_folders
from recsys.evaluation.files.rows_in_step import rows_in_step
from recsys.inputs.files import atomic_folder

def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

a, b, tiny = (row_folders.RowFolder.open(Path(sys.argv[1]) / name) for name in ("a", "b", "tiny"))
assert list(rows_in_step({"a": tiny, "b": tiny}))
before = peak_mb()
n_rows = 0
for found in rows_in_step({"a": a, "b": b}, rows=1 << 15):
    n_rows += len(found["a"].rows) + len(found["b"].rows)
assert n_rows == 4_000_000, n_rows
print(peak_mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("deal", "most_mb"), [("ranges", 50), ("any", 160)])
def test_two_folders_are_compared_without_holding_either(tmp_path, deal, most_mb):
    """2 million rows of 7 columns are 107 MB a folder; 20 pieces each, cut at different users."""
    n, values = 2_000_000, np.random.default_rng(0).integers(0, 1000, 100_000) / 1000
    for name, shift in (("a", 0), ("b", 40_000)):
        with RowWriter(tmp_path / name) as writer:
            for at in range(20):
                ids = (
                    np.arange(at * n // 20, (at + 1) * n // 20) if deal == "ranges" else np.arange(at, n, 20)
                )
                writer.write(PerCase(ids + shift, {f"m{i}": values for i in range(6)}), {})
            writer.close({})
    write(tmp_path / "tiny", table_of())
    assert float(in_a_process(PEAK, tmp_path)) < most_mb


KILLS = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from recsys.evaluation.files.row_folders import RowFolder, RowWriter
from recsys.records.arrays import PerCase
import ctypes, fcntl, hashlib, pandas, pyarrow.parquet  # before the forks

place = Path(sys.argv[1])
target = place / "f"
STEPS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "os.listdir",
         "shutil.rmtree", "ctypes.dlsym", "fcntl.flock"}

def write(version):
    with RowWriter(target) as writer:
        for at in range(3):
            writer.write(PerCase(np.arange(5) + 5 * at, {"mrr": np.full(5, float(version))}), {})
        return writer.close({"version": version})

def verify():
    folder = RowFolder.open(target)
    folder.check()
    assert set(folder.rows().columns["mrr"].tolist()) == {float(folder.manifest["version"])}
    assert len(folder) == 15

def child(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return pid

def ended(pid):
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

def killed_at(step):
    verify()
    left = step

    def hook(event, arguments):
        nonlocal left
        if event in STEPS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    write(step)

def for_ever():
    verify()
    for version in range(1, 1_000_000):
        write(version)

assert ended(child(lambda: write(0))) == 0
steps = 0
while True:
    steps += 1
    code = ended(child(lambda: killed_at(steps)))
    if code != -signal.SIGKILL:
        break
assert code == 0, (steps, code)
chance = random.Random(int(sys.argv[2]))
for _ in range(15):
    pid = child(for_ever)
    time.sleep(chance.uniform(0, 0.08))
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL

def a_last_time():
    verify()
    write(1)
    verify()

assert ended(child(a_last_time)) == 0
print(steps, sorted(os.listdir(place)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_writer_leaves_the_old_folder_or_the_new_one(tmp_path):
    """Killed before each step that touches the disk, then at random moments; the next writer cleans up."""
    steps, left = in_a_process(KILLS, tmp_path, 0).split(maxsplit=1)
    assert int(steps) > 20
    assert left.strip() == "['f']"


def test_only_what_nobody_writes_is_cleaned_up(tmp_path):
    with RowWriter(tmp_path / "f") as first, RowWriter(tmp_path / "f") as second:
        (tmp_path / ".f.000000000000.unfinished").mkdir()
        (tmp_path / ".fg.000000000000.unfinished").mkdir()
        with RowWriter(tmp_path / "f"):
            assert first.path.is_dir()
            assert second.path.is_dir()
        assert not (tmp_path / ".f.000000000000.unfinished").exists()
        for version, writer in enumerate((second, first)):
            writer.write(*table_of(seed=version))
            writer.close({"version": version}).check()
    assert RowFolder.open(tmp_path / "f").manifest["version"] == 1
    assert names_in(tmp_path) == [".fg.000000000000.unfinished", "f"]
