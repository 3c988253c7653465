"""What all tests share: where the data folder is, and how hard Hypothesis tries."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# `ci` draws the same examples every time, so a red run can be repeated; `dev` explores; `quick` is for
# `make quick`, between two edits.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "quick", deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile("deep", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def shared_folder() -> Path:
    """The data folder beside the checkout, or where RECSYS_SHARED says."""
    return Path(os.environ.get("RECSYS_SHARED", ROOT.parent / "shared"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `shared` where there is no data folder: the suite never needs it."""
    if shared_folder().is_dir():
        return
    absent = pytest.mark.skip(
        reason=f"no data folder at {shared_folder()}; RECSYS_SHARED=PATH says where one is"
    )
    for item in items:
        if item.get_closest_marker("shared"):
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The data folder, or a skip."""
    if not shared_folder().is_dir():
        pytest.skip(f"no data folder at {shared_folder()}; RECSYS_SHARED=PATH says where one is")
    return shared_folder()


@pytest.fixture
def command() -> Callable[..., Any]:
    """The `recsys` command, called with its arguments."""
    from click.testing import CliRunner

    from recsys.cli.app import cli

    def called(*arguments: object, **options: Any) -> Any:
        return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="recsys", **options)

    return called
