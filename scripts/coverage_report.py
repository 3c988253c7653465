"""How much of the package the tests run: branches of Python, lines of C++; below 95% the exit status is 1.

The measured runs of the tests (scripts/measured_tests.py) are put together; the kernels' tests run once more
on a build of the extension that counts its lines (build/gcov). What is finished for the same sources and
tests is not run again. What is missing: `coverage html --data-file build/coverage/all`.

Usage: python scripts/coverage_report.py [--jobs 2] [--table]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import coverage
import measured_tests
import proofs
from measured_tests import KEPT

FLOOR = 95.0
ROOT = proofs.ROOT
GCOV = ROOT / "build" / "gcov"
NATIVE = ROOT / "src" / "recsys" / "kernels" / "native"
# What reaches the extension with the most of its cases.
KERNEL_TESTS = ["tests/kernels", "tests/evaluation/test_case_values.py"]
# The extension that counts its lines, in place of the installed one.
SITECUSTOMIZE = """import importlib.util, sys

class Counting:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "recsys.kernels._native":
            return importlib.util.spec_from_file_location(name, {path!r})

sys.meta_path.insert(0, Counting)
"""


def branches_of_rooms(folder: Path, data: Iterable[Path]) -> dict[str, Counter[str]]:
    """What measurements say together, by room of the package; they are put into one file of the folder."""
    measured = coverage.Coverage(data_file=folder / "all", config_file=str(ROOT / "pyproject.toml"))
    measured.combine(list(map(str, data)), keep=True)
    measured.save()
    measured.json_report(outfile=str(folder / "all.json"))
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for name, file in json.loads((folder / "all.json").read_text("utf-8"))["files"].items():
        _, *folders, _ = ("recsys", *Path(name).resolve().relative_to(ROOT / "src").parts)
        room = folders[1] if len(folders) > 1 else "top"
        rooms[room].update({key: n for key, n in file["summary"].items() if isinstance(n, int)})
    return rooms


def measure_native(finished: proofs.Finished, jobs: int) -> dict[str, Any] | None:
    """Build the extension that counts, run the tests that reach it, read what gcov says of its lines."""
    if "c++" in finished.done:
        return finished.done["c++"]
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DRECSYS_COVERAGE=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(["cmake", "-S", ROOT, "-B", GCOV, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", GCOV, "--parallel", str(jobs)], check=True, stdout=subprocess.DEVNULL)
    for old in GCOV.rglob("*.gcda"):
        old.unlink()
    (GCOV / "path").mkdir(exist_ok=True)
    extension = next(GCOV.glob("_native*.so"))
    (GCOV / "path" / "sitecustomize.py").write_text(SITECUSTOMIZE.format(path=str(extension)), "utf-8")
    left_out = ["-m", "not uncounted"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--timeout=900", *left_out]
    environment = os.environ | {"HYPOTHESIS_PROFILE": "fixed", "PYTHONPATH": str(GCOV / "path")}
    if subprocess.run([*command, *KERNEL_TESTS], cwd=ROOT, env=environment, check=False).returncode:
        return None
    runs: dict[str, Counter[int]] = defaultdict(Counter)
    for counts in GCOV.rglob("*.gcda"):
        command = ["gcov", "--json-format", "--stdout", str(counts)]
        said = subprocess.run(command, cwd=GCOV, check=True, capture_output=True, text=True).stdout
        for file in (file for part in said.splitlines() if part for file in json.loads(part)["files"]):
            if Path(file["file"]).parent == NATIVE:
                for line in file["lines"]:
                    runs[Path(file["file"]).name][line["line_number"]] += line["count"]
    missing = {file: [line for line, n in sorted(lines.items()) if not n] for file, lines in runs.items()}
    finished.add(
        {
            "piece": "c++",
            "lines": sum(map(len, runs.values())),
            "missing": {file: lines for file, lines in sorted(missing.items()) if lines},
        }
    )
    return finished.done["c++"]


def share(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes of the tests")
    parser.add_argument("--table", action="store_true", help="write the summary into docs/reliability.md")
    asked = parser.parse_args()
    finished = proofs.Finished(
        ROOT / "build" / "coverage.jsonl", [NATIVE, *(ROOT / path for path in KERNEL_TESTS), Path(__file__)]
    )
    native = measure_native(finished, asked.jobs)
    measured_tests.warm_up()
    files = measured_tests.test_files()
    runs = measured_tests.measure(files, asked.jobs).done
    failed = [test for file in files for test in (runs[file]["failed"] if file in runs else [file])]
    failed += [] if native else ["c++"]
    folders = [KEPT / measured_tests.folder_of(file) for file in files if file in runs]
    rooms = branches_of_rooms(KEPT, [folder / "data" for folder in folders])
    rooms["**all**"] = sum(rooms.values(), Counter())
    rows = ["| room | branches | run by the tests | lines run |", "|---|--:|--:|--:|"]
    for room, n in sorted(rooms.items()):
        branches = share(n["covered_branches"], n["num_branches"])
        lines = share(n["covered_lines"], n["num_statements"])
        rows.append(f"| {room} | {n['num_branches']:,} | {branches:.1f}% | {lines:.1f}% |")
    held = share(rooms["**all**"]["covered_branches"], rooms["**all**"]["num_branches"]) >= FLOOR
    if native:
        n_missing = sum(map(len, native["missing"].values()))
        cpp = share(native["lines"] - n_missing, native["lines"])
        rows.append(f"| C++ ({native['lines']:,} lines) | | | {cpp:.1f}% |")
        held &= cpp >= FLOOR and native["lines"] > 0
    if asked.table:
        proofs.write_section("coverage_report", "\n".join(rows))
    print("\n".join(rows))
    for name in failed:
        print(f"tests failed: {name}")
    if not held:
        print(f"below {FLOOR:g}%; what is missing: coverage html --data-file build/coverage/all")
    sys.exit(1 if failed or not held else 0)


if __name__ == "__main__":
    main()
