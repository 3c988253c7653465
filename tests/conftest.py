"""What tests share: the data folder, how hard Hypothesis tries, Spark, a browser, what was left out."""

import contextlib
import ctypes
import gc
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# `fixed`, the usual one, draws the same examples every time, so a red run can be repeated; `dev` and `deep`
# explore; `quick` is for `make quick`, between two edits. An example may take as long as it takes.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", calm, derandomize=True, max_examples=30)
settings.register_profile("quick", calm, max_examples=10)
settings.register_profile("dev", calm, max_examples=100)
settings.register_profile("deep", calm, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Workers of xdist say that a terminal is 80 wide; what is printed into a pipe is as wide everywhere.
os.environ.pop("COLUMNS", None)

# PySpark 4.3 says this at every call that might meet pandas.
SPARK_AND_PANDAS_3 = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def shared_folder() -> Path:
    """The data folder beside the checkout, or where RECSYS_SHARED says."""
    return Path(os.environ.get("RECSYS_SHARED", ROOT.parent / "shared"))


GROWTH = 200 << 20  # bytes
_tidied_at = 0


def resident_bytes() -> int:
    """What this process holds; 0 where the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Hand back what tests left behind, once it is much: cycles of objects, and memory that was freed."""
    global _tidied_at  # noqa: PLW0603 - a process has one memory
    if resident_bytes() < _tidied_at + GROWTH:
        return
    gc.collect()
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
    _tidied_at = resident_bytes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests go to whichever worker is free, but those of Spark all to one, so that there is one JVM."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    # --dist loadgroup is for this, but xdist 3.8 no longer groups anything under pytest 9.2.
    class OneForSpark(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "/spark" in nodeid else nodeid

    return OneForSpark(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let PySpark meet pandas 3; skip what is marked `shared` where there is no data folder."""
    for item in items:
        if "/spark" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings(SPARK_AND_PANDAS_3))
    if shared_folder().is_dir():
        return
    absent = pytest.mark.skip(
        reason=f"no data folder at {shared_folder()}; RECSYS_SHARED=PATH says where one is"
    )
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(absent)


# A part of the reason of a skip: what was left out for it, and how to have it.
LEFT_OUT = {
    "no Chromium": "of pages in a browser (apt-get install chromium)",
    "no Java": "of Spark (apt-get install default-jre-headless, or JAVA_HOME=FOLDER: Java 17 or newer)",
    "no data folder": "with published data (RECSYS_SHARED=FOLDER)",
    "of pandas 2": "of pandas 2 (make matrix)",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line how many tests were left out for want of what, and how to have it."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    number = {words: sum(part in reason for reason in reasons) for part, words in LEFT_OUT.items()}
    number["for other reasons (above)"] = len(reasons) - sum(number.values())
    if not reasons or hasattr(
        config, "workerinput"
    ):  # a worker of xdist, whose reports come together elsewhere
        return
    line = "Tests left out: " + "; ".join(f"{n} {words}" for words, n in number.items() if n) + "."
    terminalreporter.write_line(line)
    if path := os.environ.get("RECSYS_LEFT_OUT"):
        with Path(path).open("a") as file:
            file.write(line + "\n")


@pytest.fixture(scope="session", autouse=True)
def _polars_has_looked() -> None:
    """Polars looks for pyarrow once, when it is imported, which must not be while a test hides pyarrow."""
    with contextlib.suppress(ImportError):
        import polars  # noqa: F401, ICN001


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The data folder, or a skip."""
    if not shared_folder().is_dir():
        pytest.skip(f"no data folder at {shared_folder()}; RECSYS_SHARED=PATH says where one is")
    return shared_folder()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A classic Spark session on two cores, for all tests of this process; a skip where Java is missing."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("no Java: Spark needs 17 or newer, as `java` on the PATH or named by JAVA_HOME")
    builder = pytest.importorskip("pyspark.sql").SparkSession.builder.master("local[2]")
    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.driver.memory": "1g",
        "spark.local.dir": folder / "local",
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100_000,
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    for name, value in options.items():
        builder = builder.config(name, str(value))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, driven by Playwright; a skip where there is none."""
    from worlds.browser import ARGUMENTS, CHROMIUM

    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def command() -> Callable[..., Any]:
    """The `recsys` command, called with its arguments; the two outputs are apart, also with click 8.1."""
    from click.testing import CliRunner

    from recsys.cli.app import cli

    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}

    def called(*arguments: object, **options: Any) -> Any:
        return CliRunner(**apart).invoke(cli, [str(a) for a in arguments], prog_name="recsys", **options)

    return called
