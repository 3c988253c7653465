"""The verbs, one row each; the module of a verb is imported when it is called."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from recsys import Registry, __version__
from recsys.cli.error_messages import exit_on_errors


class Verb(NamedTuple):
    """A verb: its line in the help, and where its click command is, imported when it is called."""

    help: str
    module: str
    command: str = "command"


_OWN_VERBS = (
    ("demo", "experiment_verbs", "Compare recommenders on the embedded demo world."),
    ("evaluate", "scoring_verbs", "Score recommendation lists against the truth."),
    ("compare", "compare_verb", "Say whether models differ, by how much and how surely."),
    ("split", "split_verb", "Split interactions into parts that do not leak."),
    ("explain", "result_verbs", "Say why two numbers differ, decision by decision."),
    ("ratings", "scoring_verbs", "Score predicted ratings or click probabilities."),
    ("audit", "diagnostic_verbs", "Look for leaks and biases in a split and its recommendations."),
    ("inspect", "diagnostic_verbs", "Show one user's recommendations beside their history."),
    ("report", "result_verbs", "Write the report of one or many models as one HTML file."),
    ("metrics", "reference_verbs", "List the metrics, or describe one."),
    ("conventions", "reference_verbs", "List the presets, describe one, or say how two differ."),
    ("run", "experiment_verbs", "Execute a protocol file and keep its results."),
    ("study", "experiment_verbs", "Run one of five small studies of evaluation itself."),
    ("train", "experiment_verbs", "Train a small reference model."),
    ("gate", "result_verbs", "Pass or fail a new result against the one in force."),
    ("history", "result_verbs", "Show stored results over time and where they moved."),
    ("doctor", "reference_verbs", "Show kernels, versions and optional packages."),
)
VERBS: Registry[Verb] = Registry("verb", "recsys.verbs")
VERBS.update({
    name: Verb(line, f"recsys.cli.{module}", f"{name}_command") for name, module, line in _OWN_VERBS
})  # fmt: skip


# Arguments that shells complete with file names. Whoever reads a file checks that it can be read.
_PATH_TYPE = click.Path(readable=False, allow_dash=True)
_PATH_METAVARS = (
    "FILE", "FOLDER", "PATH", "LISTS", "[LISTS]", "[TRUTH]", "TRAIN", "TEST", "NEW", "A", "B", "A B …",
    "RESULT…", "U V",
)  # fmt: skip


class LazyGroup(click.Group):
    """Knows its verbs by name and imports them late, so that --help and --version are instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS.load_plugins())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS and cmd_name not in VERBS.load_plugins():
            return None
        verb = VERBS[cmd_name]
        command: click.Command = getattr(import_module(verb.module), verb.command)
        command.short_help = verb.help
        for parameter in command.params:
            if parameter.metavar in _PATH_METAVARS and parameter.type is click.STRING:
                parameter.type = _PATH_TYPE
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = VERBS if args[0] in VERBS else VERBS.load_plugins()
        matches = get_close_matches(args[0], known, n=1)
        if matches and args[0] not in known and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {matches[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.load_plugins().items()])

    def invoke(self, ctx: click.Context) -> Any:
        with exit_on_errors(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="recsys %(version)s")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def cli(*, debug: bool) -> None:
    """Evaluate recommender systems: every ranking metric, under named conventions."""
    del debug
