"""Whatever lies where a file is expected: an error of recsys.errors within seconds and bounded memory.

The readers are in worlds/hostile_files.py, and `make fuzz` damages what they read. Here stand the named
cases: devices, folders, nothing at all, deep nesting, cells and tables of any size, archives that unpack
without end.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import recsys
from recsys.benching.protocol import read_protocol, run_protocol
from recsys.cf.evaluation.loading import load_test_data
from recsys.cli.app import VERBS
from recsys.compat import ranx
from recsys.errors import FileError
from recsys.evaluation.in_pieces.pieces import PieceResult
from recsys.inputs.files import FORMATS
from recsys.inputs.files.matrices import read_arrays
from recsys.inputs.files.reader import read_table
from worlds import hostile, hostile_commands, hostile_files
from worlds.hostile_files import PROTOCOL, Reader

# These go through all files of a folder, and say which ones they left out.
FORGIVING = ("history", "board")
# Verbs that read no file; a study reads one, and takes minutes where it can.
WITHOUT_FILES = {"conform", "conventions", "demo", "doctor", "metrics"}
CALLS = hostile_commands.CALLS | {"study": ["study popularity --data events.csv"]}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /dev")


@pytest.fixture(autouse=True)
def safe() -> Iterator[None]:
    """No import and no warning of another library is part of a case, and no size takes the machine down."""
    hostile.warm_up()
    with hostile.limited_memory(), hostile.quiet():
        yield


def test_every_format_and_verb_is_among_the_cases():
    names = [reader.file for reader in hostile_files.readers()]
    for entry in FORMATS.values():
        assert any(name.endswith(entry.suffixes) for name in names), entry.name
    assert {*VERBS} == {*hostile_commands.CALLS}
    tried = {where.split()[0] for where in hostile.ENTRIES}
    functions = {name for name in recsys.__all__ if name[0].islower()}
    # A decorator for plug-ins, and a function without arguments.
    assert functions - {"metric", "show_backends"} <= tried


def test_the_valid_files_are_read(tmp_path):
    for number, reader in enumerate(hostile_files.readers()):
        reader.put(tmp_path / str(number))
        assert hostile.ended(partial(reader.read, tmp_path / str(number))) == "result", reader.what


def device(reader: Reader, here: Path) -> None:
    (here / reader.file).symlink_to("/dev/zero")


def loop(reader: Reader, here: Path) -> None:
    (here / reader.file).symlink_to(reader.file)


def folder(reader: Reader, here: Path) -> None:
    (here / reader.file).mkdir()


def missing(_: Reader, __: Path) -> None:
    pass


def empty(reader: Reader, here: Path) -> None:
    (here / reader.file).touch()


def half(reader: Reader, here: Path) -> None:
    (here / reader.file).write_bytes(reader.data[: len(reader.data) // 2])


def deep(reader: Reader, here: Path) -> None:
    opened = b"a = " + b"[" * 100_000 if reader.form == "toml" else b'{"result":' * 100_000
    (here / reader.file).write_bytes(gzip.compress(opened) if reader.form == "gzip" else opened)


@on_linux
@pytest.mark.parametrize("put", [device, loop, folder, missing, empty, half, deep])
def test_something_else_in_place_of_each_file(tmp_path, put):
    ends = {}
    for number, reader in enumerate(hostile_files.readers()):
        here = tmp_path / str(number)
        reader.put(here)
        (here / reader.file).unlink()
        put(reader, here)
        ends[f"{reader.what} {reader.file}"] = how = hostile.ended(partial(reader.read, here))
        if put in (device, folder) and reader.what not in FORGIVING:
            assert how != "result", reader.what
        shutil.rmtree(here, ignore_errors=True)
    assert {what: how for what, how in ends.items() if isinstance(how, hostile.Defect)} == {}


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.run", "a.inter", "a.dat", "i.csv"]
)
@pytest.mark.parametrize("shape", ["a cell of 50 MB", "100,000 columns", "half a million short rows"])
def test_files_of_any_shape_are_read_or_refused_in_time(tmp_path, name, shape):
    text = {
        "a cell of 50 MB": b'user,item\n1,"%s"\n' % (b"x" * 50_000_000),
        "100,000 columns": b"user,item" + b",c" * 100_000 + b"\n1,2" + b",3" * 100_000 + b"\n",
        "half a million short rows": b"user,item\n" + b"1,2\n\n" * 500_000,
    }[shape]
    if name.endswith("json"):
        text = b'{"1": ["%s"]}' % text.replace(b'"', b"").replace(b"\n", b"")
    elif name.endswith("jsonl"):
        text = b'{"user": "1", "item": "%s"}\n' % text.replace(b'"', b"").replace(b"\n", b"")
    (tmp_path / name).write_bytes(text)
    for call in (partial(recsys.read_file, tmp_path / name), partial(read_table, tmp_path / name)):
        assert hostile.ended(call) in ("error", "result")


def test_archives_that_unpack_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("recsys.inputs.files.formats._UNPACKED_BYTES", 1 << 20)
    zeros = bytes(1 << 24)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(zeros))
    (tmp_path / "a.gz").write_bytes(gzip.compress(zeros))
    np.savez_compressed(tmp_path / "a.npz", U=np.zeros(1 << 21))
    with zipfile.ZipFile(tmp_path / "ml.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml/ratings.dat", zeros)
    for call in (
        lambda: recsys.read_file(tmp_path / "a.csv.gz"),
        lambda: ranx.Run.from_file(str(tmp_path / "a.gz")),
        lambda: read_arrays(tmp_path / "a.npz"),
        lambda: recsys.datasets.read(tmp_path / "ml.zip"),
    ):
        with pytest.raises(FileError, match="times its size"):
            call()
    with pytest.raises(ValueError, match="far more than its size"):
        PieceResult.from_bytes(zlib.compress(zeros))


@on_linux
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"events.csv"', '"/dev/zero"', "it is a device"),
        ('"events.csv"', '"../../../../../../../../../../../../dev/zero"', "it is a device"),
        ('"lists.csv"', '"/dev/zero"', "it is a device"),
        ('"U.npy"', '"/dev/zero"', "it is a device"),
        ('"users.txt"', '"/dev/zero"', "it is a device"),
        ('"events.csv"', '"../missing.csv"', "missing"),
        ('"events.csv"', '"a\\u0000b"', "null byte"),
        ('"events.csv"', '"."', "holds|format|folder"),
        ('folder = "results"', 'folder = "/proc/nowhere/results"', "nowhere|cannot|written"),
        ('folder = "results"', 'folder = "/dev/null/results"', "null|cannot|written"),
    ],
)
def test_paths_of_a_protocol_that_lead_elsewhere(tmp_path, old, new, says):
    hostile_commands.write_files(tmp_path)
    text = PROTOCOL.decode()
    assert old in text
    (tmp_path / "p.toml").write_text(text.replace(old, new))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(recsys.errors.RecsysError, match=says):
        run_protocol(read_protocol(tmp_path / "p.toml"))
    assert sorted(tmp_path.rglob("*")) == before


@on_linux
@pytest.mark.parametrize("verb", sorted({*VERBS} - WITHOUT_FILES))
def test_devices_as_files_of_a_command(tmp_path, monkeypatch, verb):
    """Each word of a call that names a file or a folder, replaced by a device without end."""
    hostile_commands.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    ends = {}
    for call in CALLS[verb]:
        words = call.split()
        for at, word in enumerate(words):
            if Path(word).exists():
                changed = [*words[:at], "/dev/zero", *words[at + 1 :]]
                ends[" ".join(changed)] = hostile.ended(partial(hostile_commands.run, CliRunner(), changed))
    assert ends
    assert {changed: how for changed, how in ends.items() if how != "error"} == {}


def test_a_zip_whose_table_of_contents_lies(tmp_path):
    """The length of a member is what the archive says, and reading stops there."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml/ratings.dat", b"1::10::5::978300760\n" * 1000)
    data = out.getvalue()
    at = data.rindex(b"PK\x01\x02") + 24  # the unpacked size, in the central directory
    (tmp_path / "ml.zip").write_bytes(data[:at] + (10).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(FileError):
        recsys.datasets.read(tmp_path / "ml.zip")


def test_an_item_number_beyond_every_memory_is_refused(tmp_path):
    (tmp_path / "train.csv").write_text("u_idx,i_idx\n0,1\n")
    (tmp_path / "test.csv").write_text(f"u_idx,i_idx\n0,{2**63 - 1}\n")
    with pytest.raises(recsys.errors.InputError, match="is not a number of 64 bits"):
        load_test_data(tmp_path)
