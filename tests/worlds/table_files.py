"""Files of lists and truth, readable ones and faulty ones, and what each of them comes to.

Every case of the tests of the readers stands here, so that it is read by every way that leads to a file: in
memory, with memory= and on Spark (tests/evaluation/test_readers_alike.py, tests/spark/test_readers_alike.py,
scripts/fuzz.py).
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import recsys
import recsys.spark
from recsys.errors import ColumnError, FileError, RecsysError
from recsys.records.arrays import Lists

LISTS = {"007": ["NA", "b"], "null": ["None"]}
READABLE = {
    "comma.csv": "user_id,item_id,score\n007,NA,0.9\n007,b,0.5\nnull,None,1e-3\n",
    "order.csv": "score,item_id,user_id\n0.5,b,007\n0.9,NA,007\n1e-3,None,null\n",
    "ranks.csv": "user,item,rank\n007,b,2\n007,NA,1\nnull,None,1\n",
    "blank-lines.csv": "\n\nuser,item\n\n007,NA\n\n007,b\nnull,None\n\n",
    "no-newline.csv": "user,item\n007,NA\n007,b\nnull,None",
    "windows.csv": "user,item\r\n007,NA\r\n007,b\r\nnull,None\r\n",
    "old-mac.csv": "user,item\r007,NA\r007,b\rnull,None\r",
    "quoted.csv": '"user","item","note"\n"007","NA","a ""b"", c"\n007,"b","two\nlines"\nnull,"None",\n',
    "mark.csv": "\ufeffuser,item\n007,NA\n007,b\nnull,None\n",
    "semicolon.csv": "user;item\n007;NA\n007;b\nnull;None\n",
    "tabs.tsv": "user\titem\n007\tNA\n007\tb\nnull\tNone\n",
    "tabs.txt": "user\titem\n007\tNA\n007\tb\nnull\tNone\n",
    "recbole.inter": "user_id:token\titem_id:token\ttime:float\n007\tNA\t1\n007\tb\t2\nnull\tNone\t3\n",
    "trec.run": "# made today\n007 Q0 NA 9 0.9 tag\n\n007\tQ0  b 1 0.5 tag\r\n null Q0 None 1 -3 tag \n",
    "trec-by-content.txt": "007 Q0 NA 9 0.9 tag\n007 Q0 b 1 0.5 tag\nnull Q0 None 1 -3 tag\n",
    "lists.json": '{"007": ["NA", "b"], "null": ["None"]}',
    "scores.json": '{"007": {"b": 0.5, "NA": 0.9}, "null": {"None": 1}}',
    "pairs.json": '{"007": [["b", 0.5], ["NA", 0.9]], "null": [["None", 1]]}',
    "rows.json": '[{"user": "007", "item": "b", "score": 0.5}, {"user": "007", "item": "NA", "score": 0.9},'
    ' {"score": 1, "user": "null", "item": "None"}]',
    "rows.jsonl": '{"user": "007", "item": "NA"}\n\n{"user": "007", "item": "b"}\n'
    '{"user": "null", "item": "None"}',
    "users.jsonl": '{"user": "007", "items": ["NA", "b"]}\n{"user": "null", "items": ["None"]}\n',
    "json-by-content": ' {"007": ["NA", "b"], "null": ["None"]}',
    "jsonl-by-content": '{"user": "007", "items": ["NA", "b"]}\n{"user": "null", "items": ["None"]}\n',
}

FAULTS = {
    "empty.csv": ("", "is empty"),
    "blank.csv": ("\n \n", "is empty"),
    "header.csv": ("user,item\n", "no rows"),
    "short.csv": ("user,item\nu,a\nu\n", "line 3: 1 columns, expected 2"),
    "long.csv": ("user,item\nu,a\n\nu,a,b\n", "line 4: 3 columns, expected 2"),
    "quote.csv": ('user,item\nu,"a\nu,b\n', "line 2: unexpected end"),
    "after-quote.csv": ('user,item\nu,"a"b\n', "line 2"),
    "nul.csv": ("user,item\nu,a\x00\n", "NUL"),
    "missing.csv": ("user,item\nu,a\nu,\n", "line 3: the item id is missing"),
    "number.csv": ("user,item,score\nu,a,1\nu,b,high\n", "line 3: the score 'high' is not a number"),
    "hole.csv": ("user,item,score\nu,a,1\nu,b,\n", "line 3: the score '' is not a number"),
    "underscore.csv": ('user,item,score\nu,"a",1_000\n', "line 2: the score '1_000' is not a number"),
    "nan.csv": ("user,item,score\nu,a,1\nu,b,nan\n", "line 3: the score nan"),
    "rank.csv": ("user,item,rank\nu,a,0\n", "line 2: the rank 0"),
    "ranks.csv": ("user,item,rank\nu,a,1\n\nu,b,1\n", "line 4: .*another item of that user"),
    "twice.csv": ("user,user,item\nu,v,a\n", "'user' occurs twice"),
    "nothing.csv": ("1,2,3\n4,5,6\n", r"recognised as the user\..* write user,item,score above"),
    "short.run": ("q Q0 d 1 0.5 t\nq Q0 d 1 0.5\n", "line 2: 5 columns, expected 6"),
    "score.run": ("q Q0 d 1 0.5 t\nq Q0 e 2 x t\n", "line 2: the score 'x'"),
    "wrong.run": ("q 0 d 1\n", "looks like judgements"),
    "run.qrels": ("q Q0 d 1 0.5 t\n", "looks like a run"),
    "cut.json": ('{"u": ["a", "b"', "line 1: not valid JSON"),
    "twice.json": ('{"u": ["a"], "u": ["b"]}', "'u' occurs twice"),
    "nan.json": ('{"u": {"a": NaN}}', "NaN is not a number"),
    "number.json": ("3", "another form"),
    "none.json": ("{}", "no users"),
    "null.json": ('{"u": null}', "'u' holds None"),
    "mixed.json": ('{"u": ["a"], "v": {"b": 1}}', "v'? holds dict"),
    "deep.json": ("[" * 100_000, "cannot be parsed|not valid"),
    "half.json": ('{"u": ["\\ud800"]}', "cannot be parsed"),
    "half.jsonl": ('{"user": "u", "item": "\\udfff"}\n', "cannot be parsed"),
    "line.jsonl": ('{"user": "u", "item": "a"}\n{"user": "u", \n', "line 2: not valid JSON"),
    "keys.jsonl": ('{"user": "u", "item": "a"}\n{"user": "u"}\n', "row 2 has the keys user"),
    "twice.jsonl": ('{"user": "u", "items": ["a"]}\n{"user": "u", "items": ["b"]}\n', "'u' occurs twice"),
}


def _parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


BIG = 2**53
_IDS = {
    "int64": pa.array([1, 1, 2]),
    "int8": pa.array([1, 1, 2], pa.int8()),
    "uint64": pa.array([1, 1, 2], pa.uint64()),
    "uint64 beyond": pa.array([1, 1, 2**63], pa.uint64()),
    "float": pa.array([1.0, 1.0, 2.0]),
    "fractions": pa.array([1.0, 1.0, 2.5]),
    "text": pa.array(["1", "1", "2"]),
    "zeros": pa.array(["1", "1", "01"]),
    "words": pa.array(["a", "a", "b"]),
    "large text": pa.array(["a", "a", "b"], pa.large_string()),
    "categories": pa.array(["a", "a", "b"]).dictionary_encode(),
    "missing": pa.array([1, 1, None]),
    "bool": pa.array([True, True, False]),
    "date": pa.array([1, 1, 2], pa.date32()),
    "time": pa.array([1, 1, 2], pa.timestamp("us")),
    "bytes": pa.array([b"a", b"a", b"b"]),
    "decimal": pa.array([1, 1, 2]).cast(pa.decimal128(19, 0)),
    "lists": pa.array([[1], [1], [2]]),
}
_SCORES = {
    "float32": pa.array([0.1, 0.2, 0.3], pa.float32()),
    "text": pa.array(["0.5", "1e1", "-3"]),
    "underscore": pa.array(["1_0", "9", "8"]),
    "beyond": pa.array([BIG, BIG + 1, 0]),
    "unsigned": pa.array([2**64 - 1, 2**64 - 2, 0], pa.uint64()),
    "decimal": pa.array([BIG, BIG + 1, 0]).cast(pa.decimal128(20, 0)),
    "missing": pa.array([0.1, None, 0.3]),
    "infinite": pa.array([0.1, np.inf, 0.3]),
    "date": pa.array([1, 2, 3], pa.date32()),
}
TYPED = {
    **{f"user {n}.parquet": _parquet(user=c, item=[7, 8, 7], score=[0.1, 0.2, 0.3]) for n, c in _IDS.items()},
    **{f"item {n}.parquet": _parquet(user=[1, 2, 3], item=c, rank=[1, 1, 1]) for n, c in _IDS.items()},
    **{f"score {n}.parquet": _parquet(user=[1, 1, 2], item=[7, 8, 7], score=c) for n, c in _SCORES.items()},
    "grade.parquet": _parquet(user=[1, 1, 2], item=[7, 8, 7], grade=[2, 0, 1], time=[5, 6, 7]),
    "both.parquet": _parquet(user=[1, 1], item=[7, 8], score=[0.9, 0.1], rank=[2, 1]),
    "no rows.parquet": _parquet(user=pa.array([], pa.int64()), item=pa.array([], pa.int64()), rank=[]),
    "twice.parquet": _parquet(user=[1], User=[2], item=[3], rank=[1]),
    "cut.parquet": _parquet(user=[1], item=[2], rank=[1])[:-9],
    "packed.parquet": gzip.compress(_parquet(user=[1], item=[2], rank=[1])),
}
ROWS = "user,item,score\n1,a,0.9\n1,b,0.5\n2,b,0.9\n2,a,0.5\n3,c,0.7\n3,a,0.1\n"
WORSE = ROWS.replace("0.9", "0.1").replace("0.7", "0.05")
TEXTS = {
    "integers.csv": "user,item,rank\n1,7,1\n1,8,2\n",
    "fraction.csv": "user,item,rank\n1,7.5,1\n1,8,2\n",
    "power.csv": "user,item,rank\n1,1e3,1\n1,1000,2\n",
    "joined.csv": "user,item,rank\n1,1_0,1\n1,8,2\n",
    "blank id.csv": "user,item,rank\n1, 7,1\n1,8,2\n",
    "same.csv": "user,item,rank\n1,7,1\n1,007,2\n",
    "floats.csv": "user,item,rank\n1,7.0,1\n2,8.00,1\n",
    "joined score.csv": "user,item,score\n1,a,1_0\n1,b,9\n",
    "beyond.csv": f"user,item,score\n1,b,{BIG + 1}\n1,a,{BIG}\n2,a,0.5\n",
    "beyond later.csv": f"user,item,score\n2,a,0.5\n2,b,0.1\n1,b,{BIG + 1}\n1,a,{BIG}\n",
    "forms.csv": "user,item,score\n1,a,1e-3\n1,b, 5\n1,c,.5\n1,d,+7.\n",
    "inf.csv": "user,item,score\n1,a,inf\n1,b,5\n",
    "single quotes.csv": "user,item,score\n1,'a',0.9\n1,b,0.5\n",
    "quotes later.csv": ROWS + '4,"b,x",0.9\n4,"c\nd",0.5\n4,5" disk,0.2\n4,e,0.1\n',
    "quoted header.csv": '"user","item","sc\nore",rank\n1,a,0.1,1\n1,b,0.2,2\n',
    "trailing comma.csv": "user,item,score\n1,a,0.9,\n1,b,0.5\n",
    "nul id.csv": "user,item,score\n1,a\0,0.9\n1,b,0.5\n",
    "latin.csv": "user,item,score\n1,a,0.9\n1,\u00e9,0.5\n".encode("latin-1"),
    "utf-16.csv": ROWS.encode("utf-16"),
    "mark.csv": "\ufeff" + ROWS,
    "mark inside.csv": ROWS + "\ufeff4,a,0.3\n",
    "mixed ends.csv": "user,item,score\r\n1,a,0.9\r1,b,0.5\n2,b,0.9\r\n",
    "old mac scores.csv": ROWS.replace("\n", "\r"),
    "blank between.csv": ROWS.replace("2,b", "\n\n2,b"),
    "both.csv": "user,item,rank,score\n1,a,2,0.9\n1,b,1,0.5\n",
    "both wrong.csv": "user,item,rank,score\n1,a,2,high\n1,b,1,0.5\n",
    "gaps.csv": "user,item,rank\n1,a,2\n1,b,5\n",
    "half rank.csv": "user,item,rank\n1,a,1.5\n1,b,1\n",
    "case.csv": "case,user,item,rank\nc1,u,a,1\nc2,u,b,1\nc3,v,b,1\n",
    "grades.csv": "user,item,grade\n1,a,2\n1,b,0\n2,c,-1\n2,d,0.5\n",
    "high grade.csv": "user,item,grade\n1,a,high\n",
    "dated.csv": "user,item,grade,date\n1,a,2,2020-01-01\n1,b,3,2020-01-02\n",
    "ratings.data": "196\t242\t3\t881250949\n196\t302\t4\t891717742\n22\t377\t1\t878887116\n",
    "ratings.dat": "1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n",
    "scored.inter": 'user_id:token\titem_id:token\trating:float\n1\t"5\t0.5\n1\t6\t2\n2\t5\t1\n',
    "graded.qrels": "# judged\nq1 0 d1 1\n\nq1 0 d2 0\r\nq2 0 d1 2\n",
    "semicolons.csv": ROWS.replace(",", ";"),
    "pipes.tsv": ROWS.replace(",", "|"),
    "tabs.csv": ROWS.replace(",", "\t"),
    "from here.csv": ROWS,
    "select.csv": ROWS,
}
_INTEGERS = {"user": [1, 1], "item": [10, 20], "score": [3, 2]}
SEVERAL = {  # the first name is the one that is read; a folder or a pattern stands for the files below it
    "x[1].csv": {"x[1].csv": ROWS, "x1.csv": WORSE},
    "run[a]/l.csv": {"run[a]/l.csv": ROWS, "runa/l.csv": WORSE},
    "x?.parquet": {"x?.parquet": _parquet(**_INTEGERS), "xy.parquet": b"PAR1"},
    "~x.parquet": {"~x.parquet": _parquet(**_INTEGERS)},
    "item=tent/l.csv": {"item=tent/l.csv": ROWS},
    "user=5/l.parquet": {"user=5/l.parquet": _parquet(**_INTEGERS)},
    "days/*/*.csv": {"days/item=1/a.csv": ROWS[:32], "days/item=2/a.csv": ROWS},
    "order": {"order/1.csv": ROWS[:32], "order/2.csv": "item,user,score\nb,2,0.9\na,2,0.5\n"},
    "rank": {"rank/1.csv": ROWS, "rank/2.csv": "user,item,rank\n4,b,1\n4,a,2\n"},
    "headless": {"headless/1.csv": ROWS[:32], "headless/2.csv": "2,b,0.9\n2,a,0.5\n"},
    "header only": {"header only/1.csv": ROWS[:16], "header only/2.csv": ROWS},
    "header twice": {"header twice/1.csv": ROWS[:16], "header twice/2.csv": ROWS[:16]},
    "quotes": {"quotes/1.csv": ROWS, "quotes/2.csv": '"user","item","score"\n4,"a,b",1\n'},
    "delimiters": {"delimiters/1.csv": ROWS, "delimiters/2.csv": "user;item;score\n4;a;1\n"},
    "packed": {"packed/1.csv": gzip.compress(ROWS.encode()), "packed/2.csv": "user,item,score\n4,a,1\n"},
    "fault": {"fault/1.csv": ROWS, "fault/2.csv": "user,item,score\n4,a,1\n4,b\n"},
    "formats": {"formats/1.csv": ROWS, "formats/2.parquet": _parquet(**_INTEGERS)},
    "widths": {
        "widths/1.parquet": _parquet(user=pa.array([1, 1], pa.int32()), item=[10, 20], score=[0.9, 0.5]),
        "widths/2.parquet": _parquet(user=[2**40], item=pa.array([20], pa.uint8()), score=[0.5]),
    },
    "floats": {
        "floats/1.parquet": _parquet(user=[1, 1], item=[10, 20], score=pa.array([0.9, 0.5], pa.float32())),
        "floats/2.parquet": _parquet(user=[2, 2], item=[10, 20], score=[0.1, 0.1 + 1e-12]),
    },
    "scores": {
        "scores/1.parquet": _parquet(**_INTEGERS),
        "scores/2.parquet": _parquet(user=[2, 2], item=[10, 20], score=[0.9, 1.4]),
    },
    "float ids": {
        "float ids/1.parquet": _parquet(user=[1, 1], item=[10, 20], score=[0.9, 0.5]),
        "float ids/2.parquet": _parquet(user=[2], item=[19.6], score=[0.9]),
    },
    "text ids": {
        "text ids/1.parquet": _parquet(user=[1, 1], item=[10, 20], score=[0.9, 0.5]),
        "text ids/2.parquet": _parquet(user=[2], item=["20"], score=[0.9]),
    },
    "swapped": {
        "swapped/1.parquet": _parquet(user=[1, 1], item=[10, 20], score=[0.9, 0.5]),
        "swapped/2.parquet": _parquet(score=[0.1, 0.5], item=[10, 20], user=[2, 2]),
    },
    "columns": {
        "columns/1.parquet": _parquet(**_INTEGERS),
        "columns/2.parquet": _parquet(**_INTEGERS, note=["a", "b"]),
    },
    "without types": {
        "without types/1.parquet": _parquet(**_INTEGERS),
        "without types/2.parquet": _parquet(**{name: pa.nulls(0) for name in _INTEGERS}),
    },
}
CASES: dict[str, Mapping[str, bytes | str]] = {
    **{name: {name: content} for name, content in READABLE.items()},
    **{f"packed {name}": {name: gzip.compress(content.encode())} for name, content in READABLE.items()},
    **{f"fault {name}": {name: content} for name, (content, _) in FAULTS.items()},
    **{name: {name: content} for name, content in TYPED.items()},
    **{f"text {name}": {name: content} for name, content in TEXTS.items()},
    **{f"several {name}": files for name, files in SEVERAL.items()},
}


def put(folder: Path, case: str, files: Mapping[str, bytes | str] | None = None) -> Path:
    """Write the files of a case, or others in their place, and return the path that is read."""
    files = CASES[case] if files is None else files
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / (case.removeprefix("several ") if case.startswith("several ") else next(iter(files)))


def read_alike(path: Path | str, kind: str, *, ids: Any = None, **asked: Any) -> tuple[Any, Any]:
    """What a file comes to in memory and with memory=, as lists or as truth: values, or the type of error.

    What memory= does not take by its rules counts as what it is in memory: files that are read whole, and
    lists that only the order of their rows ranks. Of a file with two faults either may be named.
    """
    try:
        data = recsys.read_file(path, kind, ids=ids or "auto")
    except RecsysError:
        data = None
    other = _other_side(data, path, ids)
    sides = (path, other) if kind == "lists" else (other, path)
    inside, beyond = (
        _outcome(recsys.evaluate, *sides, ids=ids or "auto", **asked, **more)
        for more in ({}, {"memory": "64GB"})
    )
    if isinstance(beyond, RecsysError) and is_refusal(beyond, data):
        return _compared(inside), _compared(inside)
    is_twice_wrong = ids == "int" and not isinstance(read_alike(path, kind, ids="str")[0], tuple)
    if is_twice_wrong and isinstance(inside, RecsysError) and isinstance(beyond, RecsysError):
        return type(inside), type(inside)
    return _compared(inside), _compared(beyond)


def read_on_spark(path: Path, kind: str, session: Any) -> tuple[Any, Any]:
    """What the rows of a file come to in memory and as a DataFrame of Spark, as in `read_alike`.

    Spark opens a Parquet file by itself, and is handed the rows of other files as they were read here. What
    it cannot open, or hold in its types, counts as the same.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        data = recsys.read_file(path, kind)
    except RecsysError:
        data = None
    is_parquet = path.suffix == ".parquet" and path.is_file() and _is_parquet(path)
    if not is_parquet and data is None:
        return None, None
    table = path if is_parquet else data.to_frame()
    try:
        frames = [
            session.read.parquet(str(path)) if is_parquet else session.createDataFrame(table),
            session.createDataFrame(_other_side(data, path, None)),
        ]
    except (PySparkException, Py4JJavaError):
        return None, None
    order = slice(None, None, 1 if kind == "lists" else -1)
    inside = _outcome(recsys.evaluate, *[table, _other_side(data, path, None)][order])
    cluster = _outcome(recsys.spark.evaluate, *frames[order])
    if isinstance(cluster, RecsysError) and is_refusal(cluster, data):
        return _compared(inside), _compared(inside)
    return _compared(inside), _compared(cluster)


def _outcome(evaluate: Any, *sides: Any, **asked: Any) -> Any:
    try:
        found = evaluate(*sides, ["ndcg@3", "mrr", "recall@2"], cautions="ignore", **asked)
    except RecsysError as error:
        return error
    return *(value.hex() for value in found.values()), dict(found.counts), found.notes["ids"]


def _compared(outcome: Any) -> Any:
    return type(outcome) if isinstance(outcome, RecsysError) else outcome


def is_refusal(error: RecsysError, data: Any) -> bool:
    """Whether memory= refuses by its own rules what was read in memory as `data`."""
    text = str(error)
    if isinstance(error, ColumnError) and "rows have no order" in text:
        return data is None or data.facts.arrangement is not None
    packed = "is packed, and beyond memory Parquet files" in text
    return isinstance(error, FileError) and (packed or "beyond memory Parquet and CSV files are read" in text)


def _other_side(data: Any, path: Path | str, ids: Any) -> pd.DataFrame:
    """A table that tells the rows of lists or truth apart: other grades for each item, or ranks."""
    if data is None:  # the ids have the types of the file, so that only the file is wrong
        schema = pq.read_schema(path) if str(path).endswith(".parquet") and _is_parquet(path) else None

        def of_type(column: str, texts: list[str]) -> list[Any]:
            number = schema is not None and column in schema.names and schema.field(column).type in _NUMBERS
            return [1, 2, 3] if ids == "int" or (number and ids != "str") else texts

        users, items = of_type("user", ["1", "u", "q"]), of_type("item", ["a", "b", "d"])
        return pd.DataFrame({"user": users, "item": items, "rank": 1})
    rows = data.to_frame()[["user", "item"]].drop_duplicates()
    place = rows.groupby("user").cumcount() + 1
    return rows.assign(grade=place) if isinstance(data, Lists) else rows.assign(rank=place)


_NUMBERS = (pa.int64(), pa.uint64(), pa.float64())


def _is_parquet(path: Path | str) -> bool:
    try:
        pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False
    return True
