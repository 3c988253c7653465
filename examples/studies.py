"""The five studies on one data set: answers on the screen, pages and pictures in a folder.

python examples/studies.py --data ml-100k -o studies
"""

from __future__ import annotations

import argparse

from recsys.cli.studies import STUDIES, run_study, setting_of


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a folder or table of ratings with times; the demo world without")
    parser.add_argument("-o", "--output", default="studies", help="where the pages and pictures go")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    setting = setting_of(asked.data, seed=asked.seed)
    for name in STUDIES:
        study = run_study(name, setting, seed=asked.seed)
        page, _ = study.save(asked.output)
        print(f"{study}\n\nwritten {page}\n")


if __name__ == "__main__":
    main()
