"""Texts with what to type in them, in the words of Python, of the command and of a protocol file."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from string import Formatter
from typing import get_args, get_type_hints

import click
import pytest

import recsys
from recsys.benching.protocol.keys import as_key
from recsys.cli.app import VERBS
from recsys.cli.error_messages import OPTIONS, as_option
from recsys.conventions.decisions import Conventions
from recsys.display.words import NOTES
from recsys.errors import Fix, InputError, Phrase, RecsysWarning, UnknownNameError, warn, worded
from recsys.evaluation.files.result_files import pack, unpack
from recsys.ranks.fusion import FUSIONS
from recsys.splits import STRATEGIES
from recsys.splits.job import DEFAULTS

SOURCE = Path(recsys.__file__).parent
# Where phrases are made of others, of files, and of the sentences of notes, which are looked up themselves.
MADE = ("errors.py", "evaluation/files/result_files.py")
OF_SPLITS = tuple(name for each in STRATEGIES.values() for name in each.parameters)
# Parameters that a call of Fix has in a variable, by file.
CHOSEN: dict[str, tuple[str, ...]] = {
    "cli/split_verb.py": (*DEFAULTS.keys() - {"columns"}, *OF_SPLITS),
    "errors.py": (),
    "comparison/compare.py": ("test", "interval"),
    "display/words.py": ("covariate_means", "interval", "margin", "no_worse_than", "stratum_shares", "test"),
    "conventions/decisions.py": ("relevant_from", "max_grade"),
    "evaluation/in_pieces/checkpoints.py": ("per_user", "checkpoint"),
    "evaluation/who_counts.py": ("no_truth", "no_list"),
    "evaluation/files/result_files.py": (),
    "evaluation/run.py": ("unknown_items", "seen_truth"),
    "inputs/timestamps.py": ("at", "validation_at", "start", "length", "step", "train", "gap"),
    "ranks/sources/source.py": ("train", "seen", "eligible", "exclude", "users"),
    "splits/job.py": OF_SPLITS,
    "splits/split_table.py": ("n", "n_folds", "n_windows", "min_user", "min_item", "seed"),
    "ranks/fusion.py": tuple(name for each in FUSIONS.values() for name in each.parameters),
}


def fixes_in(text: str, file: str) -> Iterator[Fix]:
    """Every fix that a module can make, those of its phrases included; columns where they are written out."""
    for node in ast.walk(ast.parse(text)):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called == "Phrase" and file not in MADE:
            if file == "display/words.py" and isinstance(node.args[0], ast.Name):
                continue
            assert isinstance(node.args[0], ast.Constant), f"{file}, line {node.lineno}: write the text out"
            examples = {word.arg: columns(word.value) for word in node.keywords}
            template, fields = node.args[0].value, set[str]()
            for _, field, _, _ in Formatter().parse(template):
                if field and not field.isidentifier():
                    yield from (part for part in Phrase(f"{{{field}}}", **examples).parts if part)
                    fields.add(field.partition("=")[0].rpartition(".")[2])
            assert examples.keys() <= fields, (
                f"{file}, line {node.lineno}: {examples.keys() - fields} is not used"
            )
        elif called == "Fix" and node.args:
            of = next((word.value for word in node.keywords if word.arg == "of"), ast.Constant("evaluate"))
            for parameter in strings(node.args[0], file):
                for function in strings(of, file):
                    yield Fix(parameter, columns(node.args[1]) if len(node.args) > 1 else ..., of=function)


def columns(node: ast.expr) -> object:
    """The columns that a dict names, user where a name is not written out; anything else is left open."""
    if not isinstance(node, ast.Dict):
        return ...
    return {key.value if isinstance(key, ast.Constant) else "user": ... for key in node.keys}


def strings(node: ast.expr, file: str) -> tuple[str, ...]:
    """The texts that an expression can be."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    if isinstance(node, ast.JoinedStr):
        ending = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        return f"user{ending}", f"item{ending}"
    if isinstance(node, ast.IfExp):
        return strings(node.body, file) + strings(node.orelse, file)
    return CHOSEN[file]


@cache
def parameters_of(function: str) -> frozenset[str]:
    """The parameters of a public function, those of its options and of what it makes included."""
    names = set[str]()
    called = attrgetter(function)(recsys)
    for name, parameter in inspect.signature(called).parameters.items():
        names.add(name)
        if parameter.kind is parameter.VAR_KEYWORD:
            hint = get_type_hints(inspect.unwrap(called)).get(name)
            names.update(getattr((get_args(hint) or (None,))[0], "__annotations__", ()))
    if function == "evaluate":
        names.update(Conventions.__dataclass_fields__)
    if function == "split":
        names.update(CHOSEN["cli/split_verb.py"])
    if function == "fuse":
        names.update(CHOSEN["ranks/fusion.py"])
    return frozenset(names)


@cache
def options_of(verb: str | None) -> frozenset[str]:
    """The options of a verb of the command, or of all verbs."""
    if verb is None:
        return frozenset().union(*map(options_of, VERBS))
    command = getattr(import_module(VERBS[verb].module), VERBS[verb].command)
    return frozenset(
        option for parameter in command.get_params(click.Context(command)) for option in parameter.opts
    )


def check(fix: Fix) -> None:
    """Fail unless Python, the command and protocol files have what the fix names."""
    if not fix.parameter:
        attrgetter(fix.of)(recsys)
        typed = as_option(fix).removeprefix("recsys ").split()
        assert typed[0] in VERBS or options_of(None) >= {word for word in typed if word.startswith("--")}, fix
        return
    assert fix.parameter in parameters_of(fix.of), fix
    known = options_of(fix.of if fix.of in VERBS else None)
    typed = [word for word in as_option(fix).split() if word.startswith("-")]
    assert typed or OPTIONS[fix.of, fix.parameter] is None, fix
    assert set(typed) <= known, f"{fix}: {typed} is not an option; see OPTIONS in cli/error_messages.py"
    assert as_key(fix).endswith(("]", " in Python")), fix


def test_every_fix_in_the_source_can_be_typed():
    found = set[str]()
    for path in SOURCE.rglob("*.py"):
        file = path.relative_to(SOURCE).as_posix()
        for fix in fixes_in(path.read_text("utf-8"), file):
            check(fix)
            found.add(repr(fix))
    assert found
    for text in NOTES.values():
        for fix in fixes_in(f"Phrase({text!r})" if isinstance(text, str) else "", "display/words.py"):
            check(fix)


@pytest.mark.parametrize(
    "call",
    [
        'Fix("trian")',
        'Fix("ties", "best", of="split")',
        'Fix("validation" if rows else "tset", of="split")',
        'Fix("columns", {"usr": ...})',
        'Fix("", of="evalute")',
        'Phrase("Pass {trian=}.")',
        'Phrase("Pass {compare.test=0.2} or {split.test_shares=0.2}.")',
        'Phrase("Look at {explian()}.")',
        'Phrase("Name it: {bench.columns=}.", columns={"usr": ...})',
    ],
)
def test_a_misspelt_fix_is_found(call):
    *_, fix = fixes_in(call, "file.py")
    with pytest.raises((AssertionError, AttributeError)):
        check(fix)


def test_exceptions_are_of_parameters_and_options_that_exist():
    for (function, parameter), option in OPTIONS.items():
        assert parameter in parameters_of(function) or not parameter
        assert option is None or option.split()[0] in options_of(function if function in VERBS else None)


def test_one_text_in_three_faces():
    text = Phrase("{:.1%} {!r}: pass {train=} too, or {ties='best'}, or {memory=}.", 0.25, "{}", memory="2GB")
    assert text == "25.0% '{}': pass train= too, or ties='best', or memory='2GB'."
    assert worded(text, as_option) == "25.0% '{}': pass --train too, or --set ties=best, or --memory 2GB."
    options = "train in [data] too, or ties = \"best\" in [conventions], or memory='2GB' in Python."
    assert worded(text, as_key) == f"25.0% '{{}}': pass {options}"
    assert worded("train=", as_option) == "train="  # not a fix


@pytest.mark.parametrize(
    ("fix", "option", "key"),
    [
        (Fix("columns", {"user": "my id"}), "--user 'my id'", 'user = "my id" in [data.columns]'),
        (Fix("test", 0.2, of="split"), "--test-share 0.2", "test = 0.2 in [split]"),
        (Fix("per_user", "out"), "--per-user-to out", "per_user='out' in Python"),
        (Fix("embeddings"), "embeddings= in Python", "embeddings= in Python"),
        (Fix("seen", None), "--seen none", "seen in [candidates]"),
        (Fix("", of="explain"), "recsys explain", "recsys explain"),
    ],
)
def test_faces(fix, option, key):
    assert as_option(fix) == option
    assert as_key(fix).startswith(key)


def test_texts_keep_their_fixes_when_they_are_joined_and_stored():
    text = "file: " + Phrase("pass {}", Fix("train")) + "."
    whole = Phrase("{} {}", text, Phrase("Or {}.", Fix("items")))
    for copied in (whole, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):  # noqa: S301
        assert worded(copied, as_option) == "file: pass --train. Or --items."
        assert json.loads(json.dumps(copied)) == str(copied) == "file: pass train=. Or items=."


def test_an_error_is_worded_once():
    message = Phrase("{} is not a share.", Fix("test", 1.5, of="split"))
    raised = InputError(message, hint=Phrase("Pass {}.", Fix("test", 0.2, of="split")))
    error = pickle.loads(pickle.dumps(raised))  # noqa: S301
    assert str(error) == "test=1.5 is not a share. Pass test=0.2."
    error.word(as_option)
    assert str(error) == "--test-share 1.5 is not a share. Pass --test-share 0.2."
    error.word(as_key)
    assert str(error) == "--test-share 1.5 is not a share. Pass --test-share 0.2."


def test_advice_follows_the_nearest_names():
    error = UnknownNameError(
        "column", "usr", ["user"], hint=Phrase("Pass {}.", Fix("columns", {"user": ...}))
    )
    error.word(as_option)
    assert error.hint == "Did you mean 'user'? Pass --user COLUMN."


def test_long_values_are_cut_in_every_face():
    text = Phrase("{}", Fix("memory", "9" * 5000))
    assert len(text) < 250
    assert len(worded(text, as_option)) < 250


def test_a_warning_keeps_its_fixes():
    with pytest.warns(RecsysWarning) as caught:
        warn(RecsysWarning, Phrase("pass {}", Fix("train")))
    assert worded(caught[0].message.args[0], as_option) == "pass --train"


def test_what_to_type_is_kept_in_files():
    text = Phrase("{} pass {train=}, or {ties='best'} or {relevant_from=}", "first", relevant_from=4.0)
    read = unpack(json.loads(json.dumps(pack((text, "plain")))))
    assert read == (text, "plain")
    assert worded(read[0], as_option) == "first pass --train, or --set ties=best or --set relevant_from=4"
