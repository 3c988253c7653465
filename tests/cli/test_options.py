"""The options of every verb, stated a second time: a default or a limit that moves is a change for users.

`options.json` has the facts of each option that there was when it was written; a new one needs no entry. To
state them anew after a change that was meant:

    python tests/cli/test_options.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from recsys.cli.app import cli

STATED = Path(__file__).with_name("options.json")
FLAGS = ("required", "is_flag", "multiple", "count", "hidden", "show_default")
LIMITS = ("min", "max", "min_open", "max_open", "clamp", "exists", "writable")


def commands(group: click.Command, name: str = "recsys") -> Iterator[tuple[str, click.Command]]:
    yield name, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for verb in group.list_commands(context):
            command = group.get_command(context, verb)
            if command is not None:
                yield from commands(command, f"{name} {verb}")


def facts_of(parameter: click.Parameter) -> str:
    """What an option or argument declares, on one line; a default that is a function is left out."""
    words = [name for name in FLAGS if getattr(parameter, name, False)]
    if isinstance(parameter.default, bool | int | float | str | tuple):
        words.append(f"default={parameter.default!r}")
    words += [parameter.type.name, *(["several"] if parameter.nargs != 1 else [])]
    limits = {name: getattr(parameter.type, name, None) for name in LIMITS}
    words += [
        f"{name}={limit!r}" for name, limit in limits.items() if limit is not None and limit is not False
    ]
    if isinstance(parameter.type, click.Choice):
        words.append("|".join(map(str, parameter.type.choices)))
    return " ".join(words)


def every_option() -> dict[str, str]:
    return {
        f"{verb} {parameter.name}": facts_of(parameter)
        for verb, command in commands(cli)
        for parameter in command.get_params(click.Context(command))
    }


def test_options_are_what_is_stated():
    found = every_option()
    for name, stated in json.loads(STATED.read_text("utf-8")).items():
        assert found.get(name, stated) == stated, name


def test_verbs_of_a_group_do_something():
    for name, command in commands(cli):
        assert isinstance(command, click.Group) or command.callback is not None, name
        assert command.help, name


if __name__ == "__main__":
    STATED.write_text(json.dumps(every_option(), indent=0) + "\n", encoding="utf-8")
