"""`python -m recsys` is the `recsys` command."""

from recsys.cli import main

if __name__ == "__main__":
    main()
