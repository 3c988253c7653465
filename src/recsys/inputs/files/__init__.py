"""Files to Lists and Interactions, and text to files.

The format follows from the file's name, else from its content; files that can run code when opened are
refused by content alone. Ids are read as text by default, so two files always match each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.inputs.files.atomic_write import write_bytes, write_text
    from recsys.inputs.files.formats import FORMATS
    from recsys.inputs.files.ncf import NcfTest, read_ncf_files, write_ncf_files
    from recsys.inputs.files.reader import read_file, write_table

__all__ = [
    "FORMATS",
    "NcfTest",
    "read_file",
    "read_ncf_files",
    "write_bytes",
    "write_ncf_files",
    "write_table",
    "write_text",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "atomic_write": ("write_bytes", "write_text"),
        "ncf": ("NcfTest", "read_ncf_files", "write_ncf_files"),
        "reader": ("FORMATS", "read_file", "write_table"),
    },
)
