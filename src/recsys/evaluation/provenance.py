"""Facts about a run that do not belong to its result: versions, machine, time, kernels in use."""

from __future__ import annotations

import datetime as dt
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def library_version() -> str:
    """The installed version, or the version of the source if the package is not installed."""
    try:
        return version("recsys-evaluation")
    except PackageNotFoundError:
        import recsys

        return recsys.__version__


def run_facts() -> dict[str, Any]:
    """Time, versions and machine, for the part of a result file that is not hashed."""
    import numpy as np

    return {
        "recsys": library_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
