"""What is known about a file format: one row per format, beside the functions that read it.

Detection, reading, writing, the command's help and the documentation all read `FORMATS`. The modules of the
built-in formats register when `reader` is imported; take the complete registry from `recsys.files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recsys.inputs import read_interactions, read_lists
from recsys.inputs.ids import IdKind
from recsys.types import Interactions, Lists, Registry

if TYPE_CHECKING:
    from recsys.inputs.files.content import FileContent

ROLES = {
    "lists": ("case", "user", "item", "score", "rank"),
    "truth": ("case", "user", "item", "grade", "time"),
}


@dataclass(frozen=True)
class ReadOptions:
    """What the caller asks of a reader.

    `kind` is "lists" or "truth"; `columns` and `ids` as in read_file. Whole tables have two more: `header`
    names the columns of a file that has none, `text` leaves every cell of a text file as it is.
    """

    kind: str = "truth"
    columns: Mapping[str, str] | None = None
    ids: IdKind = "str"
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    text: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES[self.kind]

    def finish(self, data: Any, columns: Mapping[str, str] | None, name: str) -> Lists | Interactions:
        """Lists or Interactions from a table or container in memory."""
        if self.kind == "lists":
            return read_lists(data, columns=columns, table=name)
        return read_interactions(data, columns=columns, table=name)


@dataclass(frozen=True, eq=False)
class Format:
    """One file format.

    Args:
        name: what `format=` and `--format` call it.
        read: its lists or interactions.
        read_whole: a pandas table of all columns, and {role: column}; None if it is no table.
        write: the bytes of a narwhals frame, for a file of this name; None if it is not written.
        suffixes: endings of file names; files are written with the first. Formats may share an ending: then
            `recognises` decides.
        magic: the first bytes of every file of this format.
        recognises: whether a file begins like this format, asked where neither magic nor ending decides.
            Formats that were added later are asked first.
        typed: numbers and texts differ in the file; otherwise every cell is text.
        help: how it is recognised, for the documentation.
        lists: which columns or keys hold lists, for the documentation.
        truth: the same for the truth.
    """

    name: str
    read: Callable[[FileContent, ReadOptions], Lists | Interactions]
    read_whole: Callable[[FileContent, ReadOptions], tuple[Any, dict[str, str]]] | None = None
    write: Callable[[Any, str], bytes] | None = None
    suffixes: tuple[str, ...] = ()
    magic: bytes | None = None
    recognises: Callable[[bytes], bool] | None = None
    typed: bool = False
    help: str = ""
    lists: str = "user, item, and score or rank"
    truth: str = "user, item, and a grade if graded"


FORMATS: Registry[Format] = Registry("file format", "recsys.formats")


def add_format(entry: Format) -> None:
    """Register a format under its name."""
    FORMATS[entry.name] = entry
