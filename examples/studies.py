"""Run the five studies on one data set: print the answers, write pages and figures to a folder.

python examples/studies.py --data ml-100k -o studies
"""

from __future__ import annotations

import argparse

from recsys.benching.studies import STUDIES, run_study, setting_of


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a folder or table of ratings with times (default: the demo data)")
    parser.add_argument("-o", "--output", default="studies", help="folder for the pages and figures")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    setting = setting_of(options.data, seed=options.seed)
    for name in STUDIES:
        study = run_study(name, setting, seed=options.seed)
        page, _ = study.save(options.output)
        print(f"{study}\n\nwritten {page}\n")


if __name__ == "__main__":
    main()
