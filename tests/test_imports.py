"""`import recsys` costs next to nothing, and nothing optional is imported before it is needed."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import recsys
from recsys.analysis import maps
from worlds.processes import times_as_dear

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = {
    "pandas", "narwhals", "scipy.stats", "scipy.sparse", "polars", "pyarrow", "duckdb", "click", "rich",
    "torch", "jinja2", "matplotlib", "implicit", "pyspark", "safetensors", "sklearn", "numba",
}  # fmt: skip
NEVER = OPTIONAL - {"pandas", "narwhals", "scipy.sparse", "pyarrow", "polars"}


def imported_by(code):
    """Names of the modules a fresh interpreter holds after the code, and what it printed before."""
    tail = "; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import recsys",
        "import recsys; recsys.__version__; dir(recsys)",
        "import recsys; recsys.Conventions.named('trec_eval')",
        "import recsys; recsys.score_list([1, 5, 3], {3}, 'ndcg@10')",
        "import recsys; recsys.evaluate({1: [3, 4]}, {1: [4]}, 'ndcg@10')",
    ],
)
def test_small_things_import_nothing_optional(code):
    assert not imported_by(code) & OPTIONAL


def test_a_text_table_imports_no_more_than_its_coding_needs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item\nu,a\n")
    assert not imported_by(f"import recsys; recsys.read_file({str(path)!r})") & NEVER


def test_the_command_starts_without_its_verbs():
    code = "from recsys.cli.app import cli; cli(['--version'], standalone_mode=False)"
    assert not imported_by(code) & (OPTIONAL - {"click"})


def test_importing_the_package_costs_little_beside_numpy():
    # Loose: the claim itself is measured under benchmarks/.
    assert times_as_dear("import recsys", "import numpy, scipy.sparse") < 1


def test_small_tables_of_text_meet_neither_arrow_nor_pandas():
    code = (
        "import sys, recsys\n"
        "recsys.evaluate({'a': ['x', 'y']}, {'a': ['y']}, 'ndcg@10')\n"
        "print(sorted({'pyarrow', 'pandas', 'polars', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_travels_to_other_processes():
    import pickle

    import recsys

    assert pickle.loads(pickle.dumps(recsys)) is recsys  # noqa: S301 - our own bytes


def packages():
    names = [m.name for m in pkgutil.walk_packages(recsys.__path__, "recsys.") if m.ispkg]
    return [name for name in names if name != "recsys.kernels.cuda"]


@pytest.mark.parametrize("name", packages())
def test_a_name_means_either_a_module_or_what_a_room_exports(name):
    room = importlib.import_module(name)
    modules = {m.name for m in pkgutil.iter_modules(room.__path__)}
    exported = {n for n in getattr(room, "__all__", ()) if not isinstance(getattr(room, n), ModuleType)}
    assert not modules & exported


def test_python_and_type_checkers_read_the_same_names_in_the_stub():
    tree = ast.parse(Path(recsys.__file__).with_name("__init__.pyi").read_text("utf-8"))
    rows = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    # `NAME as NAME` is what makes a name of a stub public.
    assert all(row.names[0].name == row.names[0].asname and len(row.names) == 1 for row in rows)
    homes = {row.names[0].name: (row.level, row.module) for row in rows}
    assert len(homes) == len(rows)
    assert {*homes, "__version__"} == set(dir(recsys))
    for name, (level, home) in homes.items():
        value = getattr(recsys, name)
        if level:
            assert value is importlib.import_module(".".join(filter(None, ("recsys", home, name))))
            assert name not in recsys.__all__
        else:
            assert value is getattr(importlib.import_module(home), name)
            assert not isinstance(value, ModuleType)
            assert name in recsys.__all__


def public_functions():
    """(module, name) of every public function and class."""
    modules = {"recsys", *packages(), *recsys._ROOMS.values()}
    for module in sorted(modules):
        room = importlib.import_module(module)
        for name in getattr(room, "__all__", ()):
            if callable(getattr(room, name)):
                yield module, name


def test_no_public_function_shares_its_name_with_a_room():
    doors = {path.stem for path in Path(recsys.__file__).parent.iterdir()} | set(recsys._ROOMS)
    functions = list(public_functions())
    assert len(functions) > 200
    assert not [(module, name) for module, name in functions if name in doors]


@pytest.mark.parametrize("name", sorted(recsys._ROOMS))
def test_a_public_room_shows_its_own_names_and_nothing_else(name):
    room = importlib.import_module(recsys._ROOMS[name])
    shown = dir(room)
    assert sorted(shown) == sorted(room.__all__)
    homes = {getattr(getattr(room, n), "__module__", "recsys") or "recsys" for n in shown}
    assert all(home.split(".")[0] in {"recsys", "typing", "builtins", "types"} for home in homes), homes


def test_what_the_pages_call_by_its_full_name_needs_no_second_import():
    root = Path(__file__).parents[1]
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    named = {
        name for page in pages for name in re.findall(r"\brecsys\.([A-Za-z]\w*)", page.read_text("utf-8"))
    }
    assert len(named) > 30
    rooms = {p.stem for p in (root / "src" / "recsys").glob("[a-z]*")}
    # Entry points.
    rooms |= {"backends", "checks", "formats", "fusions", "pictures", "sections", "trainable", "verbs"}
    assert named <= set(dir(recsys)) | rooms, named - set(dir(recsys))
    code = "import recsys; [getattr(recsys, name) for name in dir(recsys)]; recsys.errors.RecsysError"
    assert imported_by(code)
    assert imported_by("import recsys; recsys.errors.RecsysError") & {"recsys.errors"}


def test_a_small_call_loads_few_modules():
    code = "import recsys; recsys.evaluate({1: [3, 4]}, {1: [4]}, 'ndcg@10')"
    assert len([name for name in imported_by(code) if name.split(".")[0] == "recsys"]) <= 60


def test_the_options_of_a_report_are_those_of_its_function():
    import inspect

    from recsys.report.page import ReportOptions, write_report

    assert set(ReportOptions.__annotations__) == set(inspect.signature(write_report).parameters) - {
        "path",
        "results",
    }


def test_every_extra_named_in_an_error_has_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    calls = [
        re.findall(r'(?:MissingExtraError|needs_extra)\("([^"]+)", "([^"]+)"', file.read_text("utf-8"))
        for file in (ROOT / "src").rglob("*.py")
    ]
    named = {pair for found in calls for pair in found}
    named |= {(package, extra) for package, extra, *_ in maps.METHODS.values() if extra is not None}
    assert len(named) > 8
    for package, extra in named:
        assert any(re.match(rf"{package}\b", requirement) for requirement in extras[extra]), (package, extra)


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "recsys", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("recsys")
