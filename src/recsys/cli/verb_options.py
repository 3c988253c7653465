"""How a verb declares its arguments and options: what is typed, what it means, and under which heading.

    @command("gate", argument("new", "NEW"), option("--against FILE", "The saved result in force."))
    def gate_command(given: Given) -> None: ...

The values reach the function as attributes of one object. An option that is a keyword of the library comes
from the table of keywords: `keyword("train")`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from glob import glob
from inspect import getdoc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from recsys.cli.error_messages import print_warnings
from recsys.comparison import compare_keywords
from recsys.evaluation import evaluate_keywords as keywords
from recsys.records.keywords import read_keywords

INPUT = "Input"
COLUMNS = "Columns and file formats"
METRICS = "Metrics and conventions"
CHANCE = "Statistics and chance"
LARGE = "Tables larger than memory"
OUTPUT = "Output"
_SECTIONS = ("Options", INPUT, COLUMNS, METRICS, CHANCE, LARGE, OUTPUT)
_FEW = 12  # so many options need no headings
# What shells complete with file names. Reading a file checks that it can be read.
_PATHS = frozenset({
    "FILE", "[FILE]", "FILE…", "FOLDER", "PATH", "LISTS", "[LISTS]", "[TRUTH]", "TRAIN", "TEST", "NEW", "A",
    "B", "A B …", "RESULT…", "FOLDER…", "U V",
})  # fmt: skip
_SECTION_OF = {
    keywords.READ: COLUMNS, keywords.BEYOND: LARGE, keywords.RANKED: INPUT, keywords.KNOWN: INPUT,
    **dict.fromkeys(compare_keywords.GROUPS, CHANCE),
}  # fmt: skip
KEYWORDS = read_keywords({"evaluate": keywords.EvaluateKeywords, "compare": compare_keywords.CompareOptions})
_PATH_TYPE = click.Path(readable=False, allow_dash=True)
FORMS = ("json", "csv", "markdown", "latex")  # flags that say how a result is printed
COUNT = click.IntRange(min=1)
POSITIVE = click.FloatRange(min=0, min_open=True)
SEED = click.IntRange(min=0)
LEVEL = click.FloatRange(0.5, 0.9999)
_Group = TypeVar("_Group")


class Target(click.Path):
    """A file that a verb writes; whether it can is checked before the work is done.

    Args:
        endings: how its name may end; none if the function that writes it checks that.
        makes_folder: whether a missing folder will be created.
    """

    def __init__(self, *endings: str, makes_folder: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings, self.makes_folder = endings, makes_folder

    def check(self, path: Path, name: str, inputs: Iterable[str]) -> None:
        """Refuse a path that cannot be written, or that would overwrite one of the inputs."""
        if self.endings and path.suffix.lower() not in self.endings:
            raise click.UsageError(f"{name} {path}: the name must end in {' or '.join(self.endings)}.")
        if not self.makes_folder and not path.parent.is_dir():
            raise click.UsageError(f"{name} {path}: there is no folder {path.parent}.")
        for place in map(Path, inputs):
            found = place.iterdir() if place.is_dir() else map(Path, glob(str(place), recursive=True))  # noqa: PTH207
            # Not Path.resolve: a link that leads to itself is an error there.
            if os.path.realpath(path) in {os.path.realpath(file) for file in (place, *found)}:
                raise click.UsageError(f"{name} {path} would overwrite an input file.")


NEW_FILE = Target()
PAGE = Target(".html", ".htm", makes_folder=True)


class Given(SimpleNamespace):
    """What was typed: the values of the arguments and options of a verb by their names."""

    @property
    def shown_as(self) -> str | None:
        """How the result is to be printed; None: as a table."""
        return next((form for form in FORMS if getattr(self, form, False)), None)

    def gather(self, group: type[_Group]) -> _Group:
        """The values of a dataclass of options; those that the verb has not are left out."""
        of_group: Any = group
        names = [field.name for field in fields(of_group)]
        return group(**{name: getattr(self, name) for name in names if hasattr(self, name)})

    def pick(self, *options: str | Option) -> dict[str, Any]:
        """The values of some options by their names."""
        names = [str(one.name) if isinstance(one, Option) else one for one in options]
        return {name: getattr(self, name) for name in names}


class Option(click.Option):
    """An option that knows its heading in the help."""

    section = "Options"


def option(
    typed: str,
    help: str = "",  # noqa: A002 - click's
    section: str = "Options",
    *,
    name: str = "",
    cls: type[Option] = Option,
    **attributes: Any,
) -> Option:
    """An option as it is typed, such as "-o, --output FILE"; a flag, if no value and no type follows.

    One that can be repeated ends with " ...", as in "--only CHECK ...".

    Args:
        typed: its names, then what stands for its value.
        help: its line in the help.
        section: its heading in the help.
        name: the attribute it becomes; by default that of its long name.
        cls: an option of another kind.
        attributes: what click.Option takes.
    """
    flags = [word.rstrip(",") for word in typed.split() if word.startswith("-")]
    metavar = typed.rpartition(flags[-1])[2].strip()
    if metavar.endswith(" ..."):
        metavar, attributes["multiple"] = metavar.removesuffix(" ..."), True
    if metavar:
        attributes["metavar"] = metavar
    elif not {"type", "flag_value"} & attributes.keys():
        attributes["is_flag"] = True
    if metavar in _PATHS:
        attributes.setdefault("type", _PATH_TYPE)
    if not attributes.get("is_flag") and attributes.get("default") is not None:
        attributes.setdefault("show_default", True)
    made = cls([*flags, *([name] if name else [])], help=help or None, **attributes)
    made.section = section
    return made


def argument(name: str, metavar: str = "", **attributes: Any) -> click.Argument:
    """An argument and how the help shows it; by default by its name."""
    if metavar in _PATHS:
        attributes.setdefault("type", _PATH_TYPE)
    return click.Argument([name], metavar=metavar or None, **attributes)


def keyword(of: str, help: str = "", *, section: str = "", **attributes: Any) -> Option:  # noqa: A002 - click's
    """The option of a keyword of evaluate or compare, with its line in the help unless one is given."""
    declared = KEYWORDS[of]
    section = section or _SECTION_OF.get(declared.group, METRICS)
    for kind in (declared.type, *get_args(declared.type)):
        if kind is float or get_origin(kind) is Literal:
            attributes.setdefault("type", click.Choice(get_args(kind)) if get_args(kind) else kind)
    return option(
        declared.option,
        help or declared.help,
        section,
        **{"name": of, "default": declared.default} | attributes,
    )


def command(
    name: str,
    *parameters: click.Parameter | Iterable[click.Parameter],
    cls: type[VerbCommand] | None = None,
    help: str | None = None,  # noqa: A002 - click's
    **attributes: Any,
) -> Callable[[Callable[[Given], None]], click.Command]:
    """A verb: its name, its arguments and options in the order of the help, and the function it calls."""

    def decorate(function: Callable[[Given], None]) -> click.Command:
        def call(**values: Any) -> None:
            function(Given(**values))

        attributes.update(params=[*_flat(parameters)], callback=call, help=help or getdoc(function))
        return (cls or VerbCommand)(name, **attributes)

    return decorate


def inputs_of(ctx: click.Context) -> list[str]:
    """The files and folders that were named for a verb to read, as far as they are known yet."""
    paths: list[str] = []
    for param in ctx.command.params:
        value = ctx.params.get(str(param.name))
        if value and param.type is _PATH_TYPE and getattr(param, "section", INPUT) not in (LARGE, OUTPUT):
            paths += [value] if isinstance(value, str) else value
    return paths


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, click.Parameter):
            yield item
        else:
            yield from _flat(item)


class VerbCommand(click.Command):
    """A verb whose help has its options under headings where they are many."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return both names: click keeps the option as the first context that asked has it."""
        del ctx
        return ["-h", "--help"]

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb, unless two forms of output exclude each other or a file cannot be written."""
        forms = [f"--{form}" for form in FORMS if ctx.params.get(form)]
        if len(forms) > 1:
            raise click.UsageError(f"{' and '.join(forms)} exclude each other.")
        for param in self.params:
            path = ctx.params[str(param.name)]
            if isinstance(param.type, Target) and path is not None:
                param.type.check(path, param.opts[-1], inputs_of(ctx))
        with print_warnings():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in _SECTIONS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:  # click's own option, --help, comes last
                records[getattr(param, "section", OUTPUT)].append(record)
        rows = [row for own in records.values() for row in own]
        if len(rows) <= _FEW:
            records = {"Options": rows}
        widest = max(len(name) for name, _ in rows if len(name) <= 26)
        for heading, own in records.items():
            if own:
                with formatter.section(heading):  # descriptions begin in one column under all headings
                    formatter.write_dl([(name.ljust(widest), text) for name, text in own], col_max=widest)
