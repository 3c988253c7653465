"""What only a process of its own can show: peak memory, an interrupt from the keyboard, a cold start."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from recsys import kernels

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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scan_needs_the_packed_items_its_results_and_64_mb(backend):
    out = subprocess.run(
        [sys.executable, "-c", MEMORY, backend], check=True, capture_output=True, text=True, timeout=120
    ).stdout
    grown, allowed = map(float, out.split())
    assert grown < allowed + 64 + 16, (grown, allowed)  # 16: allocators keep some; all scores would be 687 MB


INTERRUPTED = """
import sys, threading
import numpy as np
from recsys import kernels

rng = np.random.default_rng(0)
users, items = (rng.standard_normal((n, 64), dtype=np.float32) for n in (200_000, 50_000))

def tell(done, total):
    print("scanning", flush=True)

try:
    kernels.scan(users, items, k=10, backend=sys.argv[1], threads=2, prune=False, progress=tell)
except KeyboardInterrupt:
    print("stopped", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal")
@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_stops_a_scan(backend):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, backend], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "scanning\n"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = process.stdout.read().split("\n")
        assert time.monotonic() - began < 30  # the whole scan would take minutes
    assert rest[-2] == "stopped 1"
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="asks the system for the CPU time of children")
def test_a_cold_start_costs_little_beyond_numpy():
    import resource

    def took(code: str) -> float:
        """CPU time: what a busy machine adds to the clock is not ours."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    call = "import numpy as np, recsys; V = np.arange(200, dtype=np.float32).reshape(50, 4); "
    call += "recsys.evaluate(recsys.Factors(V[:3], V), {1: [5]}, ['ndcg@10'])"
    pairs = [(took(call), took("import numpy")) for _ in range(3)]
    assert min(whole - base for whole, base in pairs) < 0.3
