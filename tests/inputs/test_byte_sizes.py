"""Sizes of memory as people write them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.errors import InputError
from recsys.inputs.byte_sizes import format_memory, parse_memory


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [
        ("1GB", 10**9),
        ("512 MB", 512 * 10**6),
        ("1GiB", 2**30),
        (" 1.5 gb ", 1_500_000_000),
        ("2k", 2000),
        (".5TiB", 2**39),
        ("4096", 4096),
        ("4096B", 4096),
        (4096, 4096),
        (np.int32(5), 5),
        (1e9, 10**9),
    ],
)
def test_sizes(size, n_bytes):
    found = parse_memory(size)
    assert (found, type(found)) == (n_bytes, int)


@pytest.mark.parametrize(
    "size",
    [
        "",
        "GB",
        "1 PB",
        "1iB",
        "-1GB",
        "1e9",
        "\uff11GB",
        "1,5GB",
        0,
        -4,
        0.5,
        math.nan,
        math.inf,
        True,
        None,
        2**63,
        [],
    ],
)
def test_what_is_no_size_is_an_error_that_says_what_to_write(size):
    with pytest.raises(InputError, match=r"memory=.* is not a size of memory\. Write memory='1GB'"):
        parse_memory(size)


@given(st.integers(1, 1 << 60))
def test_a_printed_size_is_enough_and_little_more(n_bytes):
    printed = parse_memory(format_memory(n_bytes))
    assert n_bytes <= printed <= n_bytes * 1.1
