"""Whether the tests notice a change of the source: small changes, one at a time, each run against the tests.

    python scripts/measured_tests.py                                first: which tests touch which lines
    python scripts/mutants.py build/mutants.jsonl                   the mutants of the core, 600 of the rest
    python scripts/mutants.py build/mutants.jsonl --sample 1000     400 of the core, 600 of the rest
    python scripts/mutants.py build/mutants.jsonl --draw 1          the same of another random order
    python scripts/mutants.py build/mutants.jsonl --only stats/     the mutants of some modules
    python scripts/mutants.py build/mutants.jsonl --survivors       what no test has noticed
    python scripts/mutants.py build/mutants.jsonl --table           writes it into docs/reliability.md

A mutant is one change of a module's syntax tree. A forked process imports the package with the changed module
and runs the tests that touch the changed lines, the likeliest to notice first, up to BUDGET seconds of them.
It is killed when one of them fails or takes ten times as long, or when the process uses up LIMIT seconds. No
failure counts unless the same test passes on the unchanged source in the same kind of process. Hypothesis
draws the same examples every time. The file has one line per finished mutant: a killed one stands while its
module and the file of the test that noticed it are the same, a survivor is run again once a file of tests
that touch its lines was measured anew. Survivors that no test can notice are listed, with the reason, in
tests/equivalent_mutants.toml. The exit status is 1 if a promise does not hold, or if not all that was drawn
has been tried.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gzip
import hashlib
import json
import os
import re
import resource
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import measured_tests
import proofs
from measured_tests import KEPT, PACKAGE, TESTS, Finder, Session, Tasks
from proofs import ROOT

EQUIVALENT = TESTS / "equivalent_mutants.toml"
CORE = re.compile(
    r"(metrics|ranks|conventions)/|records/arrays\.py|evaluation/(engine|pieces)\.py|"
    r"stats/(paired_tests|rank_tests|margins|intervals|bootstrap|samples|mean_inference|gaffke|sums|pair_pieces|"
    r"group_jackknife|comparison|corrections|adjustment|sequential|online_experiments)\.py"
)
# Triton can only be imported where a GPU is, ir_measures beside the peers; the tests of Spark are run against
# a mutant of that room alone.
NEVER = re.compile(r"kernels/cuda/triton_kernels\.py|compat/ir_measures\.py|__main__\.py")
# Where the numbers of the core are compared with a second implementation and with stored values.
COMPARING = ("tests/evaluation/test_engine.py", "tests/comparison/test_vectors.py", "tests/conventions/")
# Where whatever a user reads is compared word for word.
TRANSCRIPTS = "tests/cli/test_transcripts.py"
# The test of what functions declare, which enters none of them.
REST = 600  # mutants of the modules outside the core
PROMISED = {"core": 0.90, "elsewhere": 0.80}
EQUIVALENT_AT_MOST = 0.05
BUDGET, FEW = 14.0, 1.5  # seconds of tests for a mutant, as measured; those of the first round
LIMIT, WALL = 60, 400  # seconds of processor time, and of the clock, for a mutant


# --- mutants --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change of a module: `lines` are those of the changed statement, `scope` its function or ""."""

    module: str
    number: int
    source: str
    line: int
    lines: range
    scope: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.module}@{self.source} {self.number}: {self.before} -> {self.after}"

    @property
    def stratum(self) -> str:
        return "core" if CORE.match(self.module) else "elsewhere"

    @property
    def room(self) -> str:
        return self.module.split("/")[0]

    def draw(self, seed: int = 0) -> bytes:
        """Its place in the order mutants are drawn in."""
        return hashlib.sha256(f"{self.module} {self.number} {seed or ''}".strip().encode()).digest()


class Change:
    """A node that could stand in the place of another: `apply` puts it there."""

    def __init__(self, old: ast.AST, new: ast.AST, apply: Callable[[], None]) -> None:
        self.old, self.new, self.apply = old, new, apply


# A comparison and its neighbour at the boundary; the others have only their opposite.
COMPARISONS: dict[type, type] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COMPARISONS |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
COMPARISONS |= {ast.In: ast.NotIn, ast.NotIn: ast.In}
ARITHMETIC: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
ARITHMETIC |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.MatMult: ast.Mult}
ARITHMETIC |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr}
ARITHMETIC |= {ast.LShift: ast.RShift, ast.RShift: ast.LShift}
# Calls whose two arguments mean the same in either order, or whose swap only ends in an error.
SAME_EITHER_WAY = """max min maximum minimum fmax fmin isinstance issubclass getattr hasattr setattr zip range
    array_equal isclose allclose logical_and logical_or hypot multiply add intersect1d union1d gcd partial"""
# Nothing is changed inside these: words of messages, what a type checker reads, checks of our own that never
# fail, how many answers are remembered.
NOT_INSIDE = {"warn", "cast", "TypeVar", "NewType", "dataclass", "field", "lru_cache", "overload"}


def changes(tree: ast.AST) -> Iterator[tuple[Change, ast.stmt, str]]:
    """Every change of a tree, in the order of the source, with its statement and its function's name."""
    yield from _inside(tree, None, "")


def _inside(node: ast.AST, statement: ast.stmt | None, scope: str) -> Iterator[tuple[Change, ast.stmt, str]]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_comment", "type_params"}:
            continue
        # Decorators and defaults are evaluated with the module, or the class, around the function.
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and name == "body":
            inner = scope + "." + getattr(node, "name", "lambda")
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _untouched(child, node):
                continue

            def put(new: ast.AST, name: str = name, at: int = at, value: Any = value) -> None:
                if isinstance(value, list):
                    value[at] = new
                else:
                    setattr(node, name, new)

            around = child if isinstance(child, ast.stmt) else statement
            if around is not None:
                for new in _replacements(child, node, name):
                    ast.copy_location(new, child)
                    ast.fix_missing_locations(new)
                    yield Change(child, new, lambda put=put, new=new: put(new)), around, inner
            if not (isinstance(child, ast.Raise) or called(child) in NOT_INSIDE):
                yield from _inside(child, around, inner)


def _untouched(node: ast.AST, parent: ast.AST) -> bool:
    """Docstrings, `if TYPE_CHECKING`, `__all__`, names that exist for types only, overloads, zip(strict=).

    And what only a message names: the table, the column, the hint.
    """
    if isinstance(node, ast.keyword) and node.arg in {"strict", "table", "column", "hint"}:
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(parent, ast.Module):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        words = ast.unparse(node.value) if node.value else ""
        alias = re.match(
            r"(Union|Optional|Callable|Mapping|Sequence|Literal|TypeVar|NewType|np\.ndarray|npt)\b", words
        )
        return (
            ast.unparse(target) in {"__all__", "__version__"}
            or bool(alias)
            or (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias")
        )
    return isinstance(node, ast.FunctionDef) and any(
        "overload" in ast.unparse(d) for d in node.decorator_list
    )


def called(node: ast.AST) -> str:
    """The name of what a node calls, "" if it calls nothing."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _replacements(node: ast.AST, parent: ast.AST, name: str) -> Iterator[ast.AST]:
    """What could stand in the place of a node."""
    if isinstance(node, ast.stmt):
        yield from _statements(node)
    elif isinstance(node, ast.expr):
        yield from _expressions(node)
        asked = isinstance(parent, ast.If | ast.While | ast.IfExp) and name == "test"
        asked = asked or (isinstance(parent, ast.comprehension) and name == "ifs")
        if asked and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            yield ast.UnaryOp(ast.Not(), node)


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    removable = isinstance(node, ast.Raise)
    removable = removable or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    if isinstance(node, ast.Assign):
        removable = isinstance(node.targets[0], ast.Subscript | ast.Attribute)
    if removable:
        yield ast.Pass()
    elif isinstance(node, ast.AugAssign):
        yield ast.Pass()
        if type(node.op) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, ops, comparators):
            for at, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:at], COMPARISONS[type(op)](), *ops[at + 1 :]], comparators)
        case ast.BinOp(left, op, right):
            yield ast.BinOp(left, ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(_, operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            # One of the two neighbours, by the place in the line, keeps the number of mutants down.
            other = value + 1 if node.col_offset % 2 or value == 0 else value - 1
            yield ast.Constant(other if other != value else value / 2)
        case ast.Slice(lower, upper, step):
            yield from [ast.Slice(None, upper, step)] * bool(lower) + [ast.Slice(lower, None, step)] * bool(
                upper
            )
        case ast.Call(function, [first, second], keywords) if type(first) is type(second):
            simple = isinstance(first, ast.Name | ast.Attribute | ast.Subscript)
            if simple and called(node) not in SAME_EITHER_WAY.split():
                yield ast.Call(function, [second, first], keywords)


def modules() -> list[str]:
    paths = (file.relative_to(PACKAGE).as_posix() for file in sorted(PACKAGE.rglob("*.py")))
    return [path for path in paths if not NEVER.search(path)]


def mutants_of(module: str) -> list[Mutant]:
    """The mutants of a module, numbered."""
    text = (PACKAGE / module).read_text(encoding="utf-8")
    source = hashlib.sha256(text.encode()).hexdigest()[:8]
    return [
        Mutant(module, at, source, change.old.lineno, _lines(statement), scope, *_words(change))  # type: ignore[attr-defined]
        for at, (change, statement, scope) in enumerate(changes(ast.parse(text)))
    ]


def _words(change: Change) -> tuple[str, str]:
    """Before and after, on one line each; of long ones, what lies around the first difference."""
    before, after = (" ".join(ast.unparse(node).split()) for node in (change.old, change.new))
    same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start = max(0, same - 50) if len(before) > 100 else 0
    return before[start : start + 100], after[start : start + 100]


def _lines(statement: ast.stmt) -> range:
    """The lines that run when the statement does: of a compound one, its head."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def mutated(mutant: Mutant) -> Any:
    """The code of the mutant's module."""
    path = PACKAGE / mutant.module
    tree = ast.parse(path.read_text(encoding="utf-8"))
    next(change for at, (change, *_) in enumerate(changes(tree)) if at == mutant.number).apply()
    return compile(tree, str(path), "exec")


def drawn(every: Sequence[Mutant], core: int, rest: int, draws: Sequence[int]) -> list[Mutant]:
    """So many of each stratum, in random order; outside the core in proportion to the rooms."""
    first, last = draws[0], draws[-1]
    chosen = sorted((m for m in every if m.stratum == "core"), key=lambda m: m.draw(first))[:core]
    others = sorted((m for m in every if m.stratum != "core"), key=lambda m: m.draw(last))
    share, before = min(1.0, rest / max(1, len(others))), 0
    for room, size in sorted(Counter(m.room for m in others).items()):
        quota = round((before + size) * share) - round(before * share)
        chosen += [m for m in others if m.room == room][:quota]
        before += size
    return sorted(chosen, key=lambda m: m.draw(last))


# --- in the forked process ------------------------------------------------------------------------------


def attempt(
    mutant: Mutant | None,
    rounds: Sequence[Sequence[str]],
    folder: Path,
    patience: Callable[[str], float] | None = None,
) -> dict[str, Any]:
    """Run rounds of tests against a mutant, or against the source as it is, until one fails."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 2))
    finder = Finder(mutant.module, mutated(mutant)) if mutant else Finder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    count = 0
    for at, tests in enumerate(rounds):
        session = Session(tests, patience=patience)
        status = session.run(dict.fromkeys(test.split("::")[0] for test in tests), folder / str(at))
        count += len(session.seconds)
        if session.failed is not None or status not in {0, 5}:
            error = session.error or f"pytest ended with status {status}"
            return {"failed": session.failed or "\n".join(tests), "error": error, "tests": count}
    return {"failed": None, "tests": count}


# --- which tests touch which lines ----------------------------------------------------------------------


class TestMap:
    """The tests that touch a line, and the seconds of each test, from the measured runs of the tests.

    Lines are those of the source that was measured. Where a module has changed since, the lines that can be
    recognised lead to the tests to try first, but every test that enters the module may be tried.
    """

    def __init__(self, pieces: Sequence[Mapping[str, Any]]) -> None:
        self.seconds: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        # {module: [(tests of a file, hash of the measured source, {line: its tests as bits of a number})]}
        self.lines: dict[str, list[tuple[list[str], str, dict[int, int]]]] = defaultdict(list)
        for piece in (piece for piece in pieces if (ROOT / piece["piece"]).exists()):
            tests = piece["tests"]
            self.texts |= {test.split("::")[0]: piece["text"] for test in tests}
            self.seconds |= zip(tests, piece["took"], strict=True)
            with gzip.open(KEPT / measured_tests.folder_of(piece["piece"]) / "lines.json.gz", "rt") as stream:
                for module, lines in json.load(stream).items():
                    bits = {int(line): sum(1 << n for n in numbers) for line, numbers in lines.items()}
                    self.lines[module].append((tests, piece["modules"][module], bits))

    @cache  # noqa: B019 - one map lives as long as the process
    def places(self, module: str, source: str) -> dict[int, int] | None:
        """Where the lines of a module stood when it was measured; None where it is the same."""
        if measured_tests.source_hash(module) == source:
            return None
        old = (KEPT / "sources" / source).read_text(encoding="utf-8").splitlines()
        new = (PACKAGE / module).read_text(encoding="utf-8").splitlines()
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        return {b + i + 1: a + i + 1 for a, b, size in blocks for i in range(size)}

    def tests_of(self, mutant: Mutant) -> tuple[set[str], set[str]]:
        """Those that run the changed lines, and those that may notice without.

        What an earlier test left in a cache, or the import made, is used without running its lines again, so
        the tests that enter the module matter too, and those of the room where the import runs the line;
        where no test runs the lines and all is as measured, none.
        """
        touching, entering, perhaps = set[str](), set[str](), not mutant.scope
        for tests, source, bits in self.lines[mutant.module]:
            places = self.places(mutant.module, source)
            lines = [n if places is None else places.get(n, 0) for n in mutant.lines]
            ran, every = 0, 0
            for line, mask in bits.items():
                every |= mask
                if line in lines:
                    ran |= mask
            # A line that ran, but for no test in particular, ran at the import or in a child process.
            perhaps |= places is not None or any(line in bits for line in lines)
            touching.update(test for at, test in enumerate(tests) if ran >> at & 1)
            entering.update(test for at, test in enumerate(tests) if every >> at & 1)
        if not mutant.scope:
            room = mutant.room.removesuffix(".py")
            stated = f"tests/{room}/"
            return set(), entering | {test for test in self.seconds if test.startswith(stated)}
        return touching, entering if touching or perhaps else set()


# --- the proof -------------------------------------------------------------------------------------------


class Proof:
    """Mutants against tests: which tests to try, and what became of each mutant."""

    def __init__(self, path: Path, tests: TestMap) -> None:
        self.finished, self.tests = proofs.Finished(path, []), tests
        self.killers: dict[str, Counter[str]] = defaultdict(Counter)
        self.left: list[Mutant] = []
        self.tasks = Tasks(path.parent / "mutants", WALL)
        self.waiting: dict[str, list[tuple[Mutant, dict[str, Any]]]] = defaultdict(list)
        self.sound: set[str] = set()
        self.unsound: set[str] = set()
        for line in self.finished.done.values():
            if line["outcome"] == "killed" and "::" in line["by"]:
                self.killers[line["module"]][line["by"]] += 1

    def outcome(self, mutant: Mutant) -> str | None:
        """What became of it, if that still stands."""
        line = self.finished.done.get(mutant.name)
        if line is None:
            return None
        if line["outcome"] != "killed":
            stands = line["text"] == self.text(mutant)
        else:  # as long as the test that noticed it is there as it was
            file, is_test, _ = line["by"].partition("::")
            stands = not is_test or line["by_text"] == self.tests.texts.get(file)
        return str(line["outcome"]) if stands else None

    @cache  # noqa: B019 - one proof lives as long as the process
    def text(self, mutant: Mutant) -> str:
        """A hash of the files of tests that may notice it, those that touch it if there are any."""
        touching, entering = self.tests.tests_of(mutant)
        files = sorted({test.split("::")[0] for test in touching or entering})
        return hashlib.sha256("".join(self.tests.texts[file] for file in files).encode()).hexdigest()[:12]

    def rounds(self, mutant: Mutant) -> list[list[str]]:
        """The tests to try: those that killed its neighbours, those of its room, the others; the quick first.

        Those of its room have half of the seconds, so that the others are heard, too.
        """
        seen, seconds = self.killers[mutant.module], self.tests.seconds
        touching, entering = self.tests.tests_of(mutant)
        usable = {
            test
            for test in touching | entering
            if seconds[test] < LIMIT / 3
            and not {test, test.split("::")[0]} & self.unsound
            and (mutant.room == "spark" or not test.startswith("tests/spark/"))
        }
        near = (f"tests/{mutant.room}/", f"src/recsys/{mutant.room}", TRANSCRIPTS)
        near += COMPARING if mutant.stratum == "core" else ()
        order = sorted(usable, key=lambda t: (t not in touching, -seen[t], seconds[t], t))
        chosen: dict[str, None] = {}
        total = 0.0
        for asked, budget in ((near, BUDGET / 2), ("", BUDGET)):
            for test in order:
                fits = total + seconds[test] <= budget or not chosen
                if fits and test.startswith(asked) and test not in chosen:
                    chosen[test] = None
                    total += seconds[test]
        first: list[str] = []
        second: dict[str, list[str]] = defaultdict(list)
        total = 0.0
        for test in chosen:
            total += seconds[test]
            if total <= FEW or not first:
                first.append(test)
            else:
                second[test.split("::")[0]].append(test)
        rest = [test for tests in second.values() for test in tests]
        return [part for part in (first, rest) if part]

    def patience(self, test: str) -> float:
        """Seconds of processor time after which a test does not end by itself any more."""
        return 10.0 + 10.0 * self.tests.seconds.get(test, 0.0)

    def run(self, mutants: Sequence[Mutant], jobs: int, until: float) -> None:
        """Run what is not finished; print survivors as they come."""
        self.left = [mutant for mutant in mutants if self.outcome(mutant) is None]
        print(f"{len(mutants)} mutants, {len(self.left)} to run", flush=True)
        while (self.left and time.monotonic() < until) or self.tasks.running:
            while self.left and len(self.tasks.running) < jobs and time.monotonic() < until:
                mutant = self.left.pop(0)
                if rounds := self.rounds(mutant):
                    self.tasks.start(
                        mutant, lambda folder, m=mutant, r=rounds: attempt(m, r, folder, self.patience)
                    )
                else:
                    self.keep(mutant, "untouched", {})
            if self.tasks.running:
                key, answer = self.tasks.wait()
                self.check(key, answer) if isinstance(key, str) else self.judge(key, answer)

    def judge(self, mutant: Mutant, answer: dict[str, Any]) -> None:
        """Keep what became of a mutant; a failure only of a test that passes on the source as it is."""
        if "broken" in answer:
            print(f"{mutant.name}: {answer['broken']}", flush=True)
        elif "died" in answer:
            self.keep(mutant, "killed", answer | {"failed": answer["died"]})
        elif answer["failed"] is None:
            self.keep(mutant, "survived", answer)
        elif answer["failed"] in self.sound:
            self.keep(mutant, "killed", answer)
        else:
            test = answer["failed"]
            self.waiting[test].append((mutant, answer))
            if len(self.waiting[test]) == 1:
                self.tasks.start(test, lambda folder: attempt(None, [test.split("\n")], folder))

    def check(self, test: str, answer: Mapping[str, Any]) -> None:
        """A test that failed under a mutant has been run on the source as it is."""
        good = answer.get("failed", "") is None
        (self.sound if good else self.unsound).update(test.split("\n") if not good else [test])
        for mutant, line in self.waiting.pop(test):
            if good:
                self.keep(mutant, "killed", line)
            else:
                self.left.insert(0, mutant)
        if not good:
            print(f"fails on the source as it is: {test[:200]}: {answer.get('error', answer)}", flush=True)

    def keep(self, mutant: Mutant, outcome: str, answer: Mapping[str, Any]) -> None:
        by = answer.get("failed") or ""
        if "::" in by:
            self.killers[mutant.module][by] += 1
        line = {
            "piece": mutant.name,
            "module": mutant.module,
            "line": mutant.line,
            "outcome": outcome,
            "by": by,
        }
        line |= {key: answer[key] for key in ("error", "tests", "cpu", "seconds") if key in answer}
        if "::" in by:
            line["by_text"] = self.tests.texts.get(by.split("::")[0])
        self.finished.add(line | {"text": self.text(mutant)})
        if outcome != "killed":
            print(f"{outcome}: {shown(mutant)}", flush=True)


def shown(mutant: Mutant) -> str:
    place = f"{mutant.module}:{mutant.line} [{mutant.scope.strip('.') or 'module'}]"
    return f"{place} {mutant.before} -> {mutant.after}"


# --- the summary ----------------------------------------------------------------------------------------


Identity = tuple[str, str, str, str]


def equivalents() -> dict[Identity, int]:
    """How many mutants of each identity no test can notice: those listed with the reason."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    return {(e["module"], e["scope"], e["line"], e["change"]): e.get("mutants", 1) for e in entries}


def identity(mutant: Mutant) -> Identity:
    """The module, the function, the line of source (without its indent) and the change."""
    text = (PACKAGE / mutant.module).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    return mutant.module, mutant.scope.strip("."), text, f"{mutant.before} -> {mutant.after}"


def summary(proof: Proof, every: Sequence[Mutant], chosen: Sequence[Mutant]) -> tuple[str, bool]:
    """The table of both strata, and whether every promise holds."""
    from scipy import stats

    why, good, done = equivalents(), True, proof.finished.done
    head = "mutants|drawn|tried|killed|by time or a crash|survived|no test touches|equivalent"
    head += "|killed of the others"
    columns = ["", *head.split("|"), "95% interval", "promised"]
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for stratum, promised in PROMISED.items():
        size = sum(m.stratum == stratum for m in every)
        n_drawn = sum(m.stratum == stratum for m in chosen)
        tried = {m: proof.outcome(m) for m in chosen if m.stratum == stratum and proof.outcome(m)}
        count = Counter(tried.values())
        same = sum(outcome != "killed" and identity(m) in why for m, outcome in tried.items())
        others = len(tried) - same
        good &= len(tried) == n_drawn  # a night that was cut short proves nothing yet
        if not others:
            continue
        abrupt = sum(outcome == "killed" and "::" not in done[m.name]["by"] for m, outcome in tried.items())
        share, interval = count["killed"] / others, "all tried"
        if len(tried) < size:
            ends = stats.binomtest(count["killed"], others).proportion_ci(method="wilson")
            interval = f"{ends.low:.1%} to {ends.high:.1%}"
        good &= share >= promised and same <= EQUIVALENT_AT_MOST * len(tried)
        numbers = [size, n_drawn, len(tried), count["killed"], abrupt]
        numbers += [count["survived"], count["untouched"], same]
        cells = [stratum, *(f"{n:,}" for n in numbers), f"{share:.1%}", interval, f"{promised:.0%}"]
        rows.append(f"| {' | '.join(cells)} |")
    lines = [done[m.name] for m in chosen if proof.outcome(m)]
    if cpu := sum(line.get("cpu", 0) for line in lines):
        rows += ["", f"{60 * len(lines) / cpu:.0f} mutants a minute of processor time."]
    return "\n".join(rows), good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="the JSON lines of finished mutants")
    parser.add_argument(
        "--only", default="", help="the modules whose path matches this pattern, all their mutants"
    )
    parser.add_argument(
        "--sample", type=int, default=0, help=f"so many mutants in all, {REST} of them outside the core"
    )
    parser.add_argument(
        "--draw",
        type=int,
        nargs="+",
        default=[0],
        help="the number of the random order; a second one for the mutants outside the core",
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no mutant after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--survivors", action="store_true", help="only list what no test has noticed")
    parser.add_argument("--table", action="store_true", help="write the section of docs/reliability.md")
    arguments = parser.parse_args()
    file = arguments.file.resolve()
    until = time.monotonic() + arguments.seconds
    measured_tests.warm_up()
    every = [m for module in modules() if re.search(arguments.only, module) for m in mutants_of(module)]
    rest = min(REST, arguments.sample * 3 // 5) if arguments.sample else REST
    core = arguments.sample - rest if arguments.sample else len(every)
    if arguments.only:
        chosen = sorted(every, key=lambda m: m.draw(arguments.draw[0]))[: arguments.sample or None]
    else:
        chosen = drawn(every, core, rest, arguments.draw)
    pieces = list(measured_tests.pieces().done.values())
    old = sum(not measured_tests.current(piece) for piece in pieces)
    missing = len(set(measured_tests.test_files()) - {piece["piece"] for piece in pieces})
    print(f"{len(pieces)} files of tests measured, {old} of them on other sources; {missing} not measured")
    proof = Proof(file, TestMap(pieces))
    if arguments.survivors:
        why = equivalents()
        for mutant in sorted(chosen, key=lambda m: (m.module, m.number)):
            if (outcome := proof.outcome(mutant)) in {"survived", "untouched"}:
                print(f"{outcome}: {shown(mutant)}" + ("  (equivalent)" if identity(mutant) in why else ""))
        return 0
    proof.run(chosen, arguments.jobs, until)
    text, good = summary(proof, every, chosen)
    if arguments.table:
        proofs.write_section("mutants", text)
    else:
        print(text)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
