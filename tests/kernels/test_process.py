"""What only a process of its own can show: peak memory, an interrupt from the keyboard, a cold start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recsys import kernels
from worlds.processes import times_as_dear

BACKENDS = ["reference", *(["native"] if kernels.backends().native else [])]

MEMORY = """
import sys
import numpy as np
from recsys import kernels

def peak():  # of this process alone: getrusage would begin with its parent's
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

n_users, n_items, n_factors = 3_000, 60_000, 16
rng = np.random.default_rng(0)
users = rng.standard_normal((n_users, n_factors), dtype=np.float32)
items = rng.standard_normal((n_items, n_factors), dtype=np.float32)
truth = (np.arange(n_users + 1) * 5, np.tile(np.arange(5, dtype=np.int32), n_users))
kernels.scan(users[:1], items[:2], k=1, truth=([0, 1], [0]), backend=sys.argv[1])
before = peak()
kernels.scan(users, items, k=20, truth=truth, backend=sys.argv[1], threads=2)
packed = items.nbytes * (1 if sys.argv[1] == "native" else 2)
results = n_users * 20 * 12 + len(truth[1]) * 32 + n_users * 16
print(peak() - before, (packed + results) / 2**20)
"""


@pytest.mark.uncounted
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scan_needs_the_packed_items_its_results_and_64_mb(backend):
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, backend], check=True, capture_output=True, text=True, timeout=600
    ).stdout
    grown, allowed = map(float, out.split())
    assert grown < allowed + 64 + 16, (grown, allowed)  # 16: allocators keep some; all scores would be 687 MB


HARD = """
import sys
import numpy as np
from recsys import kernels

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

rng = np.random.default_rng(0)
kind, how = sys.argv[1], {"threads": 2, "k": 10}
n_users, n_items, n_truth = {
    "seen": (1000, 60_000, 0), "truth": (300, 20_000, 4000), "short": (50_000, 500, 0),
    "long": (8, 400_000, 0), "rows": (400_000, 500, 0),
}[kind]
n_factors = 64 if kind == "rows" else 4
users, items = (rng.standard_normal((n, n_factors), dtype=np.float32) for n in (n_users, n_items))
if kind == "seen":
    of_each = np.arange(n_items - 9, dtype=np.int32)
    how["seen"] = np.arange(n_users + 1) * of_each.size, np.tile(of_each, n_users)
elif kind == "truth":
    items_of = [rng.permutation(n_items)[:n_truth] for _ in range(n_users)]
    how |= {"k": None, "truth": (np.arange(n_users + 1) * n_truth, np.concatenate(items_of).astype(np.int32))}
elif kind == "short":
    how |= {"k": 300, "seen": (np.minimum(np.arange(n_users + 1), 1) * 400, np.arange(400, dtype=np.int32))}
elif kind == "long":
    how["k"] = n_items
else:
    how["user_rows"] = np.arange(0, n_users, 2)
n_cases = len(how.get("user_rows", users))
kernels.scan(users[:1], items[:9], k=1)
before = peak()
kernels.scan(users, items, **how)
packed = items.nbytes + n_items * 60  # the order, positions, bounds and ranks of the items
results = n_cases * ((how["k"] or 0) * 12 + 16) + n_users * n_truth * 32
print(peak() - before, (packed + results) / 2**20)
"""


@pytest.mark.uncounted
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("native" not in BACKENDS, reason="the reference holds more")
@pytest.mark.parametrize("kind", ["seen", "truth", "short", "long", "rows"])
def test_64_mb_suffice_for_much_seen_much_truth_short_or_long_lists_and_half_the_users(kind):
    out = subprocess.run(
        [sys.executable, "-c", HARD, kind], check=True, capture_output=True, text=True, timeout=600
    ).stdout
    grown, allowed = map(float, out.split())
    assert grown < allowed + 64 + 16, (grown, allowed)


FEW_THREADS = """
import resource, sys
import numpy as np
from recsys import kernels

rng = np.random.default_rng(0)
users, items = (rng.standard_normal((n, 8)) for n in (20_000, 50))
expected = kernels.scan(users, items, k=3, backend="native", threads=1)
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (int(sys.argv[1]) << 20), resource.RLIM_INFINITY))
found = kernels.scan(users, items, k=3, backend="native", threads=64, memory_budget=1 << 30)
assert all(map(np.array_equal, found, expected))
print("equal")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the memory")
@pytest.mark.skipif("native" not in BACKENDS, reason="the reference has no threads")
def test_a_scan_makes_do_with_the_threads_that_the_system_gives():
    # 100 MB hold the stacks of some of the 64 threads.
    done = subprocess.run(
        [sys.executable, "-c", FEW_THREADS, "100"], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr


INTERRUPTED = """
import signal, sys, threading
import numpy as np
from recsys import kernels

rng = np.random.default_rng(0)
threads = int(sys.argv[2])
n_users, n_items = (50_000, 400_000) if threads == 1 else (200_000, 50_000)
users, items = (rng.standard_normal((n, 64), dtype=np.float32) for n in (n_users, n_items))
if threads == 1:
    users[480:] = 0  # nothing but ties: a block behind the first one takes half a minute

def tell(done, total):
    print("scanning", flush=True)

def small():
    found = kernels.scan(users[:100], items[:1000], k=10, backend=sys.argv[1], threads=threads)
    return [array.tobytes() for array in found if array is not None]

class Terminated(BaseException):
    pass

def terminate(*_):
    raise Terminated

signal.signal(signal.SIGTERM, terminate)
before = small()
for error in (Terminated, KeyboardInterrupt):
    try:
        kernels.scan(users, items, k=10, backend=sys.argv[1], threads=threads, prune=False, progress=tell)
    except error:
        print("stopped", threading.active_count(), small() == before, flush=True)
"""


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, whatever else the machine does."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.uncounted
@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal, reads /proc")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_signal_whose_handler_raises_stops_a_scan_and_the_next_one_is_as_before(backend, threads):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, backend, threads], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            assert process.stdout.readline() == "scanning\n"
            before = cpu_seconds(process.pid)
            process.send_signal(number)
            line = next(line for line in process.stdout if line != "scanning\n")
            assert cpu_seconds(process.pid) - before < 10  # the whole scan would take minutes
            assert line == "stopped 1 True\n"
    assert process.returncode == 0


ALARMED = """
import signal, sys
import numpy as np
from recsys import kernels

rng = np.random.default_rng(0)
users, items = (rng.standard_normal((n, 64), dtype=np.float32) for n in (8_000, 50_000))
how = {"k": 10, "backend": "native", "threads": int(sys.argv[1]), "prune": False}
expected, rang = kernels.scan(users, items, **how), []

def ring(*_):
    rang.append(kernels.scan(users[:9], items[:99], **how))
    signal.setitimer(signal.ITIMER_REAL, 0.05)

signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
found = kernels.scan(users, items, **how)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(rang) > 2, all(a is b or a.tobytes() == b.tobytes() for a, b in zip(found, expected)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal")
@pytest.mark.skipif("native" not in BACKENDS, reason="in the reference Python itself sees to signals")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_handler_runs_and_may_scan_itself_while_a_scan_goes_on(threads):
    done = subprocess.run(
        [sys.executable, "-c", ALARMED, threads],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr


@pytest.mark.uncounted
@pytest.mark.skipif(sys.platform == "win32", reason="asks the system for the CPU time of children")
def test_a_cold_start_costs_little_beyond_numpy(tmp_path):
    # As installed: modules are compiled once, whatever the environment says about that here.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    call = "import numpy as np, recsys; V = np.arange(200, dtype=np.float32).reshape(50, 4); "
    call += "recsys.evaluate(recsys.Factors(V[:3], V), {1: [5]}, ['ndcg@10'])"
    assert times_as_dear(call, "import numpy, scipy.sparse, pandas", env=env) < 0.5
