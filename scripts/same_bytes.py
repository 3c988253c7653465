"""One set of numbers, computed in every way the library offers, and compared value by value.

    python scripts/same_bytes.py                          every variant of this machine that is not done yet
    python scripts/same_bytes.py --only "threads|locale"  those whose name matches
    python scripts/same_bytes.py --table                  and the summary into docs/reliability.md
    python scripts/same_bytes.py --add cuda.json --as "CUDA (H200)"    what same_values.py printed elsewhere

A variant is a process of its own: another interpreter, environment or CPU level, another form of the same
input, another order of rows, another engine. Ranks, lists, values per user, means and random draws must have
the same bits everywhere; standard errors, intervals and p-values the same twelve digits.

Everything that a machine has is used; what is not there is named in the table. For all of it: Python 3.11,
3.12 and 3.13 (on the path or of pyenv), Java 17, a C++ compiler, and Debian's locales, g++-aarch64-linux-gnu
and qemu-user. A GPU may be elsewhere (--add).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import proofs
import same_values

SCRIPT = Path(__file__).resolve()
VALUES = SCRIPT.with_name("same_values.py")
PLAIN, CUDA = "plain", "CUDA"
ROOT = SCRIPT.parent.parent
BUILD = ROOT / "build" / "same"
DIGITS = 1e-12
Values = dict[str, Any]
Setting = Mapping[str, Any]


# --- the variants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """One more way to the same values: what the process is told, its environment, and its Python."""

    name: str
    setting: Setting = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Callable[[], Path] = lambda: Path(sys.executable)

    def run(self) -> Values:
        """The values, computed in a process of its own."""
        command = [self.python(), VALUES, json.dumps(dict(self.setting))]
        environment = {**os.environ, "PYTHONSAFEPATH": "1", **self.variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{self.name} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
        found: Values = json.loads(done.stdout)
        return found


class Unavailable(Exception):  # noqa: N818 - a variant that this machine cannot run is no error of the library
    """Why a variant could not be run here."""


OF_TABLES = "lists|places|ties|ratings|splits|fusion|others"  # the same in any order of the rows
OF_ENGINES = "lists|places|ties|statistics"


def variants() -> Iterator[Variant]:
    """Every variant of this machine."""
    from recsys.kernels import backends

    for n in (1, 2, 8):
        yield Variant(f"threads {n}", {"threads": n})
    for n in (1, 64):
        yield Variant(f"blocks of {n} users, 16 KiB of scores", {"block": n})
    yield Variant("NumPy kernels", {"backend": "reference"})
    yield Variant("without compiled code", {"pure": True})
    for level in backends().cpu_levels:
        yield Variant(f"C++ kernels, {level}", {"cpu_level": level})
    yield Variant("aarch64, C++ kernels (emulator)", {"native": True}, python=aarch64)
    yield Variant("aarch64, NumPy kernels (emulator)", {"pure": True, "pieces": "models"}, python=aarch64)
    cuda = {"backend": "cuda", "pieces": "models"}
    yield Variant("the steps of CUDA in torch, on the CPU", cuda | {"device": "cpu"})
    yield Variant(CUDA, cuda, python=with_gpu)
    yield from of_libraries()
    forms = {"pandas": "pandas", "polars": "polars", "arrow": "Arrow", "shuffled": "rows in another order"}
    for form, name in forms.items():
        more = "" if form == "shuffled" else "|presets"
        yield Variant(name, {"form": form, "pieces": OF_TABLES + more})
    yield Variant("SciPy matrices", {"form": "sparse", "pieces": "lists|places", "kinds": ["int"]})
    for form, name in {"ranked": "lists without scores", "csv": "CSV files"}.items():
        more = "|ties" if form == "csv" else ""
        yield Variant(name, {"form": form, "pieces": f"lists|places{more}"})
    engines = {"batches": "Evaluator, in batches", "duckdb": "DuckDB, beyond memory", "spark": "Spark"}
    for form, name in engines.items():
        # What is refused is asked again in halves, each of them a job of Spark: hours of them.
        pieces = OF_ENGINES.replace("|ties", "") if form == "spark" else OF_ENGINES
        yield Variant(name, {"form": form, "pieces": pieces})
    for seed in ("0", "1", "random"):
        yield Variant(f"PYTHONHASHSEED={seed}", variables={"PYTHONHASHSEED": seed})
    for name in ("tr_TR", "de_DE"):
        language, folder = f"{name}.UTF-8", BUILD / "locales"
        chosen = {"LOCPATH": str(folder), "LC_ALL": language}
        yield Variant(f"locale {name}", {"locale": language}, chosen, partial(with_locale, folder / language))
    for name, (version, pins) in ENVIRONMENTS.items():
        python = partial(environment, version, pins)
        yield Variant(name, {"native": True}, python=python)
        for form in ("pandas", "polars", "arrow"):
            yield Variant(f"{name}: {forms[form]}", {"form": form, "pieces": OF_TABLES}, python=python)


def of_libraries() -> Iterator[Variant]:
    """The instructions that NumPy, BLAS and the C library choose when they start."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    used = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    yield Variant("NumPy without " + ", ".join(used), variables={"NPY_DISABLE_CPU_FEATURES": " ".join(used)})
    for core in ("Prescott", "Haswell", "SkylakeX"):
        yield Variant(f"BLAS for {core}", variables={"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"})
    off = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-FMA,-FMA4,-ERMS"
    yield Variant("C library without AVX2 and FMA", variables={"GLIBC_TUNABLES": off})


def with_locale(folder: Path) -> Path:
    """This Python, after the locale was compiled into a folder."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        found = subprocess.run(["localedef", "-i", folder.stem, "-f", "UTF-8", folder], check=False)
        if found.returncode > 1:  # 1: with warnings
            raise Unavailable(f"localedef cannot make {folder.stem}; Debian has it in the package locales")
    return Path(sys.executable)


def with_gpu() -> Path:
    """This Python, where it sees a GPU."""
    from recsys.kernels import backends

    if not (gpu := backends().gpu).startswith("usable"):
        raise Unavailable(gpu.removeprefix("not usable, because "))
    return Path(sys.executable)


@cache
def aarch64() -> Path:
    """A Python for another kind of processor, in an emulator, where the kernels' own test passed."""
    if shutil.which("qemu-aarch64") is None or shutil.which("aarch64-linux-gnu-g++") is None:
        raise Unavailable("qemu-user and g++-aarch64-linux-gnu are not installed")
    for what in ([], ["python"]):
        subprocess.run([SCRIPT.with_name("cross.sh"), *what], check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build" / "cross" / "python"


# The Python, and what its packages are held to.
ENVIRONMENTS = {
    "Python 3.11, lowest packages": ("3.11", "lowest"),
    "Python 3.12, pandas 2": ("3.12", "pandas<3"),
    "Python 3.13, newest packages": ("3.13", ""),
}


@cache
def environment(version: str, pins: str) -> Path:
    """An environment with the wheel of this tree; the wheel for 3.12 serves every later Python."""
    folder = ROOT / "build" / f"venv-{version}-{re.sub('[^a-z0-9]+', '-', pins) or 'newest'}".rstrip("-")
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if version not in proofs.pythons():
        raise Unavailable(f"there is no Python {version}")
    try:
        if not (folder / ".complete").exists():
            subprocess.run([proofs.pythons()[version], "-m", "venv", "--clear", folder], check=True)
            packages = requirements(lowest=pins == "lowest") + ([] if pins == "lowest" else pins.split())
            subprocess.run([*pip, "install", "--no-compile", "--only-binary", ":all:", *packages], check=True)
            (folder / ".complete").touch()
        wheels = BUILD / "wheels" / proofs.hash_of([ROOT / "src"])
        made = "cp311" if version == "3.11" else "cp312"
        if not [*wheels.glob(f"*-{made}-*.whl")]:
            options = ["--no-deps", "--wheel-dir", wheels]
            options += ["--config-settings", f"build-dir={BUILD}/{{wheel_tag}}"]
            compiled = os.environ | {"RECSYS_NATIVE": "1"}
            subprocess.run([*pip, "wheel", *options, ROOT], check=True, env=compiled)
        wheel = next(wheels.glob(f"*-{made}-*.whl"))
        subprocess.run([*pip, "install", "--no-compile", "--no-deps", "--force-reinstall", wheel], check=True)
    except subprocess.CalledProcessError as error:
        print(error, flush=True)
        raise Unavailable("its environment could not be made") from error
    return python


def requirements(*, lowest: bool) -> list[str]:
    """What the package asks for with the extras that read tables, or the lower bounds alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = dict(line.split(">=") for name in ("polars", "arrow", "duckdb") for line in extras[name])
    bounds |= dict(line.split(">=") for line in project["dependencies"])
    return [f"{name}{'==' if lowest else '>='}{bound}" for name, bound in bounds.items()]


# --- running and comparing ------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """The same text, or numbers that agree to twelve digits."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return len(one) == len(other) and all(
        a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=DIGITS, abs_tol=1e-15)
        for a, b in zip(one, other, strict=True)
    )


def compared(name: str, setting: Setting, found: Values, plain: Values) -> dict[str, Any]:
    """How many values there are, and those that differ, with what was expected and what came.

    A value that needs a package the machine does not have is missing, not different.
    """
    pieces, kinds = setting.get("pieces", ".*"), setting.get("kinds", ["int", "text"])
    wanted = {
        key: value
        for key, value in plain.items()
        if re.fullmatch(pieces, key.partition(":")[0]) and ("text" in kinds or ": text " not in key)
    }
    missing = {key for key in wanted if str(found.get(key)).startswith("needs ")}
    differing = [
        [key, wanted.get(key), found.get(key)]
        for key in sorted((wanted.keys() | found.keys()) - missing)
        if key not in wanted or key not in found or not same(wanted[key], found[key])
    ]
    lacks = sorted({str(found[key]).removeprefix("needs ") for key in missing})
    return {
        "piece": name,
        "values": len(wanted) - len(missing),
        "differing": differing,
        "note": f"{len(missing)} more need {', '.join(lacks)}, which is not there" if missing else "",
    }


def summary(rows: Mapping[str, Mapping[str, Any]], plain: Values, not_run: Mapping[str, str]) -> str:
    """The digest, and one row per variant."""
    exact, digest = sum(isinstance(value, str) for value in plain.values()), same_values.digests(plain)["all"]
    lines = [
        f"Digest `{digest}` of {len(plain):,} values: {exact:,} are compared to the",
        "last bit, the others (standard errors, intervals, p-values, estimates) to twelve digits; the",
        "estimates of sampled metrics by least squares (`cls`) to five.",
        "`python scripts/same_values.py --digest` prints that of any other machine.",
        "",
        "| variant | values | differing |",
        "|---|---:|---:|",
    ]
    for name, done in rows.items():
        differ = f"**{len(done['differing'])}**" if done["differing"] else "0"
        note = f" ({done['note']})" if done["note"] else ""
        lines.append(f"| {name}{note} | {done['values']:,} | {differ} |")
    lines += [f"| {name} | | not run: {why} |" for name, why in not_run.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="", help="run the variants whose name matches this pattern")
    parser.add_argument("--add", type=Path, metavar="FILE", help="values that another machine printed")
    parser.add_argument("--as", dest="name", default=CUDA, metavar="NAME", help="the name of that variant")
    parser.add_argument("--table", action="store_true", help="write the summary into docs/reliability.md")
    arguments = parser.parse_args()
    finished = proofs.Finished(ROOT / "build" / "same_bytes.jsonl", [ROOT / "src", SCRIPT, VALUES])
    if PLAIN not in finished.done:
        finished.add({"piece": PLAIN, "of": Variant(PLAIN).run()})
    plain = finished.done[PLAIN]["of"]
    stored = json.loads(same_values.STORED.read_text(encoding="utf-8"))
    changed = [name for name, digest in same_values.digests(plain).items() if stored.get(name) != digest]
    if changed:
        print(f"not the digests that {same_values.STORED.name} has: {', '.join(changed)}", flush=True)
    if arguments.add:
        found = json.loads(arguments.add.read_text(encoding="utf-8"))
        pieces = "|".join({name.partition(":")[0] for name in found})
        finished.add(compared(arguments.name, {"pieces": pieces}, found, plain))
    failed, not_run = "**it failed**", dict[str, str]()
    for variant in variants():
        if variant.name.partition(" (")[0] in {name.partition(" (")[0] for name in finished.done}:
            continue
        if not re.search(arguments.only, variant.name):
            not_run[variant.name] = "not asked for"
            continue
        try:
            finished.add(compared(variant.name, variant.setting, variant.run(), plain))
        except Unavailable as error:
            not_run[variant.name] = str(error)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            not_run[variant.name] = failed
            print(f"{variant.name}: {error}", flush=True)
        if variant.name in not_run:
            print(f"{variant.name}: not run, {not_run[variant.name]}", flush=True)
            continue
        done = finished.done[variant.name]
        print(f"{variant.name}: {done['values']} values, {len(done['differing'])} differ", flush=True)
        for name, wanted, came in done["differing"][:20]:
            print(f"    {name}: {wanted} -> {came}", flush=True)
    rows = {name: piece for name, piece in finished.done.items() if name != PLAIN}
    if arguments.table:
        proofs.write_section("same_bytes", summary(rows, plain, not_run))
    differing = sum(len(piece["differing"]) for piece in rows.values())
    print(f"{len(rows)} variants of {len(plain)} values: {differing} differ; {len(not_run)} variants not run")
    return int(bool(differing or changed or failed in not_run.values()))


if __name__ == "__main__":
    sys.exit(main())
