"""What is left when a command is killed, disk or memory end, the clock jumps, or 20 processes write at once.

Each action of a table (a verb that writes, or a call that does) meets each fault of another table at many
points: at system calls on its own files, readings of the clock or large allocations, spread evenly over those
of an undisturbed run, or at moments of time. What must hold every time: each file is the old one or the whole
new one; an error is one of the library's; nothing is left behind where the process could still clean up; no
process survives; and the same action, done again in what is left, ends with the bytes of a run that was not
disturbed. Where the clock did not jump after all or no allocation failed, the point does not count.

The process imports everything once and forks a child for each point; a library for LD_PRELOAD (faulty_io.c)
makes the calls and allocations of the child fail. Finished pieces are kept in a file of JSON lines.

Exit status 1: a promise did not hold. Linux with glibc only; needs a C compiler. File systems and memory
groups of its own need the rights of root: without them these faults are not run, and the table says so.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import proofs

SHIM = proofs.ROOT / "build" / "faults" / "faulty_io.so"
SOURCE = Path(__file__).with_name("faulty_io.c")
OPEN, CREATE, READ, WRITE, FLUSH, RENAME, REMOVE = (1 << n for n in range(7))
ALL, CHANGES = 127, CREATE | WRITE | FLUSH | RENAME | REMOVE
OLD_NIGHT, NEW_NIGHT = 1_700_000_000.0, 1_700_100_000.0
LONGEST = 600  # seconds; what takes longer hangs
CROWD = 20
DEATHS = ("aborted", "crashed")  # of NumPy, Arrow or DuckDB, which do not look at every allocation
ENDS = ("done", "refused", "interrupted", "memory", "lost", "killed", *DEATHS)
ADDRESS_SPACE = resource.getrlimit(resource.RLIMIT_AS)
M_TOP_PAD = -2  # of malloc.h
LOST = re.compile(r"SystemError: .* (without exception set|without setting an exception)")
COUNTS = ("calls", "readings", "allocations", "denials")  # what the shim counts


# --- the actions ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """Something that writes; it is done once in the "old" version, then disturbed in the "new" one.

    `whole` are folders that change at once, `added` those that files are only added to, `scratch` those whose
    content is nobody's business as long as they are gone in the end. A page that `admits` to be without what
    there was no memory for counts as a new one where memory ended.
    """

    do: Callable[[str], object]
    whole: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    again: bool = True  # whether it may be repeated once it is done
    admits: bytes | None = None


def command(*arguments: str) -> None:
    from recsys.cli.app import cli

    try:
        cli.main(args=list(arguments), prog_name="recsys")
    except MemoryError as error:  # a call may end with it, a command has to say it
        raise RuntimeError("an error that the command did not report") from error


def evaluation(version: str) -> Any:
    import recsys

    return recsys.evaluate(f"lists-{version}.csv", "truth.csv", ["ndcg@5", "recall@5", "coverage@5"])


def record(version: str) -> None:
    from recsys.comparison.history import history
    from recsys.comparison.history import record as add

    add("nights", evaluation(version), "mine")
    history("nights", "ndcg@5")


def beyond_memory(version: str, **storage: str) -> None:
    import recsys
    from recsys.evaluation.in_pieces import out_of_core

    small = {
        "_BYTES_PER_ROW": 5_000_000,
        "_FEW_SCANS": 1,
        "_PIECE_USERS": 10,
    }  # so that there are many pieces
    vars(out_of_core).update(small)
    asked = ["ndcg@5", "recall@5", "coverage@5"]
    result = recsys.evaluate(f"lists-{version}.parquet", "truth.parquet", asked, memory="2GB", **storage)
    result.save("beyond.json")


ACTIONS: dict[str, Action] = {
    "run": Action(lambda v: command("run", f"{v}.toml", "-q"), added=("nights",)),
    "report": Action(
        lambda v: command("report", f"lists-{v}.csv", "--truth", "truth.csv", "-o", "report.html", "-q")
    ),
    "board": Action(lambda v: command("board", f"results-{v}", "-o", "board.html", "-q")),
    "bench": Action(
        lambda v: command(
            "bench", f"events-{v}.csv", "--baselines", "item-knn", "--trials", "1", "-o", "bench.html", "-q"
        ),
        admits=b"Not run",
    ),
    "split": Action(
        lambda v: command("split", f"events-{v}.csv", "--how", "leave_last", "-o", f"parts-{v}", "-q"),
        whole=("parts-old", "parts-new"), again=False,
    ),
    "train": Action(lambda v: command("train", "item-knn", f"events-{v}.csv", "-o", "model.npz", "-q")),
    "save": Action(lambda v: evaluation(v).save("result.json")),
    "record": Action(record, added=("nights",)),
    "per user": Action(
        lambda v: command(
            "evaluate", f"lists-{v}.csv", "truth.csv", "-m", "ndcg@5", "--save", "result.json", "--per-user",
            "users.parquet", "-q",
        )
    ),
    "rows": Action(lambda v: beyond_memory(v, per_user="rows"), whole=("rows",)),
    "checkpoint": Action(
        lambda v: beyond_memory(v, per_user="rows", checkpoint="pieces"), whole=("rows",), scratch=("pieces",)
    ),
}  # fmt: skip

PROTOCOL = """
title = "{0}"
[data]
interactions = "events-{0}.csv"
[split]
how = "leave_last"
[metrics]
names = ["ndcg", "recall"]
k = [5]
[models.popularity]
baseline = "popularity"
[models.random]
baseline = "random"
[output]
folder = "nights"
report = "run.html"
"""


def write_inputs(folder: Path) -> None:
    """What the actions read, in an old and a new version."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    users, items = 50, 20
    rows = [(u, i, 10 * u + n) for u in range(users) for n, i in enumerate(rng.permutation(items)[:5])]
    truth = pd.DataFrame([row[:2] for row in rows], columns=["user", "item"])
    truth.to_csv(folder / "truth.csv", index=False)
    truth.to_parquet(folder / "truth.parquet")
    for version in ("old", "new"):
        (folder / f"{version}.toml").write_text(PROTOCOL.format(version))
        events = [(u, i, t, rng.integers(1, 6)) for u, i, t in rows[: -5 if version == "old" else None]]
        frame = pd.DataFrame(events, columns=["user", "item", "timestamp", "rating"])
        frame.to_csv(folder / f"events-{version}.csv", index=False)
        shown = [(u, i, n + 1) for u in range(users) for n, i in enumerate(rng.permutation(items)[:8])]
        frame = pd.DataFrame(shown, columns=["user", "item", "rank"])
        frame.to_csv(folder / f"lists-{version}.csv", index=False)
        frame.to_parquet(folder / f"lists-{version}.parquet")
        results = folder / f"results-{version}"
        results.mkdir()
        with contextlib.chdir(folder):
            evaluation(version).save(results / "mine.json")


# --- a child that suffers ---------------------------------------------------------------------------------


@cache
def shim() -> Any:
    library = ctypes.CDLL(None)
    for name in COUNTS:
        getattr(library, f"faulty_{name}").restype = ctypes.c_long
    library.faulty_kill.argtypes = [ctypes.c_double]
    library.faulty_clock.argtypes = [ctypes.c_double, ctypes.c_long, ctypes.c_double]
    library.faulty_arm.argtypes = [ctypes.c_char_p, *[ctypes.c_int] * 5]
    library.faulty_arm.argtypes[2] = ctypes.c_long
    library.faulty_memory.argtypes = [ctypes.c_long, ctypes.c_int]
    library.malloc.argtypes, library.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    return library


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    how: str  # done, refused, interrupted, memory, lost, killed, a death, hung, or what is a defect
    text: str  # what it printed
    calls: int = 0
    readings: int = 0  # of the clock
    allocations: int = 0  # large ones
    denials: int = 0  # allocations that failed
    seconds: float = 0.0  # of the processor
    memory: int = 0  # the growth of its address space
    own: int = 0  # memory that it shares with nobody

    @classmethod
    def of(cls, status: int, text: str, **facts: Any) -> Ended:
        code = os.waitstatus_to_exitcode(status)
        names = {0: "done", 1: "interrupted", 130: "interrupted", 2: "refused", 3: "refused", 4: "refused",
                 6: "memory", -signal.SIGKILL: "killed", -signal.SIGTERM: "killed",
                 -signal.SIGABRT: "aborted", -signal.SIGSEGV: "crashed",
                 127: "aborted",  # by the loader: it has no memory for a thread
                 }  # fmt: skip
        if code == 5 and LOST.search(text):  # a MemoryError, by Python: compile() does so
            return cls("lost", text, **facts)
        return cls(names.get(code, f"ended with {code}"), text, **facts)


def start(body: Callable[[], object], folder: Path, arm: Callable[[], object], log: Path) -> int:
    """A child in a session of its own that works in the folder; its clock stands still."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins without it
    with log.open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(folder)
    tempfile.tempdir = str(folder / ".tmp")
    time.perf_counter = lambda: 0.0
    shim().faulty_clock(NEW_NIGHT, 0, 0.0)
    size, code = memory_of_this_process("status", "VmSize"), 0
    shim().faulty_arm(os.fsencode(folder), ALL, 0, 0, 0, 0)
    shim().faulty_memory(0, 0)
    try:
        try:
            arm()
            body()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, ADDRESS_SPACE)
            facts: dict[str, float] = {name: getattr(shim(), f"faulty_{name}")() for name in COUNTS}
            shim().faulty_arm(b"", 0, 0, 0, 0, 0)
            shim().faulty_memory(0, 0)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 130
    except MemoryError:
        code = 6
    except BaseException as error:  # noqa: BLE001 - a child reports whatever it was
        from recsys.errors import RecsysError

        code = 3 if isinstance(error, RecsysError) else 5
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    with contextlib.suppress(BaseException):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        sys.stdout.flush()
        sys.stderr.flush()
        facts["own"] = memory_of_this_process("smaps_rollup", "Private_Dirty")
        facts["memory"] = memory_of_this_process("status", "VmPeak") - size
        facts["seconds"] = time.process_time()
        log.with_suffix(".facts").write_text(json.dumps(facts))
    os._exit(code)


def memory_of_this_process(file: str, name: str) -> int:
    """What the system says about the memory of this process, in bytes."""
    text = Path("/proc/self", file).read_text(encoding="ascii")
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


def wait(child: int, log: Path) -> Ended:
    """How the child ended, which is killed when it hangs; it must leave no process behind."""
    handle = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([handle], [], [], LONGEST)
        if not ready:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
    status = os.waitpid(child, 0)[1]
    facts = log.with_suffix(".facts")
    whole = os.WIFEXITED(status) and facts.exists()  # a kill may have cut them
    found = json.loads(facts.read_text()) if whole else {}
    facts.unlink(missing_ok=True)
    text = log.read_text(errors="replace") if log.exists() else ""
    ended = Ended.of(status, text, **found)
    if not ready:
        ended = Ended("hung", text)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
        ended = Ended("left a process behind", text)
    return ended


# --- the state of a folder ----------------------------------------------------------------------------------

INSIDE = re.compile(rb";base64,([A-Za-z0-9+/=]+)")  # a file that a page offers
STAMP = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.+]*(?: UTC|Z)?|\d{8}T\d{6}Z|\d{4}-\d\d-\d\d")


@dataclass
class State:
    """The content of each thing that changes at once, and the hidden files that are no part of them."""

    content: dict[str, Any] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    n_added: int = 0

    @classmethod
    def of(cls, folder: Path, action: Action, *, stamps: bool = True) -> State:
        """With `stamps` False, dates and times count as equal."""
        state = cls()
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if any(part.startswith(".") for part in name.parts):
                state.left += [] if str(name) == ".tmp" else [str(name)]
                continue
            if path.is_dir():
                continue
            data = path.read_bytes()
            if not stamps:
                data = INSIDE.sub(lambda found: base64.b64decode(found[1]), data)
                data = STAMP.sub(b"", data)
            digest = hashlib.sha256(data).hexdigest()
            top = name.parts[0]
            if top in action.scratch:
                state.left.append(str(name))
            elif top in action.added:
                state.content.setdefault(top, set()).add(digest)
                state.n_added += 1
            elif top in action.whole:
                state.content.setdefault(top, {})[str(name)] = digest
            else:
                state.content[str(name)] = digest
        return state

    def wrong(self, before: State, after: State) -> list[str]:
        """What is neither as it was nor as it should become."""
        found = []
        for name in {*self.content, *before.content, *after.content}:
            here, old, new = (state.content.get(name) for state in (self, before, after))
            if isinstance(old or new, set):
                if not (old or set()) <= (here or set()) <= (new or set()):
                    found.append(f"{name} has lost a file or has half of one")
            elif here not in (old, new):
                found.append(f"{name} is neither old nor new")
        return found


@dataclass(frozen=True)
class Usual:
    """An action that nothing disturbs: what it starts from, what it ends with, what it takes."""

    name: str
    action: Action
    base: Path
    states: dict[bool, tuple[State, State]]  # before and after; with their times, and without
    calls: Callable[[int], int]
    growth: Callable[[], int]  # of the address space of a process whose heap has nothing free
    ended: Ended


def usual_run(name: str, place: Path, inputs: Path) -> Usual:
    action, base = ACTIONS[name], place / f"{name}-base"
    shutil.copytree(inputs, base)
    (base / ".tmp").mkdir()
    log = place / "log"

    def once(folder: Path, version: str, classes: int, night: float, *, full: bool = False) -> Ended:
        def arm() -> None:
            if full:
                fill_heap()
            shim().faulty_arm(os.fsencode(folder), classes, 0, 0, 0, 0)
            shim().faulty_clock(night, 0, 0.0)

        ended = wait(start(partial(action.do, version), folder, arm, log), log)
        if ended.how != "done":
            raise SystemExit(f"{name} does not work undisturbed: {ended.how}\n{ended.text}")
        return ended

    once(base, "old", ALL, OLD_NIGHT)
    with fresh_copy(base, place) as folder:
        ended = once(folder, "new", ALL, NEW_NIGHT)
        states = {
            stamps: (State.of(base, action, stamps=stamps), State.of(folder, action, stamps=stamps))
            for stamps in (True, False)
        }
        if states[True][1].left:
            raise SystemExit(f"{name} leaves {states[True][1].left} behind though nothing disturbs it")

    @cache
    def calls(classes: int) -> int:
        with fresh_copy(base, place) as folder:
            return once(folder, "new", classes, NEW_NIGHT).calls

    @cache
    def growth() -> int:
        with fresh_copy(base, place) as folder:
            return once(folder, "new", ALL, NEW_NIGHT, full=True).memory

    return Usual(name, action, base, states, calls, growth, ended)


@contextlib.contextmanager
def fresh_copy(base: Path, place: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="at-", dir=place))
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        trial = ["mount", "-t", "tmpfs", "recsys", folder]
        if (
            shutil.which("mount") is None
            or subprocess.run(trial, capture_output=True, check=False).returncode
        ):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


@contextlib.contextmanager
def small_disk(base: Path, place: Path, pages: int, *, read_only: bool = False) -> Iterator[Path]:
    """A copy on a file system of its own with so many pages left, or one that cannot be written to."""
    folder = Path(tempfile.mkdtemp(prefix="disk-", dir=place))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "recsys", str(folder)], check=True)
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        disk = os.statvfs(folder)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        limit = f"remount,{'ro' if read_only else 'rw'},size={used + max(pages, 0) * disk.f_frsize}"
        subprocess.run(["mount", "-o", limit, str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def fill_heap() -> None:
    """Take what the heap has free, and that is much after a fork: more has to come from the system then."""
    shim().mallopt(M_TOP_PAD, 0)  # which is asked for no more than is wanted
    size = memory_of_this_process("status", "VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (size, ADDRESS_SPACE[1]))
    for power in range(26, 8, -1):  # bytes; Python has a heap of its own for what is smaller
        while shim().malloc(1 << power):
            pass
    resource.setrlimit(resource.RLIMIT_AS, ADDRESS_SPACE)


def limit_memory(_usual: Usual, _folder: Path, point: float) -> None:
    """The system gives so many bytes and no more."""
    fill_heap()
    limit = memory_of_this_process("status", "VmSize") + int(point)
    resource.setrlimit(resource.RLIMIT_AS, (limit, ADDRESS_SPACE[1]))
    shim().faulty_memory(0, 0)  # what failed until now does not count


@cache
def memory_groups() -> tuple[Path, str] | None:
    """Where the system lets us make groups of processes, and the file with the limit of such a group."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        trial = Path(root, f"recsys-faults-{os.getpid()}")
        with contextlib.suppress(OSError):
            trial.mkdir()
            found = (trial / limit).exists()
            trial.rmdir()
            if found:
                return Path(root), limit
    return None


@contextlib.contextmanager
def small_group(usual: Usual, place: Path, point: float) -> Iterator[Path]:
    """A copy, and a memory group of the same name that may hold a part of what the action usually takes."""
    root, limit = memory_groups() or (place, "")
    with fresh_copy(usual.base, place) as folder:
        group = root / f"recsys-{folder.name}"
        group.mkdir()
        try:
            (group / limit).write_text(str(int(point * usual.ended.own)), encoding="ascii")
            yield folder
        finally:
            group.rmdir()


def enter_group(_usual: Usual, folder: Path, _point: float) -> None:
    root, _ = memory_groups() or (folder, "")
    (root / f"recsys-{folder.name}" / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


# --- the faults -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """What goes wrong, at which points, and how an action may end then."""

    what: str
    points: Callable[[Usual, int], Sequence[float]]
    arm: Callable[[Usual, Path, float], object] = lambda _usual, _folder, _point: None
    ends: tuple[str, ...] = ("done", "refused")
    place: Callable[[Usual, Path, float], contextlib.AbstractContextManager[Path]] = lambda usual, place, _: (
        fresh_copy(usual.base, place)
    )
    leaves: tuple[str, ...] = DEATHS  # the ends at which hidden files may be left behind
    stamps: bool = True  # whether times must be those of the undisturbed run
    together: int = 1
    felt: Callable[[Ended, float], bool] = lambda _ended, _point: True  # whether who is done was disturbed
    needs: Callable[[], object] = lambda: True  # whether this machine can do it


def spread(n_calls: int, n_points: int) -> list[float]:
    """Numbers of calls from the first to the last, evenly spread."""
    n = min(n_calls, n_points)
    return [1 + round(at * (n_calls - 1) / max(n - 1, 1)) for at in range(n)]


def shares(n_points: int) -> list[float]:
    """Parts of a whole, from nearly nothing to nearly all."""
    return [(at + 0.5) / n_points for at in range(n_points)]


def pages(n_points: int) -> list[float]:
    """Numbers of pages from 0 to the largest, most of them small: so are most files."""
    return sorted({float(round(LARGEST * (at / max(n_points - 1, 1)) ** 2)) for at in range(n_points)})


def at_calls(
    what: str, classes: int, *, error: int = 0, number: int = 0, lasting: bool = False, **options: Any
) -> Fault:
    def arm(_usual: Usual, folder: Path, point: float) -> None:
        shim().faulty_arm(os.fsencode(folder), classes, int(point), error, number, int(lasting))

    return Fault(what, lambda usual, n: spread(usual.calls(classes), n), arm, **options)


def at_allocations(what: str, *, lasting: bool, **options: Any) -> Fault:
    return Fault(
        what,
        lambda usual, n: spread(usual.ended.allocations, n),
        lambda _usual, _folder, point: shim().faulty_memory(int(point), int(lasting)),
        ends=(*MEMORY_ENDS, "lost", *DEATHS),
        felt=lambda ended, _point: ended.denials > 0,
        **options,
    )


JUMPS = (3600.0, -3600.0, 400 * 86400.0, -400 * 86400.0)
LARGEST = 200  # pages; a page of HTML has 140
MEMORY_ENDS = ("done", "refused", "memory")
FAULTS: dict[str, Fault] = {
    "killed at a call": at_calls(
        "SIGKILL in a system call on its files, a write half done", ALL, number=signal.SIGKILL,
        ends=("killed",), leaves=ENDS,
    ),
    "killed at a moment": Fault(
        "SIGKILL after a part of the processor's time that it usually takes",
        lambda usual, n: [share * usual.ended.seconds for share in shares(n)],
        lambda _usual, _folder, point: shim().faulty_kill(point), ends=("killed", "done"), leaves=ENDS,
    ),
    "interrupted": at_calls(
        "SIGINT in a system call on its files", ALL, number=signal.SIGINT, ends=("interrupted", "done")
    ),
    "full": at_calls(
        "ENOSPC from one write or new file on, the first write half done", CREATE | WRITE,
        error=errno.ENOSPC, lasting=True,
    ),
    "unreadable": at_calls("EIO in one opening or reading of a file", OPEN | READ, error=errno.EIO),
    "unwritable": at_calls("EIO in one making or writing of a file", CREATE | WRITE, error=errno.EIO),
    "unflushed": at_calls("EIO in one fsync", FLUSH, error=errno.EIO),
    "unrenamed": at_calls("EIO in one rename or link", RENAME, error=errno.EIO),
    "unremoved": at_calls("EIO in one removal of a file", REMOVE, error=errno.EIO, leaves=ENDS),
    "read-only": at_calls(
        "EROFS in every change from one on", CHANGES & ~FLUSH, error=errno.EROFS, lasting=True, leaves=ENDS
    ),
    "read-only disk": Fault(
        "a file system that is mounted read-only", lambda _usual, _n: [0],
        place=lambda usual, place, _: small_disk(usual.base, place, 0, read_only=True), ends=("refused",),
        needs=may_mount,
    ),
    "small disk": Fault(
        f"a file system with 0 to {LARGEST} pages left", lambda _usual, n: pages(n),
        place=lambda usual, place, point: small_disk(usual.base, place, int(point)), needs=may_mount,
    ),
    "file size": Fault(
        f"RLIMIT_FSIZE, 1 to {LARGEST} pages", lambda _usual, n: pages(n),
        lambda _usual, _folder, point: resource.setrlimit(
            resource.RLIMIT_FSIZE, (max(int(point), 1) * resource.getpagesize(), resource.RLIM_INFINITY)
        ),
    ),
    "address space": Fault(
        "RLIMIT_AS, from nothing to a quarter more than it usually takes",
        lambda usual, n: [1.25 * share * usual.growth() for share in shares(n)], limit_memory,
        ends=(*MEMORY_ENDS, "lost", *DEATHS), felt=lambda ended, _point: ended.denials > 0,
    ),
    # Without memory no folder can be read, nor emptied.
    "no memory": at_allocations("malloc and mmap fail from one allocation on", lasting=True, leaves=ENDS),
    # What is done nevertheless may have failed to remove its scratch.
    "an allocation": at_allocations("malloc or mmap fails once", lasting=False, leaves=("done", *DEATHS)),
    "memory group": Fault(
        "a memory cgroup, from nothing to twice what it usually takes",
        lambda _usual, n: [2 * share for share in shares(n)], enter_group, place=small_group,
        ends=(*MEMORY_ENDS, "killed"), leaves=ENDS, needs=memory_groups,
    ),
    "clock": Fault(
        "the clock jumps an hour or 400 days forth or back at its n-th reading",
        lambda usual, n: [
            reading * len(JUMPS) + jump
            for reading in spread(usual.ended.readings, max(n // len(JUMPS), 1))
            for jump in range(len(JUMPS))
        ],
        lambda _usual, _folder, point: shim().faulty_clock(
            NEW_NIGHT, int(point) // len(JUMPS), JUMPS[int(point) % len(JUMPS)]
        ),
        ends=("done",), stamps=False, felt=lambda ended, point: ended.readings >= point // len(JUMPS),
    ),
    "crowd": Fault(
        f"{CROWD} processes do it at once in one folder", lambda _usual, n: list(range(max(n // 20, 1))),
        together=CROWD,
    ),
}  # fmt: skip


def disturb(usual: Usual, fault: Fault, point: float, place: Path) -> tuple[str, list[str]]:
    """How the action ended at one point, and which promises did not hold."""
    action, log = usual.action, place / "log"
    new, (before, after) = partial(action.do, "new"), usual.states[fault.stamps]
    with fault.place(usual, place, point) as folder:
        logs = [log.with_name(f"log{n}") for n in range(fault.together)]
        arm = partial(fault.arm, usual, folder, point)
        children = [start(new, folder, arm, each) for each in logs]
        ends = [wait(child, each) for child, each in zip(children, logs, strict=True)]
        n_done = sum(end.how == "done" for end in ends)
        wrong = [f"{end.how}: {end.text.strip()[-1500:]}" for end in ends if end.how not in fault.ends]
        found = State.of(folder, action, stamps=fault.stamps)
        pages = [file.read_bytes() for file in folder.glob("*.html")]
        partial_answer = (
            n_done
            and "memory" in fault.ends
            and action.admits
            and any(action.admits in page for page in pages)
        )
        wrong += [] if partial_answer else found.wrong(before, after)
        if n_done and found.content != after.content and not partial_answer:
            wrong.append("it said that it was done and was not")
        may_leave = any(end.how in fault.leaves for end in ends) or (action.scratch and not n_done)
        if found.left and not may_leave:
            wrong.append(f"left behind: {found.left[:3]}")
        n_added = before.n_added + n_done * (after.n_added - before.n_added)
        if fault.together > 1 and found.n_added != n_added:
            wrong.append(f"{found.n_added} files in {action.added}, and {n_added} were added")
        if action.again or found.content != after.content:
            with fresh_copy(folder, place) as once_more:
                ended = wait(start(new, once_more, lambda: None, log), log)
                healed = State.of(once_more, action, stamps=fault.stamps)
                if ended.how != "done":
                    wrong.append(f"done again, it is {ended.how}: {ended.text.strip()[-1500:]}")
                elif healed.content != after.content:
                    wrong.append("done again, it comes to other bytes")
    how = max(Counter(end.how for end in ends).items(), key=lambda item: item[1])[0]
    how = "done in part" if partial_answer else how
    felt = how != "done" or any(fault.felt(end, point) for end in ends)
    return how if felt else "undisturbed", wrong


# --- running and reading --------------------------------------------------------------------------------


def run_piece(usual: Usual, name: str, n_points: int, place: Path) -> dict[str, Any]:
    """One action and one fault, at all points."""
    fault, ends, wrong, began = FAULTS[name], Counter[str](), [], time.monotonic()
    points = fault.points(usual, n_points)
    for point in points:
        how, promises = disturb(usual, fault, point, place)
        ends[how] += 1
        wrong += [f"at {point:g}: {promise}" for promise in promises]
    n_points = ends.total() - ends["undisturbed"]
    facts = {"points": n_points, "ends": dict(ends), "wrong": wrong[:20], "n_wrong": len(wrong)}
    return {**facts, "seconds": round(time.monotonic() - began, 1)}


def warm_up(place: Path, actions: Iterable[str]) -> None:
    """Import whatever the actions import, so that the children need not; they tell the names by a file."""
    names = place / "modules"
    inputs = place / "inputs"
    for name in actions:
        folder = place / "warm"
        shutil.copytree(inputs, folder)
        (folder / ".tmp").mkdir()

        def body(action: Action = ACTIONS[name]) -> None:
            try:
                action.do("new")
            finally:
                names.write_text("\n".join(sys.modules))

        log = place / "log"
        ended = wait(start(body, folder, lambda: None, log), log)
        if ended.how != "done":
            raise SystemExit(f"{name} does not work undisturbed: {ended.how}\n{ended.text}")
        for module in names.read_text().splitlines():
            with contextlib.suppress(Exception):
                importlib.import_module(module)
        shutil.rmtree(folder)
    if "recsys.report.offline_page" in sys.modules:
        sys.modules["recsys.report.offline_page"]._vega()  # noqa: SLF001 - takes seconds, and is kept


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="the JSON lines of finished pieces")
    parser.add_argument("--points", type=int, default=100, help="points of an action and a fault, at most")
    parser.add_argument("--only", default="", help="run the pieces whose name matches this pattern")
    parser.add_argument("--table", action="store_true", help="write the summary into docs/reliability.md")
    arguments = parser.parse_args()
    if os.environ.get("LD_PRELOAD") != str(SHIM):
        SHIM.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", SHIM, SOURCE, "-ldl", "-lrt"], check=True)
        # A second arena of malloc reserves 64 MB, whatever is needed.
        single = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RECSYS_THREADS", "MALLOC_ARENA_MAX")
        one = dict.fromkeys(single, "1")
        environment = {**os.environ, **one, "LD_PRELOAD": str(SHIM), "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-W", "ignore", *sys.argv], environment)  # noqa: S606
    pieces = [f"{a} | {f}" for a in ACTIONS for f in FAULTS if re.search(arguments.only, f"{a} | {f}")]
    if not pieces:
        parser.error(f"no piece matches {arguments.only!r}")
    impossible = {name for name, fault in FAULTS.items() if not fault.needs()}
    if impossible:
        print(f"not run, for this machine does not let us: {', '.join(sorted(impossible))}")
    pieces = [piece for piece in pieces if piece.partition(" | ")[2] not in impossible]
    sources = [proofs.ROOT / "src", Path(__file__), SOURCE]
    finished = proofs.Finished(arguments.file, sources)
    left = [p for p in pieces if finished.done.get(p, {}).get("asked", 0) < arguments.points]
    memory = "/dev/shm"  # noqa: S108 - no piece needs a real disk, and this one flushes at once
    within = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="faults-", dir=within) as name:
        place = Path(name)
        (place / "inputs").mkdir()
        write_inputs(place / "inputs")
        warm_up(place, dict.fromkeys(piece.partition(" | ")[0] for piece in left))
        usual = cache(partial(usual_run, place=place, inputs=place / "inputs"))
        for at, piece in enumerate(left, 1):
            action, _, fault = piece.partition(" | ")
            found = run_piece(usual(action), fault, arguments.points, place)
            finished.add({"piece": piece, "asked": arguments.points, **found})
            ends = ", ".join(f"{n} {how}" for how, n in found["ends"].items())
            print(f"{at}/{len(left)} {piece}: {ends} in {found['seconds']} s", flush=True)
            for promise in found["wrong"][:3]:
                print(f"    {promise}", flush=True)
    lines = [finished.done[p] for p in pieces]
    broken = [line for line in lines if line["n_wrong"]]
    if arguments.table:
        proofs.write_section("faults", table(finished.done))
    n_points = sum(line["points"] for line in lines)
    print(f"{len(lines)} pieces, {n_points} points: {len(broken)} pieces do not keep their promises")
    return int(bool(broken))


def table(done: dict[str, dict[str, Any]]) -> str:
    """One row per fault, one column per action: the number of points."""
    n_points = sum(line["points"] for line in done.values())
    n_kills = sum(line["ends"].get("killed", 0) for line in done.values())
    rows = [
        f"{n_points} points, at {n_kills} of which the process was killed. The table has the number of",
        "points at which each action met each fault, in bold where a promise did not hold.",
        "",
        f"| | {' | '.join(ACTIONS)} |",
        f"|---|{'---|' * len(ACTIONS)}",
    ]
    for name, fault in FAULTS.items():
        cells = []
        for action in ACTIONS:
            line = done.get(f"{action} | {name}")
            text = "not run" if line is None else str(line["points"])
            cells.append(f"**{text}**" if line and line["n_wrong"] else text)
        rows.append(f"| {name}: {fault.what} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
