"""The options of every verb: keywords of the library from their table, others where the verb is."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from importlib.resources import files

import click
import pytest

from recsys.cli.app import cli
from recsys.cli.verb_options import KEYWORDS, Option
from recsys.evaluation.evaluate_keywords import EvaluateKeywords
from recsys.records.keywords import declarations

TYPED = {keyword.option.partition(" ")[0]: keyword.option.partition(" ")[2] for keyword in KEYWORDS.values()}
SCHEMA = json.loads((files("recsys.benching.protocol") / "schema.json").read_text("utf-8"))


def commands(group: click.Command, name: str = "recsys") -> Iterator[tuple[str, click.Command]]:
    yield name, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for verb in group.list_commands(context):
            command = group.get_command(context, verb)
            if command is not None:
                yield from commands(command, f"{name} {verb}")


VERBS = {name: command for name, command in commands(cli) if not isinstance(command, click.Group)}


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_declared_and_one_of_a_keyword_is_typed_as_the_table_says(name):
    for param in VERBS[name].params:
        assert isinstance(param, Option | click.Argument), param.name
        for typed in set(param.opts) & set(TYPED):
            assert (param.metavar or "") == TYPED[typed], f"{name} {typed}"


def test_evaluate_has_the_option_of_every_keyword_that_has_one():
    typed = {flag for param in VERBS["recsys evaluate"].params for flag in param.opts}
    declared = declarations(EvaluateKeywords).values()
    assert {keyword.option.split()[0] for keyword in declared if keyword.option} <= typed
    assert not [name for name, keyword in KEYWORDS.items() if keyword.line and not keyword.option]


def test_the_settings_of_a_protocol_that_are_keywords_are_in_the_table():
    candidates = set(SCHEMA["properties"]["candidates"]["properties"])
    measured = set(SCHEMA["properties"]["metrics"]["properties"]) - {"names"}
    assert candidates | measured | {"conventions"} <= set(EvaluateKeywords.__annotations__)
    assert "conventions" in SCHEMA["properties"]


@pytest.mark.parametrize("name", VERBS)
def test_help_has_a_line_for_every_option(name):
    with click.Context(VERBS[name], info_name=name) as context:
        text = VERBS[name].get_help(context)
        assert "-h, --help" in text
        for param in VERBS[name].get_params(context):
            if isinstance(param, click.Option) and not param.hidden:
                assert max(param.opts, key=len) in text


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_reads_only_what_it_declares(name):
    """Values are attributes of what was typed, which no type checker knows."""
    verb = VERBS[name]
    function = inspect.getclosurevars(verb.callback).nonlocals["function"]
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    read = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "given"
    }
    assert read - {"gather", "pick", "shown_as"} <= {parameter.name for parameter in verb.params}
