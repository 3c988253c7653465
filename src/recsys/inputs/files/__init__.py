"""Files to Lists and Interactions, and text to files.

The format follows from the file's name, else from its content; files that can run code when opened are
refused by content alone. Ids are read as text by default, so two files always match each other.
"""

from recsys.inputs.files.atomic_write import write_bytes, write_text
from recsys.inputs.files.ncf import NcfTest, read_ncf_files, write_ncf_files
from recsys.inputs.files.reader import FORMATS, read_file

__all__ = [
    "FORMATS",
    "NcfTest",
    "read_file",
    "read_ncf_files",
    "write_bytes",
    "write_ncf_files",
    "write_text",
]


def __dir__() -> list[str]:
    return __all__
