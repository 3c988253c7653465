"""Qrels, Run and the reports of ranx: nested dicts {query: {document: number}}, in order when looked at."""

from __future__ import annotations

import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, KeysView, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from recsys.compat.ranx import add_modules
from recsys.errors import (
    FileError,
    InputError,
    MissingFileError,
    NotDefinedError,
    RecsysError,
    needs_extra,
)
from recsys.inputs.files import write_bytes, write_text
from recsys.inputs.files.formats import UNPACKED_RATIO, FileContent, most_unpacked
from recsys.records.arrays import Array

__all__ = ["FrozensetDict", "OptimizationReport", "Qrels", "Report", "Run"]

Nested = dict[str, dict[str, Any]]
_Number = TypeVar("_Number", int, float)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"
_KINDS = ("json", "trec", "gz", "parquet")
_FINITE: Mapping[Any, float] = {math.inf: 1e300, -math.inf: -1e300}


@contextmanager
def read_errors_of(path: str) -> Iterator[None]:
    """Errors inside say that the file cannot be read."""
    try:
        yield
    except RecsysError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"there is no file {path}.", hint="Check the path.") from error
    except Exception as error:  # of many types where a file is damaged
        raise FileError(
            f"{path} cannot be read ({error}).",
            hint="Check the path, and that the file is what its name says.",
        ) from error


def finite(run: Mapping[str, Mapping[str, Any]]) -> Nested:
    """A run with large numbers for infinite scores, which keep their places so."""
    return {
        query: {d: _FINITE.get(s, s) if isinstance(s, float | np.floating) else s for d, s in found.items()}
        for query, found in run.items()
    }


class UnlikeQueriesError(InputError, AssertionError):
    """Qrels and runs are not about the same queries; ranx raises AssertionError."""


class _NestedNumbers(Generic[_Number]):
    """What Qrels and Run share. Queries are in order at once, documents when they are read."""

    number: ClassVar[type]
    trec_line: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = _KINDS

    def __init__(self, content: Mapping[str, Mapping[str, Any]] | None, name: str | None) -> None:
        self.name = name
        self.sorted = content is not None
        self._in_order = content is None
        self.nested: Nested = {} if content is None else {q: dict(content[q]) for q in sorted(content.keys())}
        kinds = set(map(type, chain.from_iterable(found.values() for found in self.nested.values())))
        if not kinds <= {self.number, int}:
            self.nested = {q: self._numbers(found.items()) for q, found in self.nested.items()}

    @classmethod
    def _numbers(cls, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        try:
            return {document: cls.number(value) for document, value in pairs}
        except OverflowError as error:
            raise InputError(f"a score is beyond the range of floats ({error}).") from error

    def _content(self) -> Nested:
        """The nested dict as ranx shows it: documents by descending number, equal ones as they were."""
        if not self._in_order:
            self.nested = {
                query: self._numbers(sorted(found.items(), key=lambda pair: -pair[1]))
                for query, found in self.nested.items()
            }
            self._in_order = True
        return self.nested

    def _replace(self, content: Nested) -> None:
        self.nested, self._in_order = content, True

    def keys(self) -> KeysView[str]:
        """The query ids."""
        return self.nested.keys()

    def add_score(self, q_id: str, doc_id: str, score: float) -> None:
        """Give a document of a query its number, or change it."""
        self._content().setdefault(q_id, {})[doc_id] = self.number(score)
        self.sorted = False

    def add(self, q_id: str, doc_ids: Sequence[str], scores: Sequence[float]) -> None:
        """Add a query, or replace it."""
        self.add_multi([q_id], [doc_ids], [scores])

    def add_multi(
        self, q_ids: Sequence[str], doc_ids: Sequence[Sequence[str]], scores: Sequence[Sequence[float]]
    ) -> None:
        """Add several queries, or replace them."""
        for query, documents, numbers in zip(q_ids, doc_ids, scores, strict=True):
            self.nested[query] = self._numbers(zip(documents, numbers, strict=True))
        self.sort()

    def sort(self) -> None:
        """Put queries in order of their ids, documents by descending number."""
        self.nested = {query: self.nested[query] for query in sorted(self.nested)}
        self.sorted, self._in_order = True, False

    def get_query_ids(self) -> list[str]:
        return list(self.nested)

    def get_doc_ids_and_scores(self) -> list[dict[str, Any]]:
        return list(self._content().values())

    def to_typed_list(self) -> list[Array]:
        """One array per query: the hash of each document and its number. Metrics on arrays read it."""
        if not self.sorted:
            self.sort()
        rows = [
            [(hash(document), number) for document, number in found.items()]
            for found in self._content().values()
        ]
        return [np.array(pairs, dtype=np.float64).reshape(-1, 2) for pairs in rows]

    def to_dict(self) -> Nested:
        """A copy as a plain nested dict."""
        return {query: dict(found) for query, found in self._content().items()}

    def to_dataframe(self) -> Any:
        """A pandas table with the columns q_id, doc_id and score."""
        import pandas as pd

        rows = [
            (q, document, number)
            for q, found in self._content().items()
            for document, number in found.items()
        ]
        return pd.DataFrame(rows, columns=["q_id", "doc_id", "score"])

    def save(self, path: str | None = None, kind: str | None = None) -> None:
        """Write a file; what it is, its name says: .json, .trec, .txt, .parquet, .parq, and .lz4 of a run.

        Without a path: qrels.json or run.json.
        """
        path = path or f"{type(self).__name__.lower()}.json"
        kind = _file_kind(path, kind, self.kinds)
        if not self.sorted:
            self.sort()
        if kind == "json":
            write_text(path, json.dumps(self.to_dict(), indent=2))
        elif kind == "lz4":
            save_lz4(self.to_dict(), path)
        elif kind == "parquet":
            write_bytes(path, self.to_dataframe().to_parquet(index=False))
        else:
            lines = (
                self.trec_line.format(
                    query=query, document=document, rank=rank, number=number, name=self.name
                )
                for query, found in self._content().items()
                for rank, (document, number) in enumerate(found.items(), start=1)
            )
            write_text(path, "\n".join(lines))

    @classmethod
    def _read(cls, path: str, kind: str) -> tuple[Mapping[str, Mapping[str, Any]], str | None]:
        """The content of a file, and the name of the run in it."""
        if kind == "lz4":
            return load_lz4(path), None
        data = FileContent(path, Path(path)).data  # unpacked
        if kind == "json":
            return json.loads(data.decode("utf-8-sig")), None
        found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        name, columns = None, cls.trec_line.split()
        for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"):
            cells = line.split()
            if len(cells) != len(columns):
                raise InputError(
                    f"{line.strip()!r} has {len(cells)} columns.",
                    hint=f"A line of a {cls.__name__} has {len(columns)}: {cls.trec_line}.",
                )
            found[cells[0]][cells[2]] = cls.number(cells[columns.index("{number}")])
            name = name or (cells[5] if "{name}" in columns else None)
        return found, name

    @classmethod
    def from_dict(cls, d: Mapping[str, Mapping[str, _Number]], name: str | None = None) -> Self:
        return cls(d, name)

    @classmethod
    def from_file(cls, path: str, kind: str | None = None, name: str | None = None) -> Self:
        """Read .json, .trec, .txt, a gzipped TREC file, .parquet, or .lz4 of a run."""
        kind = _file_kind(path, kind, cls.kinds)
        if kind == "parquet":
            return cls.from_parquet(path, name=name)
        with read_errors_of(path):
            content, name_in_file = cls._read(path, kind)
            return cls(content, name_in_file if name is None else name)

    @classmethod
    def from_df(
        cls,
        df: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        name: str | None = None,
    ) -> Self:
        """From a pandas table with text ids, and whole numbers for Qrels or floats for a Run."""
        for column in (q_id_col, doc_id_col):
            if df[column].dtype.kind not in "OUT" and str(df[column].dtype) not in ("str", "string"):
                raise TypeMismatchError(
                    f"column {column!r} is {df[column].dtype}.",
                    hint="Query and document ids are text: .astype(str).",
                )
        wanted = np.float64 if cls.number is float else np.int64
        if df[score_col].dtype != wanted:
            raise TypeMismatchError(
                f"column {score_col!r} is {df[score_col].dtype}.",
                hint=f"Scores of a {cls.__name__} are {np.dtype(wanted)}: .astype({cls.number.__name__}).",
            )
        return cls(dataframe_to_dict(df, q_id_col, doc_id_col, score_col), name)

    @classmethod
    def from_parquet(
        cls,
        path: str,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        pd_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """From a Parquet file with these columns; `pd_kwargs` are those of pandas.read_parquet."""
        import pandas as pd

        with read_errors_of(path):
            table = pd.read_parquet(path, **(pd_kwargs or {}))
            return cls.from_df(table, q_id_col, doc_id_col, score_col, name)

    @property
    def size(self) -> int:
        """How many queries there are."""
        return len(self.nested)

    def __getitem__(self, q_id: str) -> dict[str, Any]:
        return dict(self._content()[q_id])

    def __len__(self) -> int:
        return len(self.nested)

    def __repr__(self) -> str:
        return repr(self._content())


class TypeMismatchError(InputError, AssertionError):
    """Something is of another type or kind than ranx takes; it raises AssertionError."""


class Qrels(_NestedNumbers[int]):
    """What is relevant: {query: {document: grade}}.

    >>> Qrels({"q1": {"d1": 1, "d2": 3}})["q1"]
    {'d2': 3, 'd1': 1}
    """

    number = int
    trec_line = "{query} 0 {document} {number}"

    def __init__(self, qrels: Mapping[str, Mapping[str, int]] | None = None, name: str | None = None) -> None:
        super().__init__(qrels, name)

    qrels = property(_NestedNumbers._content, _NestedNumbers._replace, doc="The nested dict.")  # noqa: SLF001

    def set_relevance_level(self, rel_lvl: int = 1) -> None:
        """Lower every grade by rel_lvl - 1."""
        content = self._content()
        self._replace(
            {q: {d: grade - (rel_lvl - 1) for d, grade in found.items()} for q, found in content.items()}
        )

    @staticmethod
    def from_ir_datasets(dataset_id: str) -> Qrels:
        """The qrels of a data set of the package ir_datasets, which may download it."""
        with needs_extra("ir_datasets", None, "Qrels.from_ir_datasets"):
            import ir_datasets
        return Qrels(ir_datasets.load(dataset_id).qrels_dict(), name=dataset_id)


class Run(_NestedNumbers[float]):
    """What a system found: {query: {document: score}}, with what `evaluate` computed of it.

    >>> run = Run({"q1": {"d1": 1, "d2": 3}}, name="bm25")
    >>> run["q1"], run.name
    ({'d2': 3.0, 'd1': 1.0}, 'bm25')
    """

    number = float
    trec_line = "{query} Q0 {document} {rank} {number} {name}"
    kinds = (*_KINDS, "lz4")

    def __init__(self, run: Mapping[str, Mapping[str, float]] | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.metadata: dict[str, Any] = {}
        self.scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.mean_scores: dict[str, Any] = {}
        self.std_scores: dict[str, Any] = {}

    run = property(_NestedNumbers._content, _NestedNumbers._replace, doc="The nested dict.")  # noqa: SLF001

    def make_comparable(self, qrels: Qrels) -> Run:
        """Give every query of the qrels a list, if need be an empty one, and drop all other queries."""
        self.nested = {query: self.nested.get(query, {}) for query in qrels.keys()}  # noqa: SIM118
        self.sort()
        return self

    @staticmethod
    def from_ranxhub(id: str) -> Run:  # noqa: A002 - the name that ranx gives it
        """Not offered: nothing here downloads."""
        raise NotDefinedError(
            f"{id!r} is on ranxhub, and nothing here downloads.",
            hint="Download the file with ranx and read it with Run.from_file(path, kind='lz4').",
        )


def dataframe_to_dict(df: Any, q_id_col: str, doc_id_col: str, score_col: str) -> Nested:
    """A table as a nested dict."""
    out: Nested = {}
    columns = (df[name].tolist() for name in (q_id_col, doc_id_col, score_col))
    for query, document, number in zip(*columns, strict=True):
        out.setdefault(query, {})[document] = number
    return out


def _file_kind(path: str, kind: str | None, known: Sequence[str]) -> str:
    if kind is None:
        suffix = os.path.splitext(path)[1][1:]  # noqa: PTH122 - ".trec" alone is a suffix to ranx as well
        kind = {"txt": "trec", "parq": "parquet"}.get(suffix, suffix)
    if kind not in known:
        raise TypeMismatchError(f"{kind!r} is not a kind of file.", hint=f"One of {', '.join(known)}.")
    return kind


def _lz4_and_cbor() -> tuple[Any, Any]:
    with needs_extra("lz4 cbor2", None, "a run as .lz4"):
        import cbor2
        import lz4.frame
    return lz4.frame, cbor2


def save_lz4(content: Mapping[str, Any], path: str) -> None:
    """CBOR, compressed twice, as ranx writes it."""
    frame, cbor2 = _lz4_and_cbor()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, frame.compress(frame.compress(cbor2.dumps(dict(content)), compression_level=16)))


def load_lz4(path: str) -> dict[str, Any]:
    """What `save_lz4` wrote."""
    frame, cbor2 = _lz4_and_cbor()
    with read_errors_of(path):
        content = FileContent(path, Path(path)).data
        most = most_unpacked(len(content))
        for _ in range(2):
            unpacking = frame.LZ4FrameDecompressor()
            content = unpacking.decompress(content, max_length=most)
            if not unpacking.eof:
                raise FileError(f"{path} is cut off, or unpacks to over {UNPACKED_RATIO} times its size.")
        found: dict[str, Any] = cbor2.loads(content)
        return found


class FrozensetDict(MutableMapping[Any, Any]):
    """A dict in which (a, b) and (b, a) are one key."""

    def __init__(self, arg: Mapping[Any, Any] | None = None) -> None:
        self._map: dict[frozenset[Any], Any] = {}
        self.update(arg or {})

    def __getitem__(self, key: Iterable[Any]) -> Any:
        return self._map[frozenset(key)]

    def __setitem__(self, key: Iterable[Any], value: Any) -> None:
        self._map[frozenset(key)] = value

    def __delitem__(self, key: Iterable[Any]) -> None:
        del self._map[frozenset(key)]

    def __iter__(self) -> Iterator[frozenset[Any]]:
        return iter(self._map)

    def __len__(self) -> int:
        return len(self._map)


def _mark(at: int, alphabet: str) -> str:
    """The letters of the model with this number: a to z, then aa, ab and so on."""
    before, last = divmod(at, len(alphabet))
    return (_mark(before - 1, alphabet) if before else "") + alphabet[last]


class _Written(ABC):
    """How a report writes metrics and numbers."""

    labels: ClassVar[Mapping[str, str]] = {
        "hits": "Hits", "hit_rate": "Hit Rate", "precision": "P", "recall": "Recall", "f1": "F1",
        "r-precision": "R-Prec", "mrr": "MRR", "map": "MAP", "dcg": "DCG", "dcg_burges": "DCG Burges",
        "ndcg": "NDCG", "ndcg_burges": "NDCG Burges", "bpref": "BPref",
    }  # fmt: skip
    rounding_digits: int
    show_percentages: bool

    def format_score(self, score: float) -> str:
        digits = max(0, self.rounding_digits - 2) if self.show_percentages else self.rounding_digits
        return f"{round(score * (100 if self.show_percentages else 1), digits):.{digits}f}"

    @abstractmethod
    def _columns(self) -> dict[str, list[str]]:
        """What `to_table` shows."""

    def to_table(self) -> str:
        from recsys.display.text_tables import text_table

        return text_table(self._columns())

    def __repr__(self) -> str:
        return self.to_table()

    def get_metric_label(self, m: str) -> str:
        name, cut, rest = m.partition("@") if "@" in m else m.partition("-l")
        return (self.labels.get(name) or name.replace("rbp", "RBP")) + cut + rest


@dataclass(repr=False, eq=False)
class Report(_Written):
    """What `compare` found: the mean of every metric and model, and which models differ.

    `comparisons[a, b][metric]` has the p-value and whether it is significant, `win_tie_loss[a, b][metric]` on
    how many queries a is better, equal, worse.
    """

    model_names: list[str]
    results: dict[str, dict[str, float]]
    comparisons: FrozensetDict
    metrics: list[str]
    max_p: float
    win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]]
    rounding_digits: int = 3
    show_percentages: bool = False
    stat_test: str = "student"

    def get_stat_test_label(self, stat_test: str) -> str:
        return {
            "fisher": "Fisher's randomization test",
            "student": "paired Student's t-test",
            "tukey": "Tukey's HSD test",
        }[stat_test]

    def _beaten(self, model: str, metric: str) -> list[int]:
        """The numbers of the models that this one is significantly better than."""
        return [
            at
            for at, other in enumerate(self.model_names)
            if model != other
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
        ]

    def _marks(self, models: Iterable[int], alphabet: str) -> str:
        """The letters of these models, with commas if there are more models than letters."""
        between = "" if len(self.model_names) <= len(alphabet) else ","
        return between.join(_mark(at, alphabet) for at in models)

    def get_superscript_for_table(self, model: str, metric: str) -> str:
        return self._marks(self._beaten(model, metric), _RAISED)

    def get_superscript_for_latex(self, model: str, metric: str) -> str:
        return self._marks(self._beaten(model, metric), _LETTERS)

    def get_phantoms_for_latex(self, model: str, metric: str) -> str:
        """The letters that are not raised, so that columns stay straight."""
        raised = self._beaten(model, metric)
        others = (at for at, name in enumerate(self.model_names) if name != model and at not in raised)
        return self._marks(others, _LETTERS)

    def _columns(self) -> dict[str, list[str]]:
        columns: dict[str, list[str]] = {
            "#": [_mark(at, _LETTERS) for at in range(len(self.model_names))],
            "Model": list(self.model_names),
        }
        for metric in self.metrics:
            columns[self.get_metric_label(metric)] = [
                self.format_score(self.results[model][metric]) + self.get_superscript_for_table(model, metric)
                for model in self.model_names
            ]
        return columns

    def to_latex(self) -> str:
        """A LaTeX table; it needs the packages booktabs and graphicx."""
        from recsys.display.markup import latex_text

        rounded = {
            model: {metric: round(value, self.rounding_digits) for metric, value in row.items()}
            for model, row in self.results.items()
        }
        best = {m: max(self.model_names, key=lambda model: rounded[model][m]) for m in self.metrics}
        rows = []
        for at, model in enumerate(self.model_names):
            cells = [_mark(at, _LETTERS), latex_text(model)]
            for metric in self.metrics:
                score = self.format_score(self.results[model][metric])
                if model == best[metric] and rounded[model][metric] > 0:
                    score = rf"\textbf{{{score}}}"
                raised = self.get_superscript_for_latex(model, metric)
                phantoms = self.get_phantoms_for_latex(model, metric)
                cells.append(
                    score + (f"$^{{{raised}}}$" if raised else "")
                    + (rf"\hphantom{{$^{{{phantoms}}}$}}" if phantoms else "")
                )  # fmt: skip
            rows.append(" & ".join(cells) + r" \\")
        header = [r"\#", "Model", *(latex_text(self.get_metric_label(metric)) for metric in self.metrics)]
        caption = (
            r"\caption{Mean of each metric, the highest in bold. A letter names a model that is exceeded "
            rf"significantly: {self.get_stat_test_label(self.stat_test)}, $p \le {self.max_p}$.}}"
        )
        return "\n".join([
            r"% \usepackage{booktabs}", r"% \usepackage{graphicx}",
            r"\begin{table*}[ht]", r"\centering",
            caption,
            r"\resizebox{0.8\textwidth}{!}{",
            rf"\begin{{tabular}}{{c|l{'|c' * len(self.metrics)}}}", r"\toprule",
            " & ".join(rf"\textbf{{{cell}}}" for cell in header) + r" \\", r"\midrule",
            *rows,
            r"\bottomrule", r"\end{tabular}", "}", r"\label{tab:results}", r"\end{table*}",
        ])  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Scores, p-values and wins, ties, losses of every model, and what was compared."""
        content: dict[str, Any] = {
            "stat_test": self.stat_test,
            "metrics": self.metrics,
            "model_names": self.model_names,
        }
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            content[model] = {
                "scores": self.results[model],
                "comparisons": {
                    other: {m: self.comparisons[model, other][m]["p_value"] for m in self.metrics}
                    for other in others
                },
                "win_tie_loss": {
                    other: {m: self.win_tie_loss[model, other][m] for m in self.metrics} for other in others
                },
            }
        return content

    def to_dataframe(self) -> Any:
        """A pandas table: model_names and one column per metric."""
        import pandas as pd

        rows = [{"model_names": model, **self.results[model]} for model in self.model_names]
        return pd.DataFrame(rows, columns=["model_names", *self.metrics])

    def save(self, path: str) -> None:
        """Write `to_dict` as JSON."""
        write_text(path, json.dumps(self.to_dict(), indent=4))

    def print_results(self) -> None:
        """Print the means as JSON."""
        print(json.dumps(self.results, indent=4))  # noqa: T201 - that is what it is for


@dataclass(repr=False, eq=False)
class OptimizationReport(_Written):
    """What `optimize_fusion` tried, and what came of it."""

    method: str
    configs: list[str]
    results: list[float]
    metric: str
    rounding_digits: int = 3
    show_percentages: bool = False

    def _columns(self) -> dict[str, list[str]]:
        best = int(np.argmax(self.results))
        return {
            self.method: [str(config) for config in self.configs],
            self.get_metric_label(self.metric): [self.format_score(score) for score in self.results],
            "": ["best" if at == best else "" for at in range(len(self.results))],
        }


add_modules(
    __name__,
    {
        "qrels": {
            "Qrels": Qrels,
            "get_file_kind": lambda path="qrels.json", kind=None: _file_kind(path, kind, Qrels.kinds),
        },
        "run": {
            "Run": Run,
            "get_file_kind": lambda path="run.json", kind=None: _file_kind(path, kind, Run.kinds),
        },
        "report": {"Report": Report},
        "optimization_report": {"OptimizationReport": OptimizationReport},
        "frozenset_dict": {"FrozensetDict": FrozensetDict},
    },
)
