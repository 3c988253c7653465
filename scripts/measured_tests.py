"""The tests in forked processes, and what they run: one measured run of each file of tests serves two proofs.

`scripts/coverage_report.py` asks which branches the tests reach, `scripts/mutants.py` which tests touch a
line and how long they take. Each file of tests runs by itself, under coverage, in a process forked from one
that has imported the large libraries. What it leaves stands under build/coverage/ until the file or a module
that its tests entered is another; then that file alone is run again.

    python scripts/measured_tests.py [--jobs 2] [--tests PATTERN] [--missing]
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import hashlib
import importlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

import proofs
from proofs import ROOT

PACKAGE = ROOT / "src" / "recsys"
TESTS = ROOT / "tests"
KEPT = ROOT / "build" / "coverage"
# Other libraries' environments and hours of Spark sessions belong to other targets.
ELSEWHERE = {"parity", "ecosystem", "nightly"}
FIRST = ["metrics", "ranks", "conventions", "standard", "evaluation", "stats", "golden", "comparison"]
MEMORY = 12 << 30
HEAVY = """numpy scipy.stats scipy.sparse pandas polars pyarrow.parquet hypothesis pytest click torch duckdb
    narwhals"""


def warm_up() -> None:
    """Import what every forked process needs, so that each starts with it."""
    os.environ["HYPOTHESIS_PROFILE"] = "fixed"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "2")
    os.chdir(ROOT)
    for name in HEAVY.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


# --- in the forked process ------------------------------------------------------------------------------


class Loader(SourceFileLoader):
    """Loads a module of the package, from other code than its file's where that is given."""

    code: Any = None

    def get_code(self, fullname: str) -> Any:
        return self.code or super().get_code(fullname)


class Finder:
    """Finds the package beside this script, so that a copy of the tree proves itself; changes one module."""

    def __init__(self, module: str = "", code: Any = None) -> None:
        self.module, self.code = PACKAGE / module, code

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "recsys":
            return None
        stem = PACKAGE.parent.joinpath(*fullname.split("."))
        found = [file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()]
        if not found:
            return None  # what is compiled lies with the installed package
        loader = Loader(fullname, str(found[0]))
        loader.code = self.code if found[0] == self.module else None
        return importlib.util.spec_from_file_location(fullname, found[0], loader=loader)


class Session:
    """The pytest plugin of a run: the tests wanted, in that order; their seconds; those that fail."""

    def __init__(
        self,
        wanted: Sequence[str] | None = None,
        switch: Callable[[str], None] | None = None,
        patience: Callable[[str], float] | None = None,
    ) -> None:
        self.place = None if wanted is None else {test: at for at, test in enumerate(wanted)}
        self.switch, self.patience = switch, patience
        self.seconds: dict[str, float] = {}
        self.failed: str | None = None
        self.error = ""
        self.every_failure: list[str] = []

    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", settings.get_profile("fixed"), phases=phases, max_examples=25, database=None
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.switch:
            items[:] = [item for item in items if item.get_closest_marker("uncounted") is None]
        if self.place is not None:
            items[:] = sorted(
                (i for i in items if i.nodeid in self.place), key=lambda i: self.place[i.nodeid]
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.seconds[nodeid] = -time.process_time()
        if self.switch:
            self.switch(nodeid)
        if self.patience:  # the signal ends the process
            signal.setitimer(signal.ITIMER_PROF, self.patience(nodeid))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()
        if self.patience:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.every_failure.append(report.nodeid)
            if self.failed is None:
                self.failed, self.error = report.nodeid, str(report.longrepr)[-300:]

    pytest_collectreport = pytest_runtest_logreport

    def run(self, files: Iterable[str], folder: Path) -> int:
        """Run pytest on test files in this process; its exit status."""
        import pytest

        quiet = "-x -q -p no:cacheprovider -p no:randomly -p no:xdist -o timeout=0 --tb=short"
        quiet += " -W ignore::pytest.PytestAssertRewriteWarning"  # Hypothesis is there before pytest
        options = [*quiet.split(), f"--rootdir={ROOT}", f"--basetemp={folder}"]
        files = list(files)
        for file in files:
            if file.startswith("src/"):
                options += ["--doctest-modules", "--ignore-glob=*/triton_kernels.py"]
                # pytest would run a module a second time that its package imports; here it is there already.
                with contextlib.suppress(Exception):  # which pytest then meets itself
                    importlib.import_module(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
        if self.place is None:
            options.remove("-x")
        return int(pytest.main([*options, *files], plugins=[self]))


def forked(work: Callable[[Path], Any], folder: Path) -> int:
    """Start work in a child process, which leaves its answer in folder/answer.json; its id."""
    folder.mkdir(parents=True)
    process = os.fork()
    if process:
        return process
    try:
        gc.freeze()  # pytest collects garbage twice, and need not look through what the parent has
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # V8 reserves more than it uses
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sink = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(sink, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            answer = work(folder)
        except Exception as error:  # noqa: BLE001 - told to the parent
            answer = {"broken": f"{error!r}"}
        part = folder / "part.json"
        part.write_text(json.dumps(answer), encoding="utf-8")
        part.rename(folder / "answer.json")
    finally:
        os._exit(0)


# --- in the parent --------------------------------------------------------------------------------------


class Tasks:
    """Forked work, so many at a time."""

    def __init__(self, scratch: Path, wall: float) -> None:
        self.scratch, self.wall, self.count = scratch / str(os.getpid()), wall, 0
        self.running: dict[int, tuple[Any, float, Path]] = {}
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self, key: Any, work: Callable[[Path], Any]) -> None:
        self.count += 1
        folder = self.scratch / str(self.count)
        self.running[forked(work, folder)] = (key, time.monotonic(), folder)

    def wait(self) -> tuple[Any, dict[str, Any]]:
        """The answer of the next one that ends; {"died": why} where it ended without one."""
        while True:
            for process, (key, began, folder) in self.running.items():
                late = time.monotonic() - began > self.wall
                if late:
                    _end(process)
                ended, status, used = os.wait4(process, 0 if late else os.WNOHANG)
                if not ended:
                    continue
                del self.running[process]
                _end(process)  # whatever it has left running
                by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                cpu, answer = used.ru_utime + used.ru_stime, folder / "answer.json"
                if answer.exists():
                    line = json.loads(answer.read_text(encoding="utf-8"))
                else:
                    line = {
                        "died": "time" if late or by in {signal.SIGXCPU, signal.SIGPROF} else f"signal {by}"
                    }
                shutil.rmtree(folder, ignore_errors=True)
                return key, line | {"cpu": round(cpu, 2), "seconds": round(time.monotonic() - began, 1)}
            time.sleep(0.02)


def _end(process: int) -> None:
    """Kill the group of a process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


# --- the measured run -----------------------------------------------------------------------------------


def test_files() -> list[str]:
    """The files of tests that are run, and the rooms of the package whose examples are.

    The rooms that everything rests on come first.
    """
    names = [file.relative_to(ROOT).as_posix() for file in sorted(TESTS.rglob("test_*.py"))]
    names = [name for name in names if name.split("/")[1] not in ELSEWHERE]
    with_examples = {f for f in PACKAGE.rglob("*.py") if ">>> " in f.read_text(encoding="utf-8")}
    names += sorted({"/".join(f.relative_to(ROOT).parts[:3]) for f in with_examples})
    place = {room: at for at, room in enumerate(FIRST)}
    return sorted(names, key=lambda name: place.get(name.removeprefix("src/").split("/")[1], len(FIRST)))


def folder_of(file: str) -> str:
    """The folder under build/coverage/ of a file of tests."""
    return file.removesuffix(".py").replace("/", ".")


def source_hash(module: str) -> str:
    file = PACKAGE / module
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.exists() else ""


def run_measured(file: str, folder: Path) -> dict[str, Any]:
    """Run one file of tests under coverage, in this process; seconds of its tests, the modules they entered.

    build/coverage/<file>/data has the branches that ran, those of processes that the tests started among
    them; lines.json.gz has {module: {line: numbers of tests}} of this process alone, where a changed module
    would be seen. A line that ran for no test in particular (at import, in a child) has an empty list.
    """
    import coverage

    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    modules = {f.relative_to(PACKAGE).as_posix(): f.read_bytes() for f in PACKAGE.rglob("*.py")}
    raw, kept = folder / "raw", KEPT / folder_of(file)
    raw.mkdir()
    measured = coverage.Coverage(
        data_file=str(raw / "data"), config_file=str(ROOT / "pyproject.toml"), messages=False
    )
    measured.start()
    session = Session(switch=measured.switch_context)
    session.run([file], folder / "temporary")
    measured.stop()
    measured.save()
    tests = sorted(session.seconds)
    number = {test: at for at, test in enumerate(tests)}
    data = measured.get_data()
    lines: dict[str, dict[int, list[int]]] = {}
    for path in data.measured_files():
        by_line = sorted(data.contexts_by_lineno(path).items())
        lines[_module(path)] = {
            line: sorted({number[c] for c in contexts if c in number}) for line, contexts in by_line
        }
    arcs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for part in raw.glob("data*"):
        with contextlib.suppress(coverage.CoverageException):  # of a process that was killed while it wrote
            own = coverage.CoverageData(basename=str(part))
            own.read()
            for path in own.measured_files():
                arcs[path].update(own.arcs(path) or [])
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    together = coverage.CoverageData(basename=str(kept / "data"))
    together.add_arcs(arcs)
    together.write()
    with gzip.open(kept / "lines.json.gz", "wt", encoding="utf-8") as stream:
        json.dump(lines, stream)
    sources = {}
    (KEPT / "sources").mkdir(exist_ok=True)
    for module in sorted({_module(path) for path in arcs}):
        sources[module] = hashlib.sha256(modules[module]).hexdigest()[:12]
        (KEPT / "sources" / sources[module]).write_bytes(modules[module])
    took = [round(session.seconds[test], 3) for test in tests]
    return {"tests": tests, "took": took, "modules": sources, "failed": session.every_failure}


def _module(path: str) -> str:
    return Path(path).relative_to(PACKAGE).as_posix()


def pieces() -> proofs.Finished:
    """What was measured, by file of tests: also what is out of date."""
    return proofs.Finished(KEPT / "pieces.jsonl", [])


def current(piece: dict[str, Any]) -> bool:
    """Whether the file of tests and every module that its tests entered are as they were."""
    file = ROOT / piece["piece"]
    return (
        file.exists()
        and piece["text"] == proofs.hash_of([file])
        and all(source_hash(module) == text for module, text in piece["modules"].items())
    )


def measure(files: Sequence[str], jobs: int, *, missing: bool = False) -> proofs.Finished:
    """Run the files of tests whose measurements are missing or out of date; what there is then.

    With missing, those that were changed themselves or never measured: enough to choose tests by.
    """
    kept = pieces()

    def wanted(file: str) -> bool:
        piece = kept.done.get(file)
        if piece is None:
            return True
        if missing:
            return file.startswith("tests/") and piece["text"] != proofs.hash_of([ROOT / file])
        return not current(piece)

    left = [file for file in files if wanted(file)]
    KEPT.mkdir(parents=True, exist_ok=True)
    tasks = Tasks(KEPT / "running", 3600)
    while left or tasks.running:
        while left and len(tasks.running) < jobs:
            file = left.pop(0)
            text = proofs.hash_of([ROOT / file])
            tasks.start((file, text), lambda folder, file=file: run_measured(file, folder))
        (file, text), answer = tasks.wait()
        if "modules" not in answer:  # it died: what was measured before stands for another state
            print(f"{file}: {answer}", flush=True)
            kept.done.pop(file, None)
            continue
        kept.add({"piece": file, "text": text, **answer})
        failed = f"; failed: {' '.join(answer['failed'])}" if answer["failed"] else ""
        print(f"{file}: {len(answer['tests'])} tests, {answer['cpu']:.0f} s{failed}", flush=True)
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tests", default="", help="only the files of tests that match this pattern")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument(
        "--missing", action="store_true", help="only what was never measured, or is a changed file of tests"
    )
    arguments = parser.parse_args()
    warm_up()
    files = [name for name in test_files() if re.search(arguments.tests, name)]
    kept = measure(files, arguments.jobs, missing=arguments.missing)
    return int(any(file not in kept.done or kept.done[file]["failed"] for file in files))


if __name__ == "__main__":
    sys.exit(main())
