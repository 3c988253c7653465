"""Small helpers that ranx shows: files and tables as nested dicts."""

from __future__ import annotations

from typing import Any

from recsys.compat.ranx.data_structures import Nested, Qrels, Run, dataframe_to_dict

__all__ = ["dataframe_to_dict", "python_dict_to_typed_list", "qrels_file_to_dict", "run_file_to_dict"]


def python_dict_to_typed_list(x: Nested, sort: bool = True) -> Any:
    """One array per query: the hash of each document and its number."""
    run = Run(x)
    run.nested = {query: run.nested[query] for query in x}
    if not sort:
        run.run = run.nested
    return run.to_typed_list()


def qrels_file_to_dict(path: str) -> Nested:
    """A TREC file of judgements."""
    return Qrels.from_file(path, kind="trec").to_dict()


def run_file_to_dict(path: str) -> Nested:
    """A TREC file of a run."""
    return Run.from_file(path, kind="trec").to_dict()
