"""A comparison that was interrupted goes on from its last slab: what a folder keeps of it, or of its result."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array
from readmap.errors import DataError
from readmap.formats.file_errors import NPY_HEADER_ERRORS, file_name_context
from readmap.formats.output import open_output
from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.column_blocks import SavedSlab, empty_slab
from readmap.pairwise.grid import Slab, TileSizes
from readmap.pairwise.matrix import CHUNK, BestCell, DPMatrix
from readmap.pairwise.sweep import SpecialLines, SweepResult

_STATE, _RESULT = "state.npz", "alignment.npz"


@dataclass(frozen=True)
class Resumed:
    """How far a sweep has come: its slabs, the rows below the last, the highest score and the first best cell."""

    steps: TileSizes
    slabs: int
    row_h: Array
    row_f: Array
    most: int
    first: BestCell


class Checkpoint:
    """A folder with a file a slab, and one that says how many are whole; in the end, with the alignment alone.

    All arrays are of the whole matrix, however many devices have shares of it, and on the host.
    """

    def __init__(self, folder: Path, matrix: DPMatrix, keeps: bool) -> None:
        """keeps: whether the slabs' special rows and columns are, which the scores alone do not need."""
        self._folder, self._matrix, self._keeps = folder, matrix, keeps
        self._name = _name(matrix, keeps)
        folder.mkdir(parents=True, exist_ok=True)

    def alignment(self) -> PairAlignments | None:
        """The alignment, on the host, if the comparison was made. Raises DataError where it is another's."""
        if not (path := self._folder / _RESULT).exists():
            return None
        with _kept(path) as kept:
            self._expect(str(kept["name"]))
            ends = _array(kept, "operation_ends", np.int64, 1)
            # A column is a letter of one sequence or of both.
            count = _in_range(ends[0], 0, self._matrix.rows + self._matrix.columns)
            found = {name: _array(kept, name, np.int64, 1) for name in _PLACES}
            scores, operations = _array(kept, "scores", np.int32, 1), _array(kept, "operations", np.uint32, count)
            return PairAlignments(**found, scores=scores, operation_ends=ends, operations=operations)

    def load(self) -> Resumed | None:
        """The state that is kept; None where there is none. Raises DataError where it is another's."""
        if not (path := self._folder / _STATE).exists():
            return None
        matrix = self._matrix
        with _kept(path) as state:
            self._expect(str(state["name"]))
            steps = TileSizes(*map(int, _array(state, "steps", np.int64, 3)))
            if steps.row % matrix.strip or steps.slab % matrix.strip:
                raise DataError(f"{self._folder}: expected work of {matrix.backend.name}, found that of another device")
            self._expect_steps(steps)
            count = _in_range(_array(state, "slabs", np.int64), 1, -(-matrix.rows // steps.slab))
            most = _in_range(_array(state, "most", np.int64), 0, int(np.iinfo(np.int32).max))
            first = self._first(_array(state, "first", np.int64, 3), min(count * steps.slab, matrix.rows))
            row_h, row_f = (_array(state, row, np.int32, matrix.columns) for row in _ROWS)
            return Resumed(steps, count, row_h, row_f, most, first)

    def _expect_steps(self, steps: TileSizes) -> None:
        """Raise ValueError where no grid has these steps."""
        least = CHUNK + self._matrix.lanes if self._keeps else 1
        whole = steps.row if self._keeps else 1
        _in_range(steps.row, 1, steps.slab)
        _in_range(steps.column, min(least, self._matrix.columns), 1 << 62)
        _in_range(steps.slab % whole, 0, 0)

    def _first(self, first: NDArray[np.int64], rows: int) -> BestCell:
        """The first best cell, which is none as yet, or in the rows that were swept. Raises ValueError."""
        score = _in_range(first[0], 0, int(np.iinfo(np.int32).max))
        least = 0 if score else -1
        return BestCell(
            score,
            _in_range(first[1], least, rows - 1 if score else -1),
            _in_range(first[2], least, self._matrix.columns - 1 if score else -1),
        )

    def slab(self, number: int, steps: TileSizes) -> Slab:
        """A slab that is kept. Raises DataError where it is none."""
        matrix = self._matrix
        with _kept(self._folder / _file(number)) as kept:
            if not self._keeps:
                return empty_slab()
            rows, columns = min(steps.slab, matrix.rows - number * steps.slab), matrix.columns
            above, across = (rows - 1) // steps.row, (columns - 1) // steps.column
            shapes = ((above, columns), (above, columns), (across, rows + 1), (across, rows))
            lines = (_array(kept, name, np.int32, *shape) for name, shape in zip(_KEPT, shapes, strict=True))
            swept = SweepResult(None, 0, SpecialLines(*lines))
            above_h, above_f = (_array(kept, name, np.int32, columns) for name in _ABOVE)
            return Slab(above_h, above_f, swept)

    def save(self, number: int, steps: TileSizes, kept: SavedSlab, most: int, first: BestCell) -> None:
        """Keep a slab, and where the sweep is behind it."""
        _write(self._folder / _file(number), _arrays(kept.slab) if self._keeps else {})
        state = {"name": self._name, "steps": (steps.slab, steps.row, steps.column), "slabs": number + 1}
        rows = {"row_h": kept.row_h, "row_f": kept.row_f}
        _write(self._folder / _STATE, state | rows | {"most": most, "first": first})

    def finish(self, alignment: PairAlignments) -> None:
        """Keep the alignment, and nothing else."""
        _write(self._folder / _RESULT, vars(alignment) | {"name": self._name})
        for path in [self._folder / _STATE, *self._folder.glob(_file("*"))]:
            path.unlink(missing_ok=True)

    def _expect(self, name: str) -> None:
        if name != self._name:
            raise DataError(
                f"{self._folder}: expected work on this comparison, found that of other sequences or scores: "
                "remove the folder, or name another"
            )


def remove_checkpoints(folder: Path) -> None:
    """Drop the alignments that are kept in a folder's folders, and these, but for what others may have put there."""
    for path in folder.glob(f"*/{_RESULT}"):
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    with contextlib.suppress(OSError):
        folder.rmdir()


def _file(number: object) -> str:
    return f"slab-{number}.npz"


def _name(matrix: DPMatrix, keeps: bool) -> str:
    """A name of the comparison: of all that decides what comes out."""
    digest = hashlib.sha256(repr((matrix.scores, str(matrix.mode), keeps)).encode())
    for side in (matrix.query, matrix.target):
        digest.update(len(side).to_bytes(8, "little") + matrix.backend.to_host(side).tobytes())
    return digest.hexdigest()


def _write(path: Path, arrays: dict[str, Any]) -> None:
    """All or nothing: an interrupt leaves what was there before. Raises OSError that names the file."""
    try:
        with open_output(str(path)) as output:
            with open(output.fileno(), "wb", closefd=False) as file:
                np.savez(file, **arrays)
            output.commit()
    except OSError as error:
        raise OSError(
            error.errno, error.strerror or "not all could be written (a full disk, a quota)", str(path)
        ) from None


#: What NumPy, zipfile and zlib raise where a file is none of ours.
_UNREADABLE = (*NPY_HEADER_ERRORS, TypeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)

_KEPT = tuple(field.name for field in fields(SpecialLines))
_ROWS, _ABOVE = ("row_h", "row_f"), ("above_h", "above_f")
_PLACES = ("query_starts", "query_ends", "target_starts", "target_ends")


def _arrays(slab: Slab) -> dict[str, Any]:
    return vars(slab.swept.lines) | {"above_h": slab.above_h, "above_f": slab.above_f}


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[Any]:
    """The arrays of a file. Raises DataError where it is damaged or none of ours, OSError where it cannot be read."""
    try:
        with file_name_context(str(path)), np.load(path) as kept:
            yield kept
    except _UNREADABLE as error:
        raise DataError(f"{path}: expected what a comparison keeps, found something else: remove the folder") from error


def _array(kept: Any, name: str, dtype: type[np.generic], *shape: int) -> NDArray[Any]:
    """An array of a file. Raises ValueError where it has another dtype or shape, before it takes any memory."""
    with kept.zip.open(f"{name}.npy") as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name} is of a format that was not written")
        if np.lib.format.read_array_header_1_0(member) != (shape, False, np.dtype(dtype)):
            raise ValueError(f"{name} has another dtype or shape")
    array: NDArray[Any] = kept[name]
    return array


def _in_range(number: Any, least: int, most: int) -> int:
    if not least <= int(number) <= most:
        raise ValueError(f"{number} is not in the range {least} to {most}")
    return int(number)
