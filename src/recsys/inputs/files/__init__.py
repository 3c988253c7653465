"""Files to Lists and Interactions, and text to files.

The format follows from the file's name, else from its content; files that can run code when opened are
refused by content alone. Ids are read as text by default, so two files always match each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.inputs.files.atomic_write import write_bytes as write_bytes
    from recsys.inputs.files.atomic_write import write_text as write_text
    from recsys.inputs.files.ncf import NcfTest as NcfTest
    from recsys.inputs.files.ncf import read_ncf_files as read_ncf_files
    from recsys.inputs.files.ncf import write_ncf_files as write_ncf_files
    from recsys.inputs.files.reader import FORMATS as FORMATS  # type: ignore[attr-defined] # all of them
    from recsys.inputs.files.reader import read_file as read_file
    from recsys.inputs.files.reader import write_table as write_table

__getattr__, __dir__, __all__ = lazy_names(__name__)
