"""The pieces of an evaluation beyond memory: in memory, or kept in a folder from which a later run goes on.

The folder of a checkpoint belongs to one question: the same inputs, metrics, conventions and options. Each
piece is one file that appears when the piece is done; its rows are next to it. The folder goes when the
result is there.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import recsys
from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, Fix, InputError, Phrase
from recsys.evaluation.files.digests import digest
from recsys.evaluation.files.result_files import fingerprint
from recsys.evaluation.files.row_folders import RowWriter, WrittenPiece, write_piece
from recsys.evaluation.in_pieces.pieces import PieceResult, join_pieces, refuse_summaries, written_result
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import EvaluationRun, RunOrigin
from recsys.inputs.byte_sizes import format_memory, parse_memory
from recsys.inputs.files.atomic_folder import HiddenFolder, lock_folder, remove_folder
from recsys.inputs.files.atomic_write import write_errors_of, write_text
from recsys.inputs.files.formats import read_text_file
from recsys.metrics.registry import Request
from recsys.records.arrays import Ids

_LEAST_MEMORY = 256 << 20  # besides what the evaluation holds already
_PLAN = "plan.json"
_OURS = (_PLAN, "piece-", "part-", "ranges", "spill")
_UNFINISHED = (f".{_PLAN}.", ".piece-")  # what a process that was killed was writing
_MARK = {"recsys": "checkpoint"}
_JOINED_AT_ONCE = 8
_WHAT_TO_DO = "Check the free space and the folder's permissions."


@dataclass(frozen=True)
class Storage:
    """What an evaluation beyond memory may use: bytes, a folder for values per user, one for pieces.

    `memory` comes on top of `held_before`, what the process held when the evaluation began.
    """

    memory: int
    per_user: Path | None
    checkpoint: Path | None
    held_before: int = 0

    @classmethod
    def of(cls, memory: Any, per_user: Any, checkpoint: Any) -> Storage:
        """Return the keywords of evaluate as they were given."""
        held_before = resident_bytes()
        folders = {"per_user": per_user, "checkpoint": checkpoint}
        for name, path in folders.items():
            if path is not None and not isinstance(path, str | os.PathLike):
                raise InputError(f"{name}={path!r} is not a path.", hint=f"Write {name}='folder'.")
            if path is not None and memory is None:
                raise InputError(
                    Phrase("{} is for an evaluation beyond memory, and {memory=} is not given.", Fix(name)),
                    hint=Phrase("Write {memory='2GB'}, {}.", Fix(name, str(path))),
                )
        of_rows, of_pieces = (None if path is None else Path(path) for path in folders.values())
        if of_rows is not None and of_pieces is not None:
            places = of_rows.resolve(), of_pieces.resolve()
            if any(one.is_relative_to(other) for one, other in (places, places[::-1])):
                raise InputError(
                    Phrase("{per_user=} and {checkpoint=} ", per_user=str(of_rows), checkpoint=str(of_pieces))
                    + "are one folder, or one is inside the other, and that of the checkpoint is removed.",
                    hint="Name two folders, neither inside the other.",
                )
        return cls(parse_memory(memory), of_rows, of_pieces, held_before)

    def left(self, needed: int = _LEAST_MEMORY, what: str = "an evaluation beyond memory") -> int:
        """Return the memory that the evaluation may still take; an error if that is less than it needs."""
        grown = max(0, resident_bytes() - self.held_before)
        if self.memory < grown + needed:
            enough = format_memory(grown + needed)
            raise InputError(
                Phrase("{memory=} is too little: ", memory=format_memory(self.memory))
                + f"{what} needs {enough} on top of what the process held before, and has taken "
                f"{format_memory(grown)} of it already.",
                hint=Phrase("Write {memory=}.", memory=enough),
            )
        return self.memory - grown


def resident_bytes() -> int:
    """Return the memory that this process holds; 0 where the system does not say, which is not Linux."""
    try:
        with Path("/proc/self/statm").open() as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class PieceStore:
    """The pieces that are done: in memory, or in the folder of a checkpoint; and their rows, if wanted.

    `spill` is a folder for what does not fit into memory, which goes with everything in it at the end.
    """

    def __init__(self, storage: Storage, requests: Sequence[Request], *, by: Any = None) -> None:
        refuse_summaries(requests, by=by, keeps_values=storage.per_user is not None)
        self._storage = storage
        self._stack = contextlib.ExitStack()
        self._pieces: list[PieceResult] = []
        self.plan: dict[str, Any] = {}

    def __enter__(self) -> Self:
        storage, stack = self._storage, self._stack
        with contextlib.ExitStack() as on_error:
            on_error.push(stack)
            if storage.checkpoint is None:
                place = Path(
                    tempfile.gettempdir() if storage.per_user is None else storage.per_user.absolute().parent
                )
                hidden = HiddenFolder(place / "recsys-pieces")
                stack.callback(hidden.remove)
                self.folder = hidden.path
            else:
                self.folder = storage.checkpoint
                self._take_folder()
            self.spill = self.folder / "spill"
            remove_folder(self.spill)
            with write_errors_of(self.spill, _WHAT_TO_DO):
                self.spill.mkdir()
            stack.callback(remove_folder, self.spill)
            self._writer = (
                None if storage.per_user is None else stack.enter_context(RowWriter(storage.per_user))
            )
            on_error.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def keeps(self) -> bool:
        """Whether pieces outlive the process."""
        return self._storage.checkpoint is not None

    def _take_folder(self) -> None:
        """Make the folder of the checkpoint or take over an earlier one; an error if it is anything else."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(ImportError):  # no such locks on this system
                self._stack.callback(os.close, lock_folder(self.folder))
            names = [file.name for file in self.folder.iterdir()]
        except BlockingIOError as error:
            raise FileError(
                f"another process uses the checkpoint in {self.folder}.",
                hint="Wait until it has ended, or name another folder.",
            ) from error
        except OSError as error:
            raise FileError(
                f"{self.folder} cannot be the folder of a checkpoint: {error.strerror or error}.",
                hint="Name a new folder, or an empty one.",
            ) from error
        self._stack.callback(self._leave_folder)
        found = sorted(name for name in names if not name.startswith(_UNFINISHED))
        foreign = [name for name in found if not name.startswith(_OURS)]
        if found and (foreign or _PLAN not in found or self._stored_plan().get("recsys") != _MARK["recsys"]):
            raise FileError(
                f"{self.folder} holds {[*foreign, *found][0]!r}, so it is not the folder of a checkpoint.",
                hint="Name a new folder, or an empty one.",
            )
        if not found:
            write_text(self.folder / _PLAN, json.dumps(_MARK))

    def _leave_folder(self) -> None:
        """Remove the folder if nothing in it is done, or all is."""

        def remove_if_empty() -> None:
            if self._stored_plan() == _MARK:
                remove_folder(self.folder)

        _try_twice(remove_if_empty)

    def _stored_plan(self) -> dict[str, Any]:
        try:
            plan = dict(json.loads(read_text_file(self.folder / _PLAN)))
            is_ours = plan.get("recsys") == _MARK["recsys"]
            # What is not the plan of a checkpoint, or one in which nothing is done, has no sha256.
            is_whole = "question" not in plan or plan.pop("sha256", None) == fingerprint(plan)
        except (OSError, RecursionError, ValueError, TypeError) as error:
            raise self._damaged(_PLAN, error, hint="Remove the folder.") from error
        if is_ours and not is_whole:
            raise self._damaged(_PLAN, ValueError("not as it was written"), hint="Remove the folder.")
        return plan

    def open(self, **question: Any) -> None:
        """Find the pieces of an earlier run of the same question; an error if it was another one."""
        if not self.keeps:
            return
        question |= {"per_user": self._writer is not None, "recsys": recsys.__version__}
        self.plan = {**_MARK, "question": {name: digest(part) for name, part in question.items()}}
        stored = self._stored_plan()
        before = stored.get("question")
        if not isinstance(before, dict):
            self._forget()
            return
        names = dict.fromkeys((*before, *question))
        changed = [name for name in names if before.get(name) != self.plan["question"].get(name)]
        if changed:
            raise FileError(
                f"{', '.join(changed)} changed since the checkpoint in {self.folder} was made.",
                hint="Remove the folder to start again, or name another one.",
            )
        self.plan = stored

    def _forget(self) -> None:
        """Remove all but the plan, which says from now on that nothing is done."""
        with write_errors_of(self.folder, _WHAT_TO_DO):
            write_text(self.folder / _PLAN, json.dumps(_MARK))
            for file in self.folder.iterdir():
                if file.is_dir() and file != self.spill:
                    shutil.rmtree(file)
                elif not file.is_dir() and file.name != _PLAN:
                    file.unlink()

    def _damaged(self, name: str, error: Exception, hint: str) -> FileError:
        return FileError(f"{self.folder / name} is damaged ({error!r}).", hint=hint)

    def keep_plan(self, **facts: Any) -> None:
        """Add to the plan how the users were cut, so that a later run cuts them the same way."""
        self.plan |= facts
        if self.keeps:
            write_text(self.folder / _PLAN, json.dumps(self.plan | {"sha256": fingerprint(self.plan)}))

    def has(self, number: int) -> bool:
        """Return whether a piece is done."""
        return self.keeps and self._piece_file(number).exists()

    def _piece_file(self, number: int) -> Path:
        return self.folder / f"piece-{number:05}"

    def add(self, number: int, piece: RunOrigin, *, whole_users: bool) -> None:
        """Keep what a piece adds to the result, and its rows where they are wanted."""
        found, partial = PieceResult.of(piece, whole_users=whole_users), piece.partial
        written = None
        if self._writer is not None:
            file = (self.folder if self.keeps else self._writer.path) / f"part-{number:05}.parquet"
            with write_errors_of(file, _WHAT_TO_DO):
                file.unlink(missing_ok=True)
                written = write_piece(file, partial.rows, partial.terms, piece.truth_keys)
        if self.keeps:
            text = base64.b64encode(found.to_bytes()).decode()
            write_text(self._piece_file(number), json.dumps({"piece": text, "rows": written}))
            return
        if self._writer is not None and written is not None:
            self._writer.add(written)
        self._add(found)

    def _add(self, piece: PieceResult) -> None:
        self._pieces.append(piece)
        if len(self._pieces) > _JOINED_AT_ONCE:
            self._pieces = [join_pieces(self._pieces)]

    def result(
        self,
        inputs: CommonInputs,
        conventions: Conventions,
        n_pieces: int,
        *,
        catalogue: Ids | None = None,
        whole: EvaluationRun | None = None,
    ) -> Evaluation:
        """Return the result of all pieces; its values per user are in the folder that was asked for."""
        for number in range(n_pieces) if self.keeps else ():
            self._take_up(number)
        joined = join_pieces(self._pieces)
        if not joined.n_cases:
            raise InputError("lists and truth have no rows.", hint="Check the paths and the filter.")
        evaluation = written_result(
            joined, inputs, conventions, self._writer, catalogue=catalogue, whole=whole
        )
        if self.keeps:
            # Failing to remove files does not withhold a result: the next run finds all pieces, or
            # a plan that says that nothing is done.
            _try_twice(self._forget)
        return evaluation

    def _take_up(self, number: int) -> None:
        """Add a piece that is kept in the folder to those in memory, and its rows to the folder of rows."""
        name = self._piece_file(number).name
        try:
            stored = json.loads(read_text_file(self.folder / name))
            piece = PieceResult.from_bytes(base64.b64decode(stored["piece"]))
            if self._writer is not None:
                own_file = f"part-{number:05}.parquet"  # no other file, whatever it says
                written = WrittenPiece.read(*stored["rows"])._replace(file=own_file)
                if written.rows:
                    # The same file under a second name: the checkpoint stays whole.
                    file, copy = self.folder / written.file, self._writer.path / written.file
                    try:
                        os.link(file, copy)
                    except OSError:  # another disk
                        shutil.copyfile(file, copy)
                self._writer.add(written)
        except (
            OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError, zlib.error
        ) as error:  # fmt: skip
            hint = f"Remove {name} from the folder: the same call then evaluates this piece again."
            raise self._damaged(name, error, hint) from error
        self._add(piece)


def _try_twice(clean_up: Callable[[], None]) -> None:
    """Clean up, once more if a disk fails; what cannot be removed then is left."""
    for _ in range(2):
        with contextlib.suppress(FileError):
            clean_up()
            return
