"""The `recsys` command. Results go to standard output, everything else to standard error.

Exit codes: 0 done, 1 a gate or an audit failed, 2 wrong usage, 3 bad input data, 4 an optional package is
missing, 5 a defect of this package, 130 interrupted.
"""

from __future__ import annotations


def main() -> None:
    """Run the command."""
    from recsys.cli.app import cli

    cli(prog_name="recsys")
