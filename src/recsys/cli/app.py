"""The group of verbs; each lives in a module of its own that is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from recsys import __version__
from recsys.cli.faults import guarded

VERBS = {
    "evaluate": "Score recommendation lists against the truth.",
    "metrics": "List the metrics, or describe one.",
    "conventions": "List the presets, describe one, or say how two differ.",
    "demo": "Compare toy recommenders on the embedded demo world.",
}


class LazyGroup(click.Group):
    """Knows its verbs by name and imports them late, so that --help and --version are instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"recsys.cli.verb_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        with guarded(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="recsys %(version)s")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def cli(*, debug: bool) -> None:
    """Evaluate recommender systems: every ranking metric, under conventions that are named."""
    del debug
