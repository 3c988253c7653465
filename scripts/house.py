"""The house in numbers: doors, imports between rooms, doubled names, and what one call touches.

python scripts/house.py          prints the table of docs/architecture.md, and counts that every change moves
python scripts/house.py --check  exit status 1 if a limit is passed, a doubled name has no reason, the page
                                 is stale or a word of scripts/english.py is above its ceiling
python scripts/house.py --write  writes the table into the page
python scripts/house.py --lines [REVISION]
                                 prints the lines of code of each room, and how many more there are than in
                                 the revision
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import english

SOURCE = Path(__file__).resolve().parent.parent / "src" / "recsys"
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"
FENCE = "a name occurs twice without a reason or this table is stale.\n\n```text\n"
MOST_DOORS, MOST_EDGES = 24, 151  # what was reached; they only fall
NO_DOORS = {"__init__.pyi", "py.typed", "__pycache__"}  # the stub is a part of the face
ORDER = (
    "cli", "benching", "cf compat", "report", "analysis audits debias", "models", "spark", "comparison",
    "evaluation",
    "stats", "splits", "ranks", "metrics", "inputs", "kernels", "conventions", "display records", "errors",
)  # fmt: skip
# Upward imports that are allowed: results plot and export themselves, inside the methods that need it.
LAZY_UPWARD = {("evaluation", "report"), ("comparison", "report"), ("models", "report")}
# Names that occur twice on purpose.
REASONS = {
    "metrics": "the room; the two modules of that name are written so in the documents",
    "evaluation": "the room; recsys.cf.evaluation is the package the documents write",
    "results": "what an evaluation returns; what a statistic returns",
    "comparison": "the room; in stats its numbers; that of recsys.cf as the documents write it",
    "__main__": "python -m recsys, and python -m recsys.cli as before",
    "files": "what inputs reads, and what evaluation keeps; recsys.files is that of inputs",
    "registry": "what a metric is, and the list of them; the class of all such lists",
    "fusion": "the methods; recsys.compat.ranx has the module names of ranx",
    "statistical_tests": "recsys.cf.evaluation as the documents write it; recsys.compat.ranx as ranx does",
    "Run": "a result on the board; recsys.compat.ranx has the class names of ranx",
}
CALLS = {
    "evaluate(lists)": "recsys.evaluate({1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {5}}, ['ndcg@10'])",
    "evaluate(Factors)": (
        "recsys.evaluate(recsys.Factors([[1.0, 0.5]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]]), {0: {1}}, "
        "['ndcg@10'])"
    ),
}
LANGUAGES = {
    "py": "Python",
    "pyi": "Python",
    "cpp": "C++",
    "hpp": "C++",
    "html": "web",
    "css": "web",
    "js": "web",
}
# Run in a fresh process: the second call is traced, the first one has loaded what it needs.
TRACE = """
import json, sys, recsys
def call():
    return {call}
call()
loaded = sum(name.split(".")[0] == "recsys" for name in sys.modules)
files, functions = set(), set()
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/recsys/" in code.co_filename and not code.co_name.startswith("<"):
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_name, code.co_firstlineno))
sys.setprofile(profile)
call()
sys.setprofile(None)
print(json.dumps([len(files), len(functions), loaded]))
"""


def modules() -> dict[str, ast.Module]:
    """{dotted name without `recsys.`: its syntax tree}."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def room_edges(trees: dict[str, ast.Module]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(importing room, imported room): all of them, and those made when a module is loaded."""
    every: set[tuple[str, str]] = set()
    eager: set[tuple[str, str]] = set()
    for name, tree in trees.items():
        if name in ("", "__main__"):  # the face and the command: no rooms
            continue
        inside = {
            id(child)
            for outer in ast.walk(tree)
            if isinstance(outer, ast.FunctionDef)
            for child in ast.walk(outer)
        }
        typing_only = {
            id(child)
            for outer in tree.body
            if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.dump(outer.test)
            for child in ast.walk(outer)
        }
        for node in ast.walk(tree):
            if id(node) in typing_only:
                continue
            targets = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recsys."):
                targets = [node.module]
            elif isinstance(node, ast.ImportFrom) and node.module == "recsys":
                targets = [f"recsys.{a.name}" for a in node.names if (SOURCE / a.name).is_dir()]
            elif isinstance(node, ast.Import):
                targets = [a.name for a in node.names if a.name.startswith("recsys.")]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                targets = re.findall(r"^f?'(recsys\.\w+)", ast.unparse(node.args[0]))
            for target in targets:
                edge = (name.split(".")[0], str(target).split(".")[1])
                if edge[0] != edge[1]:
                    every.add(edge)
                    if id(node) not in inside:
                        eager.add(edge)
    return every, eager


def doubled(trees: dict[str, ast.Module]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """File names, and names of classes, that occur more than once: {name: where}."""
    stems: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        if name:
            stems[name.split(".")[-1]].append(name)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")].append(f"{name}.{node.name}")
    return tuple({n: held for n, held in each.items() if len(held) > 1} for each in (stems, classes))  # type: ignore[return-value]


def level(room: str) -> int:
    return next(at for at, rooms in enumerate(ORDER) if room in rooms.split())


def one_caller_helpers(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """Private top-level functions with exactly one mention elsewhere in their module, of how many."""
    total = single = 0
    for tree in trees.values():
        private = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("_")]
        private = [n for n in private if not n.startswith("__")]
        mentions: dict[str, int] = defaultdict(int)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                mentions[node.id] += 1
            elif isinstance(node, ast.Attribute):
                mentions[node.attr] += 1
        total += len(private)
        single += sum(mentions[name] == 1 for name in private)
    return single, total


def describe(trees: dict[str, ast.Module]) -> tuple[list[str], list[str]]:
    """The lines of the page, and what is wrong."""
    doors = sorted(p.name for p in SOURCE.iterdir() if p.name not in NO_DOORS)
    every, eager = room_edges(trees)
    upward = sorted(edge for edge in every if level(edge[0]) > level(edge[1]))
    stems, classes = doubled(trees)
    lines = [
        f"{len(doors)} doors: {', '.join(doors)}",
        f"{len(every)} imports between rooms ({len(eager)} when a module is loaded)",
        f"upward, inside functions only: {', '.join(f'{a} -> {b}' for a, b in upward) or 'none'}",
    ]
    for kind, names in (("file name", stems), ("class name", classes)):
        lines += [
            f"{kind} {name} occurs {len(where)} times: {REASONS.get(name, 'NO REASON GIVEN')}"
            for name, where in sorted(names.items())
        ]
    wrong = [f"{name}: {held}" for name, held in (stems | classes).items() if name not in REASONS]
    wrong += [f"{a} -> {b} points up" for a, b in upward if (a, b) not in LAZY_UPWARD or (a, b) in eager]
    wrong += [f"{len(doors)} doors"] if len(doors) > MOST_DOORS else []
    wrong += [f"{len(every)} imports between rooms"] if len(every) > MOST_EDGES else []
    return lines, wrong


def count(trees: dict[str, ast.Module]) -> list[str]:
    """How much there is, and what one call touches: numbers that nearly every change moves."""
    n_lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in SOURCE.rglob("*.py"))
    single, private = one_caller_helpers(trees)
    lines = [f"{len(trees)} files, {n_lines:,} lines; {single} of {private} private helpers have one caller"]
    for title, call in CALLS.items():
        done = subprocess.run(
            [sys.executable, "-c", TRACE.format(call=call)], capture_output=True, text=True, check=True
        )
        files, functions, loaded = done.stdout.strip("[]\n").split(", ")
        lines.append(f"{title}: {files} files and {functions} functions run, {loaded} modules are loaded")
    return lines


def code_lines(source: str) -> int:
    """Lines of Python that are not blank and hold more than a comment or a documenting string."""
    lines = source.splitlines()
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT and token.string.strip():
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(bool(lines[number - 1].strip()) for number in code)


def lines_by_room(sources: Iterator[tuple[str, str]]) -> dict[str, Counter[str]]:
    """{room: {language: lines}} of (path below src, text): of Python the code, of the others every line."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for path, text in sources:
        language = LANGUAGES.get(path.rpartition(".")[2])
        if language is not None:
            room = path.removeprefix("recsys/").partition("/")[0]
            rooms[room][language] += code_lines(text) if language == "Python" else len(text.splitlines())
    return rooms


def sources_now() -> Iterator[tuple[str, str]]:
    for path in SOURCE.parent.rglob("*"):
        if path.is_file() and path.suffix[1:] in LANGUAGES:
            yield path.relative_to(SOURCE.parent).as_posix(), path.read_text(encoding="utf-8")


def sources_then(revision: str) -> Iterator[tuple[str, str]]:
    command = ["git", "archive", revision, "src"]
    packed = subprocess.run(command, cwd=SOURCE.parents[1], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.rpartition(".")[2] in LANGUAGES:
                yield member.name.removeprefix("src/"), file.read().decode("utf-8")


def table_of_lines(now: dict[str, Counter[str]], then: dict[str, Counter[str]] | None) -> list[str]:
    """A row per room and their total; with `then`, how many lines were added since."""
    languages = list(dict.fromkeys(LANGUAGES.values()))
    rows = [["room", *languages, "lines", *(["change"] if then is not None else [])]]
    rooms = {room: now.get(room, Counter()) for room in sorted({*now, *(then or {})})}
    past = then or {}
    for room, counts in [*rooms.items(), ("total", sum(rooms.values(), Counter()))]:
        before = sum(past.values(), Counter()) if room == "total" else past.get(room, Counter())
        change = [f"{counts.total() - before.total():+,}"] if then is not None else []
        rows.append([room, *(f"{counts[each]:,}" if counts[each] else "" for each in languages),
                     f"{counts.total():,}", *change])  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def main(arguments: list[str]) -> int:
    if "--lines" in arguments:
        then = lines_by_room(sources_then(arguments[-1])) if arguments[-1] != "--lines" else None
        print("\n".join(table_of_lines(lines_by_room(sources_now()), then)))
        return 0
    trees = modules()
    lines, wrong = describe(trees)
    head, rest = PAGE.read_text(encoding="utf-8").split(FENCE, 1)
    shown, end = rest.split("\n```", 1)
    if "--write" in arguments:
        PAGE.write_text(head + FENCE + "\n".join(lines) + "\n```" + end, encoding="utf-8")
        return 0
    wrong += [] if shown.splitlines() == lines else [f"{PAGE.name} shows another table: run make docs"]
    wrong += english.above_ceilings()
    print("\n".join(wrong if "--check" in arguments else [*lines, *count(trees)]))
    return int("--check" in arguments and bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
