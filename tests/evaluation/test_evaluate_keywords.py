"""The keywords of evaluate: one table, which signatures, help, type checkers and notebooks read."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import recsys
from recsys.cli.error_messages import as_option
from recsys.errors import UnknownNameError
from recsys.evaluation import evaluate_keywords as keywords
from recsys.evaluation.evaluate_keywords import BatchKeywords, EvaluateKeywords, RunKeywords
from recsys.records.keywords import declarations, read_keywords

KEYWORDS = read_keywords({"evaluate": EvaluateKeywords, "race": RunKeywords, "Evaluator": BatchKeywords})
SNIPPET = """
import recsys

lists, truth = {"ann": ["a"]}, {"ann": {"a"}}
recsys.evaluate(lists, truth, ["mrr"], k=10, threads=2, memory="1GB", cautions="ignore", aggregate="p90")
recsys.Evaluator(["mrr"], conventions="trec_eval", train=truth).update(lists, truth)
recsys.race({"a": lists, "b": lists}, truth, ["mrr"], seen=truth, item_weights={"a": 2.0})
recsys.evaluate(lists, truth, ["mrr"], threads="two")
recsys.evaluate(lists, truth, ["mrr"], full_ranking=1.5)
recsys.evaluate(lists, truth, ["mrr"], treads=2)
recsys.Evaluator(["mrr"], stop_when=0.1)
recsys.race({"a": lists, "b": lists}, truth, ["mrr"], exclude=7)
"""
FIRST_WRONG = 1 + SNIPPET.splitlines().index('recsys.evaluate(lists, truth, ["mrr"], threads="two")')


def test_the_signature_names_what_most_calls_need_and_takes_the_whole_table():
    signature = inspect.signature(recsys.evaluate).parameters
    assert len(signature) <= 15
    named = {name: one for name, one in signature.items() if one.kind is one.KEYWORD_ONLY}
    assert set(named) | set(keywords.OptionalKeywords.__annotations__) == set(KEYWORDS)
    assert not set(named) & set(keywords.OptionalKeywords.__annotations__)
    assert all(one.default == KEYWORDS[name].default for name, one in named.items())
    stated = inspect.get_annotations(inspect.unwrap(recsys.evaluate), eval_str=True, globals=_names())
    assert {name: stated[name] for name in named} == {name: KEYWORDS[name].type for name in named}


def _names() -> dict[str, object]:
    from recsys.evaluation import evaluate

    return vars(evaluate) | {"Metrics": object}


@pytest.mark.parametrize("function", [recsys.recommend, recsys.evaluate_candidates, recsys.score_list])
def test_a_keyword_means_the_same_everywhere(function):
    own = {"recommend": {"users"}, "score_list": set(), "evaluate_candidates": set()}[function.__name__]
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.KEYWORD_ONLY and name in KEYWORDS and name not in own:
            assert one.default == KEYWORDS[name].default, name


def test_who_takes_a_keyword():
    assert KEYWORDS["train"].taken_by == ("evaluate", "race", "Evaluator")
    assert KEYWORDS["memory"].taken_by == ("evaluate",)
    assert KEYWORDS["conventions"].taken_by == ("evaluate", "Evaluator")


@pytest.mark.parametrize("function", [recsys.evaluate, recsys.race])
def test_help_opens_with_an_example_and_lists_every_keyword_under_a_heading(function):
    text = inspect.getdoc(function)
    table = EvaluateKeywords if function is recsys.evaluate else RunKeywords
    for name, keyword in declarations(table).items():
        assert text.index(f"{keyword.group}:\n") < text.index(f"\n    {name}: "), name
        assert keyword.words[:20] in text
    if function is recsys.evaluate:
        places = [text.index(words) for words in (">>> print(recsys.", "Args:", "What is measured:")]
        assert places == sorted(places)
    assert max(map(len, text.splitlines())) <= 106


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda **wrong: recsys.evaluate({1: [2]}, {1: [2]}, "mrr", **wrong), "keyword of evaluate"),
        (lambda **wrong: recsys.race({"a": {1: [2]}, "b": {1: [3]}}, {1: [2]}, "mrr", **wrong), "of race"),
        (lambda **wrong: recsys.Evaluator("mrr", **wrong), "keyword of Evaluator"),
    ],
)
def test_a_misspelt_keyword_is_an_error_that_names_the_nearest(call, words):
    with pytest.raises(UnknownNameError, match=f"{words} 'item_weigths'. Did you mean 'item_weights'"):
        call(item_weigths={})


def errors_of(*command: str, folder: Path) -> set[int]:
    """The lines of the snippet that a type checker has something against."""
    (folder / "snippet.py").write_text(SNIPPET, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command, "snippet.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MYPY_CACHE_DIR": str(folder)},
    )
    lines = [line for line in done.stdout.splitlines() if "snippet.py:" in line and "error" in line]
    found = [line.partition("snippet.py:")[2].split(":") for line in lines]
    assert found, done.stdout + done.stderr
    return {int(parts[0]) for parts in found}


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_type_checkers_check_every_keyword(checker, tmp_path):
    flags = {"mypy": ["--follow-imports=silent"], "basedpyright": ["--pythonpath", sys.executable]}[checker]
    assert errors_of(checker, *flags, folder=tmp_path) == {*range(FIRST_WRONG, FIRST_WRONG + 5)}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_notebooks_complete_every_keyword():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    try:
        from recsys.evaluation.notebook_completion import complete_in_notebooks

        complete_in_notebooks()
        complete_in_notebooks()
        assert [matcher.__name__ for matcher in shell.Completer.custom_matchers].count("recsys") == 1
        shell.user_ns["recsys"] = recsys
        for code in ("recsys.evaluate(", "recsys.evaluate(f(1), truth, "):
            _, found = shell.Completer.complete(line_buffer=code, cursor_pos=len(code))
            assert {f"{name}=" for name in KEYWORDS} <= set(found)
        _, found = shell.Completer.complete(line_buffer="recsys.race({}, per", cursor_pos=19)
        assert "per_user=" not in found
    finally:
        type(shell).clear_instance()


def test_ids_of_rows_are_looked_for_at_the_model():
    model = recsys.Factors([[1.0]], [[1.0]])
    with pytest.raises(UnknownNameError, match=r"'user_ids'\. Factors, Scores and") as raised:
        recsys.evaluate(model, {0: [0]}, "mrr", user_ids=["ann"])
    raised.value.word(as_option)
    assert "take --user-ids and --item-ids" in str(raised.value)
