"""Damaged files of every kind that is read, and the call that reads each.

A `Reader` is a small valid file (with what lies beside it), the call that reads it, and the form by which its
structure can be damaged: values of a JSON document, cells of a table, members of an archive. `damage` changes
bytes whatever the form. The valid files are made here and are 150 kB together.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

import recsys
from recsys.benching.protocol import read_protocol
from recsys.cf.evaluation.loading import load_embeddings, load_test_data
from recsys.cli import result_verbs
from recsys.cli.shared_options import FileOptions
from recsys.comparison.identify import probe_lines
from recsys.comparison.implementations import read_answer, read_answers
from recsys.compat import ranx
from recsys.evaluation.files.result_files import fingerprint
from recsys.evaluation.in_pieces.checkpoints import PieceStore
from recsys.inputs.files import read_ncf_files
from recsys.inputs.files.matrices import read_arrays
from recsys.inputs.files.reader import read_table
from recsys.report.board import write_board
from recsys.splits import manifest
from worlds import hostile

NUMBERS = ["nan", "inf", "-1", "0", "1e999", "9223372036854775807", "18446744073709551616", "1_0", "0.5"]
TOKENS = [
    *NUMBERS,
    "\0",
    ",",
    "\t",
    "\n",
    '"',
    "{}",
    "[]",
    "null",
    "true",
    "é",
    "user",
    "=1+1",
    "\ud800",
    "x" * 300,
]
JSON_VALUES = [
    None,
    True,
    -1,
    0,
    2,
    0.5,
    1e308,
    2**70,
    "",
    "nan",
    "a\0",
    "\ud800",
    [],
    {},
    [[1]],
    {"dtype": "<f8"},
]
Call = Callable[[Path], Any]


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    Args:
        what: how the kind is called in tables of counts.
        file: its name within a folder.
        read: the call that reads it there.
        data: a valid file.
        form: how its structure can be damaged.
        beside: other files of the folder.
        weight: how often it is drawn; calls that take long are drawn less often.
    """

    what: str
    file: str
    read: Call
    data: bytes
    form: str = "bytes"
    beside: dict[str, bytes] = field(default_factory=dict)
    weight: float = 1.0

    def put(self, folder: Path, data: bytes | None = None) -> None:
        """Write the file, or other bytes in its place, and what lies beside it unless it is there."""
        folder.mkdir(exist_ok=True)
        for name, own in self.beside.items():
            if name != self.file and not (folder / name).exists():
                (folder / name).write_bytes(own)
        (folder / self.file).write_bytes(self.data if data is None else data)


# --- valid files and their readers ----------------------------------------------------------------------

_TABLE = pd.DataFrame(
    {
        "user": [1, 1, 2, 2, 3],
        "item": [5, 6, 5, 7, 8],
        "score": [0.5, 0.25, 1.0, 0.125, 2.0],
        "time": [1, 2, 3, 4, 5],
    }
)
_NCF = {
    "a.rating": b"0\t25\t5\t978824351\n1\t133\t3\t978300174\n",
    "a.negative": b"(0,25)\t1064\t174\n(1,133)\t1\t2\n",
}
_RATINGS = b"1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n"
PROTOCOL = b"""title = "Tiny"
seed = 7
[data]
interactions = "events.csv"
[split]
how = "leave_last"
n = 1
[relevance]
from = 3
[conventions]
ties = "expected"
[metrics]
names = ["ndcg", "recall"]
k = [2, 5]
[models.popularity]
baseline = "popularity"
[models.mine]
factors = ["U.npy", "V.npy"]
user_ids = "users.txt"
item_ids = "items.txt"
[models."a b"]
lists = "lists.csv"
[compare]
baseline = "popularity"
metrics = ["ndcg@5"]
[output]
folder = "results"
"""


def _tables() -> Iterator[tuple[str, str, str, bytes]]:
    """Kind, name, form and bytes of tables."""
    text = {
        "csv": _TABLE.to_csv(index=False),
        "tsv": _TABLE.to_csv(index=False, sep="\t"),
        "inter": "user_id:token\titem_id:token\trating:float\n1\t5\t0.5\n1\t6\t2\n2\t5\t1\n",
        "run": "q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d1 1 0.7 t\n",
        "qrels": "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n",
        "data": "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n",
        "jsonl": "".join(json.dumps(row) + "\n" for row in _TABLE.to_dict("records")),
    }
    for suffix, words in text.items():
        yield suffix, f"u.{suffix}", "cells", words.encode()
    yield "csv.gz", "a.csv.gz", "gzip", gzip.compress(text["csv"].encode(), mtime=0)
    yield "jsonl.gz", "a.jsonl.gz", "gzip", gzip.compress(text["jsonl"].encode(), mtime=0)
    nested = {"1": {"5": 1, "6": 2.5}, "2": {"5": 1.0, "7": 0.5}}
    yield "json of users", "a.json", "json", json.dumps(nested).encode()
    yield "json of rows", "rows.json", "json", json.dumps(_TABLE.to_dict("records")).encode()
    for form in ("parquet", "arrow"):
        table = pa.Table.from_pandas(_TABLE, preserve_index=False)
        yield form, f"a.{form}", form, arrow_bytes(table, form)


def arrow_bytes(table: Any, form: str) -> bytes:
    """A table as a Parquet or an Arrow file."""
    out = io.BytesIO()
    if form == "parquet":
        parquet.write_table(table, out)
    else:
        feather.write_feather(table, out)
    return out.getvalue()


def _table_readers() -> Iterator[Reader]:
    for what, name, form, data in _tables():
        for kind in {"run": ("lists",), "qrels": ("truth",)}.get(what, ("lists", "truth")):
            yield Reader(what, name, lambda at, n=name, k=kind: recsys.read_file(at / n, k), data, form)
        if what not in ("run", "json of users"):
            yield Reader(what, name, lambda at, n=name: read_table(at / n), data, form)
    csv = next(_tables())[-1]
    truth = {"b.csv": csv}
    yield Reader("folder of csv", "a.csv", recsys.read_file, csv, "cells", truth)
    yield Reader(
        "runs to fuse", "a.csv", lambda at: recsys.fuse([at / "a.csv", at / "b.csv"]), csv, "cells", truth
    )
    for kind, form in (("csv", "cells"), ("parquet", "parquet")):
        data = {what: data for what, _, _, data in _tables()}[kind]
        read, beside = partial(_beyond_memory, kind), {f"b.{kind}": data}
        yield Reader(f"{kind} beyond memory", f"a.{kind}", read, data, form, beside, 0.2)
    yield Reader("items and users", "i.csv", _attributes, b"item,title,year\n5,A,1990\n6,B,x\n", "cells")
    yield Reader("catalogue", "c.txt", _catalogue, b"a\nb\nc\n", "cells")
    yield Reader("NCF .rating", "a.rating", _ncf, _NCF["a.rating"], "cells", _NCF)
    yield Reader("NCF .negative", "a.negative", _ncf, _NCF["a.negative"], "cells", _NCF)


def _data_set_readers() -> Iterator[Reader]:
    users = {"users.dat": b"1::F::1::10::48067\n"}
    yield Reader("MovieLens folder", "ratings.dat", recsys.datasets.read, _RATINGS, "cells", users)
    amazon = b"u1,i1,5.0,100\nu2,i1,3.0,200\n"
    yield Reader(
        "Amazon ratings",
        "ratings_A.csv",
        lambda at: recsys.datasets.read(at / "ratings_A.csv"),
        amazon,
        "cells",
    )
    yield Reader(
        "RecBole folder", "a.inter", recsys.datasets.read, b"user_id:token\titem_id:token\n1\t2\n", "cells"
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml/ratings.dat", _RATINGS)
        archive.writestr("ml/movies.dat", b"10::A (1990)::Drama\n")
    yield Reader(
        "zip archive", "ml.zip", lambda at: recsys.datasets.read(at / "ml.zip"), packed.getvalue(), "zip"
    )
    test = b"u_idx,i_idx\n0,1\n1,2\n"
    yield Reader("test and train", "test.csv", load_test_data, test, "cells", {"train.csv": test})


def _beyond_memory(kind: str, here: Path) -> Any:
    return recsys.evaluate(here / f"a.{kind}", here / f"b.{kind}", ["mrr"], memory="2GB", threads=1)


def _ncf(here: Path) -> Any:
    return read_ncf_files(here / "a.rating", here / "a.negative")


def _attributes(here: Path) -> Any:
    return FileOptions().read_attributes(str(here / "i.csv"), "item")


def _catalogue(here: Path) -> Any:
    return FileOptions().read_attributes(str(here / "c.txt"), "item")


def _ranx_readers(here: Path) -> Iterator[Reader]:
    """What `recsys.compat.ranx` reads; .lz4 needs packages that are not among ours."""
    run = ranx.Run({"q1": {"d1": 0.9, "d2": 0.5}, "q2": {"d1": 0.7}}, name="a")
    qrels = ranx.Qrels({"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 1}})
    forms = {"json": "json", "trec": "cells", "parquet": "bytes"}
    for kind, form in forms.items():
        for of in (run, qrels):
            name = f"{type(of).__name__.lower()}.{kind}"
            of.save(str(here / name))
            data = (here / name).read_bytes()
            read = type(of).from_file
            yield Reader(f"ranx {kind}", name, lambda at, n=name, r=read: r(str(at / n)), data, form)
    trec = gzip.compress((here / "run.trec").read_bytes(), mtime=0)
    yield Reader("ranx trec.gz", "run.gz", lambda at: ranx.Run.from_file(str(at / "run.gz")), trec, "gzip")


def _matrix_readers(here: Path) -> Iterator[Reader]:
    matrix = np.arange(12.0).reshape(4, 3)
    np.save(here / "U.npy", matrix)
    np.savez(here / "a.npz", U=matrix, V=matrix)
    np.savez_compressed(here / "packed.npz", matrix)
    np.save(here / "ids.npy", np.arange(4))
    factors = recsys.Factors(matrix, matrix, item_ids=list("abcd"))
    recsys.models.save_model(here / "model.npz", factors)
    import torch
    from safetensors.numpy import save_file

    save_file({"m": matrix}, here / "a.safetensors")
    recsys.models.save_model(here / "model.safetensors", factors)
    known = recsys.models.TRAINABLE["item-knn"].fit(recsys.read_interactions(hostile.TRAIN))
    recsys.models.save_model(here / "history.npz", known)
    recsys.models.save_model(here / "net.npz", recsys.models.network("gmf", 3, 4, factors=2))
    torch.save(torch.tensor(matrix), here / "a.pt")
    (here / "ids.txt").write_text("a\nb\nc\nd\n")
    beside = dict.fromkeys(("U.npy", "V.npy"), (here / "U.npy").read_bytes())
    beside["meta.json"] = b'{"n_users": 4, "shape": {"n_items": 4}}'
    own: dict[str, tuple[str, str, Call]] = {
        "U.npy": ("npy", "npy", lambda at: recsys.read_factors(at / "U.npy", at / "V.npy")),
        "a.npz": ("npz", "zip", lambda at: recsys.cf.evaluation.load_model(at / "a.npz")),
        "packed.npz": ("npz", "zip", lambda at: load_embeddings(at / "packed.npz")),
        "a.safetensors": ("safetensors", "safetensors", lambda at: read_arrays(at / "a.safetensors")),
        "a.pt": ("pt", "bytes", lambda at: read_arrays(at / "a.pt")),
        "model.npz": ("model npz", "zip", lambda at: recsys.models.load_model(at / "model.npz")),
        "history.npz": ("model npz", "zip", lambda at: recsys.models.load_model(at / "history.npz")),
        "model.safetensors": (
            "model safetensors",
            "safetensors",
            lambda at: recsys.models.load_model(at / "model.safetensors", ids="str"),
        ),
        "net.npz": ("network npz", "zip", lambda at: recsys.models.load_network(at / "net.npz")),
        "ids.npy": (
            "ids npy",
            "npy",
            lambda at: recsys.read_factors(at / "U.npy", at / "V.npy", user_ids=at / "ids.npy", ids="auto"),
        ),
        "ids.txt": (
            "ids txt",
            "cells",
            lambda at: recsys.read_factors(at / "U.npy", at / "V.npy", item_ids=at / "ids.txt", ids="str"),
        ),
    }
    for name, (what, form, read) in own.items():
        yield Reader(what, name, read, (here / name).read_bytes(), form, beside)
    folder = dict.fromkeys(("als_U.npy", "als_V.npy"), beside["V.npy"])
    yield Reader(
        "folder of factors", "meta.json", recsys.cf.evaluation.load_model, beside["meta.json"], "json", folder
    )
    yield Reader(
        "folder of factors", "als_U.npy", recsys.cf.evaluation.load_model, folder["als_U.npy"], "npy", folder
    )


def _document_readers(here: Path) -> Iterator[Reader]:
    result = recsys.evaluate(hostile.LISTS, hostile.TRUTH, hostile.METRICS, by={1: "a", 2: "b"})
    result.save(here / "result.json")
    saved = (here / "result.json").read_bytes()
    yield Reader("result", "result.json", lambda at: recsys.load(at / "result.json"), saved, "result")
    yield Reader("history", "a.json", recsys.history, saved, "result", {"b.json": saved}, 0.2)
    board = lambda at: write_board(at / "board.html", at)  # noqa: E731
    yield Reader("board", "a.json", board, saved, "result", {"b.json": saved}, 0.2)
    recsys.evaluate(_TABLE, _TABLE, ["mrr"], memory="2GB", per_user=here / "rows", threads=1)
    rows = {file.name: file.read_bytes() for file in sorted((here / "rows").iterdir())}
    for name, data in rows.items():
        form = "json" if name.endswith(".json") else "bytes"
        yield Reader("row folder", name, _row_folder, data, form, rows)
    with mock.patch.object(PieceStore, "result", side_effect=KeyError), contextlib.suppress(KeyError):
        _from_checkpoint(here / "checkpoint")
    kept = {file.name: file.read_bytes() for file in (here / "checkpoint").iterdir() if file.is_file()}
    for name, data in kept.items():
        yield Reader("checkpoint", name, _from_checkpoint, data, "json", kept, 0.2)
    events = pd.DataFrame(hostile.EVENTS)
    text = manifest.to_json(recsys.split(events, "leave_last").manifest).encode()
    rerun = lambda at: manifest.rerun(at / "manifest.json", events)  # noqa: E731
    yield Reader("split manifest", "manifest.json", rerun, text, "json")
    answers = "".join(json.dumps(line | {"value": 0.5}) + "\n" for line in probe_lines("mrr")[:9])
    yield Reader("answers", "answers.jsonl", _answers, answers.encode(), "cells")
    yield Reader("protocol", "p.toml", lambda at: read_protocol(at / "p.toml"), PROTOCOL, "toml")
    found = json.dumps(recsys.audit(hostile.TRAIN, hostile.TRUTH).to_dict()).encode()
    yield Reader("audit", "a.json", lambda at: result_verbs._read_audit(str(at / "a.json")), found, "json")


def _row_folder(here: Path) -> Any:
    return recsys.load(here).per_case.columns["mrr"].sum()


def _from_checkpoint(here: Path) -> Any:
    return recsys.evaluate(_TABLE, _TABLE, ["mrr"], memory="2GB", checkpoint=here, threads=1)


def _answers(here: Path) -> list[Any]:
    """The answers to `recsys identify`; what it makes of them takes seconds."""
    question = probe_lines("mrr")[0]
    found = read_answers(here / "answers.jsonl")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return [read_answer(row.get("value"), question, "a row") for row in rows]


@cache
def readers() -> list[Reader]:
    """Every reader; made once."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        every = (_table_readers(), _data_set_readers(), _ranx_readers(here), _matrix_readers(here))
        return [reader for some in (*every, _document_readers(here)) for reader in some]


# --- damage ---------------------------------------------------------------------------------------------


def damage(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The bytes with a few changes: bits, bytes, pieces, tokens, lines, lengths, a piece of another file."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, end = sorted((rng.randrange(len(out) + 1), rng.randrange(len(out) + 1)))
        how = rng.randrange(9)
        if how == 0 and out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        elif how == 1 and out:
            out[rng.randrange(len(out))] = rng.choice((0, 1, 127, 128, 255, 10, 44, 34))
        elif how == 2:
            del out[at : min(end, at + rng.choice((1, 4, 64, 4096)))]
        elif how == 3:
            out[at:at] = out[at : min(end, at + 200)] * rng.choice((1, 2, 50))
        elif how == 4:
            out[at:at] = rng.choice(TOKENS).encode(errors="surrogatepass")
        elif how == 5:
            del out[at:]
        elif how == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            out[at:at] = other[start : start + rng.choice((1, 16, 300))]
        elif how == 7:
            out[at : at + 8] = rng.choice((0, 1, 2**31 - 1, 2**63 - 1, 2**64 - 1)).to_bytes(8, "little")
        else:
            lines = bytes(out).split(b"\n")
            rng.shuffle(lines)
            out = bytearray(b"\n".join(lines))
    return bytes(out)


def change_document(rng: random.Random, document: Any) -> Any:
    """A JSON document in which one value is replaced, lost, doubled or buried."""
    holder: Any = {"": document}
    key: Any = ""
    while (
        isinstance(holder[key], dict | list)
        and holder[key]
        and (holder[key] is document or rng.random() < 0.85)
    ):
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    if key == "":
        return rng.choice(JSON_VALUES)
    how = rng.randrange(6)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif how == 1:
        holder[rng.choice(("", "user", "\0", "1", "x" * 300))] = holder[key]
    elif how == 2:
        holder[key] = [holder[key]] if rng.random() < 0.5 else {"a": holder[key]}
    else:
        holder[key] = rng.choice(JSON_VALUES)
    return document


def _json(rng: random.Random, data: bytes) -> bytes:
    document = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        document = change_document(rng, document)
        if not isinstance(document, dict | list):
            break
    return json.dumps(document).encode()


def _result(rng: random.Random, data: bytes) -> bytes:
    """A saved result that was changed and signed again: what its checksums do not show must be found."""
    document = json.loads(data)
    if not isinstance(document, dict):
        return data
    part = rng.choice(list(document))
    holder = document if not isinstance(document[part], dict) else document[part]
    change_document(rng, holder)
    for numbers, signature in (("result", "sha256"), ("cases", "cases_sha256")):
        if numbers in document and signature in document:
            document[signature] = fingerprint(json.loads(json.dumps(document[numbers])))
    return json.dumps(document).encode()


def _cells(rng: random.Random, data: bytes) -> bytes:
    """Another word in some cells of a text."""
    words = re.split(rb"([,\t\n :]+)", data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        words[rng.randrange(len(words))] = rng.choice(TOKENS).encode(errors="surrogatepass")
    return b"".join(words)


def _toml(rng: random.Random, data: bytes) -> bytes:
    """Another value of some settings, or a setting that is lost, doubled or under another table."""
    lines = data.decode(errors="replace").split("\n")
    values = (
        "1",
        "-1",
        "nan",
        "[]",
        "{}",
        '""',
        '"../x"',
        '"/dev/zero"',
        "true",
        "1979-05-27",
        "[1, 'a']",
        "9" * 30,
    )
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        name, equals, _ = lines[at].partition("=")
        how = rng.randrange(4)
        if how == 0:
            del lines[at : at + rng.randrange(3)]
        elif how == 1:
            lines.insert(at, rng.choice(lines or [""]))
        elif how == 2 and equals:
            lines[at] = f"{name}= {rng.choice(values)}"
        else:
            lines.insert(
                at, f"{rng.choice(('n', 'k', 'how', 'seed', 'lists', 'from', 'x.y'))} = {rng.choice(values)}"
            )
        lines = lines or [""]
    return "\n".join(lines).encode()


def _zip(rng: random.Random, data: bytes) -> bytes:
    """An archive in which one member is damaged, renamed, doubled or lost; its checksums are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:  # noqa: BLE001 - damaged before: of many types
        return data
    if not members:
        return data
    at = rng.randrange(len(members))
    name, content = members[at]
    how = rng.randrange(5)
    if how == 0:
        del members[at]
    elif how == 1:
        members.append((rng.choice(("../../x.npy", "/etc/x.npy", name, "", "a" * 300, "U.npy")), content))
    elif content.startswith(b"\x93NUMPY"):
        members[at] = (name, _npy(rng, content))
    else:
        members[at] = (name, damage(rng, content, [content]))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name or "x"), content)
    return out.getvalue()


def _npy(rng: random.Random, data: bytes) -> bytes:
    """An array of another type, shape or description."""
    kinds = (
        "<f8",
        ">f4",
        "<i4",
        "|u1",
        "|b1",
        "<c16",
        "|O",
        "<M8[s]",
        "<U3",
        "|V8",
        "|S2",
        "<f2",
        "[('a', '<f8')]",
    )
    shapes = (
        "()",
        "(0,)",
        "(4,)",
        "(2, 2)",
        "(-1, 3)",
        "(10**9, 3)",
        "(2**62, 4)",
        "(4, 0)",
        "(1, 2, 3)",
        "('a',)",
    )
    order = rng.choice(("True", "False", "1"))
    text = f"{{'descr': {rng.choice(kinds)!r}, 'fortran_order': {order}, 'shape': {rng.choice(shapes)}}}"
    if rng.random() < 0.4:
        return damage(rng, data, [data])
    start = 10 + int.from_bytes(data[8:10], "little")
    return data[:8] + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + data[start:]


def _safetensors(rng: random.Random, data: bytes) -> bytes:
    """A changed header, whose length is right or lies."""
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.dumps(change_document(rng, json.loads(data[8 : 8 + size]))).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return data
    said = len(header) if rng.random() < 0.8 else rng.choice((0, 1, size * 2, 2**63, 2**64 - 1))
    return said.to_bytes(8, "little") + header + data[8 + size :]


def _gzip(rng: random.Random, data: bytes) -> bytes:
    try:
        return gzip.compress(_cells(rng, gzip.decompress(data)), mtime=0)
    except (OSError, EOFError, zlib.error):
        return data


def _arrow(form: str, rng: random.Random, data: bytes) -> bytes:
    """A table whose columns have other names and types."""
    del data
    kinds = [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.bool_(),
        pa.null(),
    ]
    kinds += [pa.date32(), pa.timestamp("ns"), pa.duration("s"), pa.decimal128(20, 3), pa.list_(pa.int8())]
    kinds += [pa.dictionary(pa.int8(), pa.string()), pa.struct([("a", pa.int8())]), pa.float64(), pa.int64()]
    columns, size = {}, rng.randint(0, 4)
    for name in (
        "user",
        "item",
        *rng.sample(["score", "rank", "grade", "time", "user", "é\0"], rng.randint(0, 3)),
    ):
        values = [rng.choice([1, 2, 3, None, -1]) for _ in range(size)]
        column = pa.array(values, pa.int64())
        try:
            columns[name] = column.cast(rng.choice(kinds)) if rng.random() < 0.7 else column
        except pa.ArrowException:
            columns[name] = pa.nulls(size, rng.choice(kinds))
    try:
        return arrow_bytes(pa.table(columns), form)
    except (pa.ArrowException, ValueError):
        return arrow_bytes(pa.table({"user": [1]}), form)


STRUCTURE: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "json": _json,
    "result": _result,
    "cells": _cells,
    "toml": _toml,
    "zip": _zip,
    "npy": _npy,
    "safetensors": _safetensors,
    "gzip": _gzip,
    "parquet": partial(_arrow, "parquet"),
    "arrow": partial(_arrow, "arrow"),
}


@cache
def all_files() -> list[bytes]:
    """Every valid file, for pieces that are put into others."""
    return sorted({reader.data for reader in readers()})


def damaged(rng: random.Random, reader: Reader, data: bytes) -> bytes:
    """The file after one change of its structure or of its bytes."""
    change = STRUCTURE.get(reader.form)
    if change is None or rng.random() < 0.4:
        return damage(rng, data, all_files())
    try:
        return change(rng, data)
    except (RecursionError, ValueError):  # no longer of that form: it was damaged before
        return damage(rng, data, all_files())
