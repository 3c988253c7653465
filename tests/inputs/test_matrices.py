"""Files of matrices that are damaged, encrypted or made to fill the memory are refused with a reason."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import FileError, InputError
from recsys.inputs import read_lists
from recsys.inputs.files.matrices import read_arrays


def npy_bytes(header: str) -> bytes:
    padded = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + bytes(64)


HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (8000000000000, 1)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), ",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (04, 2)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 2)}",
    "{'descr': 'zz', 'fortran_order': False, 'shape': (4, 2)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (4, 2)}",
    "(((((((",
]


@pytest.mark.parametrize("header", HEADERS)
def test_damaged_headers_are_refused(tmp_path, header):
    (tmp_path / "a.npy").write_bytes(npy_bytes(header))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("U.npy", npy_bytes(header))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(FileError, match=name.replace(".", r"\.")):
            read_arrays(tmp_path / name)
    np.save(tmp_path / "u.npy", np.ones((2, 1)))
    with pytest.raises(FileError, match=r"a\.npy"):
        recsys.read_factors(tmp_path / "u.npy", tmp_path / "u.npy", user_ids=tmp_path / "a.npy")


def test_encrypted_archives_and_unknown_packings_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", U=np.ones((2, 3)))
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    for offset, value in ((6, 1), (8, 99)):  # the flags and the packing of the first member
        damaged, central = raw.copy(), raw.rindex(b"PK\x01\x02")
        damaged[offset] = value
        damaged[central + offset + 2] = value
        (tmp_path / "b.npz").write_bytes(damaged)
        with pytest.raises(FileError, match=r"b\.npz"):
            read_arrays(tmp_path / "b.npz")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", U=np.zeros((1 << 10, 1 << 10)))
    assert read_arrays(tmp_path / "a.npz")["U"].shape == (1 << 10, 1 << 10)
    monkeypatch.setattr("recsys.inputs.files.formats._UNPACKED_BYTES", 1 << 20)
    with pytest.raises(FileError, match="times its size"):
        read_arrays(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", U=np.zeros((1 << 9, 1 << 9)))
    assert read_arrays(tmp_path / "b.npz")["U"].shape == (1 << 9, 1 << 9)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=5), st.booleans())
def test_any_damage_is_a_file_error(tmp_path_factory, damage, packed):
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, U=np.ones((2, 3)))
    content = bytearray(out.getvalue())
    for at, value in damage:
        content[at % len(content)] = value
    path = tmp_path_factory.mktemp("damage") / "a.npz"
    path.write_bytes(content)
    with contextlib.suppress(FileError):
        read_arrays(path)


def test_a_parquet_file_with_a_name_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": [1], "item": [2], "extra": [3]}).to_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"extra", b"ext\xff\xfe"))
    with pytest.raises(FileError, match="damaged"):
        recsys.read_file(path)


@pytest.mark.parametrize("offsets", [[0, -5, 4], [0, 100, 4], [0, 4, 2]])
@pytest.mark.parametrize("column", ["user", "item"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_arrow_offsets_outside_the_text_are_refused(offsets, column, chunks):
    buffers = [None, pa.py_buffer(np.array(offsets, dtype=np.int32).tobytes()), pa.py_buffer(b"abcd")]
    damaged = pa.chunked_array([pa.Array.from_buffers(pa.string(), 2, buffers)] * chunks)
    whole = pa.array(["x", "y"] * chunks)
    other = "item" if column == "user" else "user"
    with pytest.raises(InputError, match="damaged Arrow"):
        read_lists(pa.table({column: damaged, other: whole}))


def test_arrow_categories_outside_their_dictionary_are_refused():
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int8()), pa.array(["a", "b"]), safe=False)
    with pytest.raises(InputError, match="damaged Arrow"):
        read_lists(pa.table({"user": ["u", "v"], "item": labels}))


def test_what_holds_no_numbers_is_refused(tmp_path):
    np.savez(tmp_path / "names.npz", users=np.array(["ann", "bob"]))
    with pytest.raises(FileError, match=r"names\.npz holds <U3 values, not numbers"):
        read_arrays(tmp_path / "names.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("a.npy", b"hello")
    with pytest.raises(FileError, match=r"text\.npz holds no NumPy array, or a pickle"):
        read_arrays(tmp_path / "text.npz")


def test_tensors_of_complex_numbers_are_refused(tmp_path):
    store = pytest.importorskip("safetensors.numpy")
    try:
        store.save_file({"w": np.ones((2, 2), dtype=np.complex64)}, str(tmp_path / "c.safetensors"))
    except pytest.importorskip("safetensors").SafetensorError:
        pytest.skip("this version of safetensors has no complex numbers")
    with pytest.raises(FileError, match=r"c\.safetensors holds complex64 values, not numbers"):
        read_arrays(tmp_path / "c.safetensors")


def test_a_newer_header_of_numpy_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "new.npz", "w") as archive, archive.open("a.npy", "w") as stream:
        np.lib.format.write_array(stream, np.arange(3.0), version=(3, 0))
    assert read_arrays(tmp_path / "new.npz")["a"].tolist() == [0.0, 1.0, 2.0]


def test_beside_matrices_only_lists_of_ids_are_read_from_a_state(tmp_path):
    torch = pytest.importorskip("torch")
    state = {"w": torch.ones(2, 1), "ids": ["ann", "bob"], "none": [], "odd": [1.5], "depth": 3}
    torch.save(state, tmp_path / "state.pt")
    found = read_arrays(tmp_path / "state.pt")
    assert sorted(found) == ["ids", "w"]
    assert found["ids"].tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("matrices", "names"),
    [({"a": (2, 2), "b": (2, 2)}, "no user matrix; found a, b."), ({"a": (2,)}, "no matrix.")],
)
def test_a_file_of_factors_holds_one_matrix(tmp_path, matrices, names):
    np.savez(tmp_path / "users.npz", **{name: np.ones(shape) for name, shape in matrices.items()})
    np.save(tmp_path / "items.npy", np.ones((3, 2)))
    with pytest.raises(FileError, match=f"users.npz holds {names}"):
        recsys.read_factors(tmp_path / "users.npz", tmp_path / "items.npy")


def test_ids_that_are_no_letters_are_refused(tmp_path):
    np.save(tmp_path / "u.npy", np.ones((2, 1)))
    np.save(tmp_path / "ids.npy", np.array([0x7FFFFFFF, 65], dtype=np.uint32).view("U1"))
    with pytest.raises(FileError, match=r"ids\.npy cannot be read"):
        recsys.read_factors(tmp_path / "u.npy", tmp_path / "u.npy", user_ids=tmp_path / "ids.npy")
