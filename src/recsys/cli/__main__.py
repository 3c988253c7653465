"""`python -m recsys.cli` is the `recsys` command."""

from recsys.cli import main

main()
