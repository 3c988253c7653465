"""scan on a GPU through torch and Triton: the same bits as the other backends, by the same kind of proof.

A fast pass in half precision on the tensor cores decides what its error bound allows; scores within the bound
are computed again in float64, in the fixed order. Without a GPU the pass runs in plain torch, so that it can
be tested everywhere.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from recsys.kernels.backend import BACKENDS, Backend, Execution, ScanProblem, ScanResult


@cache
def why_no_gpu() -> str | None:
    """Return why backend="cuda" cannot be used here; None where it can."""
    for name in ("torch", "triton"):
        if find_spec(name) is None:
            return f"{name} is not installed"
    return None if import_module("torch").cuda.is_available() else "torch sees no GPU"


def _scan(problem: ScanProblem, execution: Execution) -> ScanResult:
    """Scan on the GPU; its modules are imported when it is used."""
    from recsys.kernels.cuda import cuda_scan

    return cuda_scan.scan(problem, execution)


BACKENDS["cuda"] = Backend("cuda", why_no_gpu, scan=_scan)
