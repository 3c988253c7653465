"""Inputs that several tests of statistics share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def sides() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a = rng.normal(size=40)
    return a + 0.3, 0.6 * a + rng.normal(size=40)
