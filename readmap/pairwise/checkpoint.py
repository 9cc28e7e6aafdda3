"""Checkpoints: a folder from which an interrupted comparison resumes after its last slab, or that holds its result."""

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
class SavedState:
    """The progress of a sweep: number of slabs, H and F below the last slab, the highest score, and the best cell."""

    sizes: TileSizes
    slabs: int
    row_h: Array
    row_f: Array
    best_score: int
    best_cell: BestCell


class Checkpoint:
    """A folder with a file per slab and a state file; in the end, only the alignment; for any number of devices."""

    def __init__(self, folder: Path, matrix: DPMatrix, keeps_lines: bool) -> None:
        """Create the folder. keeps_lines: store special rows and columns, which scores alone do not need."""
        self._folder, self._matrix, self._keeps = folder, matrix, keeps_lines
        self._name = _hash_inputs(matrix, keeps_lines)
        folder.mkdir(parents=True, exist_ok=True)

    def alignment(self) -> PairAlignments | None:
        """Return the stored alignment, on the host, or None. Raise DataError if it belongs to another comparison."""
        if not (path := self._folder / _RESULT).exists():
            return None
        with _open_arrays(path) as kept:
            self._check_name(str(kept["name"]))
            ends = _array(kept, "operation_ends", np.int64, 1)
            # Each column consumes a letter of at least one sequence.
            count = _in_range(ends[0], 0, self._matrix.rows + self._matrix.columns)
            found = {name: _array(kept, name, np.int64, 1) for name in _RANGES}
            scores, operations = _array(kept, "scores", np.int32, 1), _array(kept, "operations", np.uint32, count)
            return PairAlignments(**found, scores=scores, operation_ends=ends, operations=operations)

    def load(self) -> SavedState | None:
        """Return the stored state, or None. Raise DataError if it belongs to another comparison."""
        if not (path := self._folder / _STATE).exists():
            return None
        matrix = self._matrix
        with _open_arrays(path) as state:
            self._check_name(str(state["name"]))
            sizes = TileSizes(*map(int, _array(state, "sizes", np.int64, 3)))
            if sizes.tile_rows % matrix.strip_rows or sizes.slab_rows % matrix.strip_rows:
                expected = f"expected a checkpoint of {matrix.backend.name}"
                raise DataError(f"{self._folder}: {expected}, found one of another device")
            self._check_sizes(sizes)
            count = _in_range(_array(state, "slabs", np.int64), 1, -(-matrix.rows // sizes.slab_rows))
            best_score = _in_range(_array(state, "best_score", np.int64), 0, int(np.iinfo(np.int32).max))
            rows = min(count * sizes.slab_rows, matrix.rows)
            best_cell = self._best_cell(_array(state, "best_cell", np.int64, 3), rows)
            row_h, row_f = (_array(state, row, np.int32, matrix.columns) for row in _ROWS)
            return SavedState(sizes, count, row_h, row_f, best_score, best_cell)

    def _check_sizes(self, sizes: TileSizes) -> None:
        """Raise ValueError if stored tile sizes are impossible for the matrix."""
        min_columns = CHUNK + self._matrix.lanes if self._keeps else 1
        whole = sizes.tile_rows if self._keeps else 1
        _in_range(sizes.tile_rows, 1, sizes.slab_rows)
        _in_range(sizes.tile_columns, min(min_columns, self._matrix.columns), 1 << 62)
        _in_range(sizes.slab_rows % whole, 0, 0)

    def _best_cell(self, values: NDArray[np.int64], rows: int) -> BestCell:
        """Return the best cell of `values` (score, row, column; -1 for none) in `rows` rows; ValueError if invalid."""
        score = _in_range(values[0], 0, int(np.iinfo(np.int32).max))
        low, row, column = (0, rows - 1, self._matrix.columns - 1) if score else (-1, -1, -1)
        return BestCell(score, _in_range(values[1], low, row), _in_range(values[2], low, column))

    def slab(self, index: int, sizes: TileSizes) -> Slab:
        """Return a stored slab, empty if special lines are not kept. Raise DataError if the file is invalid."""
        matrix = self._matrix
        with _open_arrays(self._folder / _file(index)) as kept:
            if not self._keeps:
                return empty_slab()
            rows, columns = min(sizes.slab_rows, matrix.rows - index * sizes.slab_rows), matrix.columns
            above, across = (rows - 1) // sizes.tile_rows, (columns - 1) // sizes.tile_columns
            shapes = ((above, columns), (above, columns), (across, rows + 1), (across, rows))
            lines = (_array(kept, name, np.int32, *shape) for name, shape in zip(_KEPT, shapes, strict=True))
            swept = SweepResult(None, 0, SpecialLines(*lines))
            above_h, above_f = (_array(kept, name, np.int32, columns) for name in _ABOVE)
            return Slab(above_h, above_f, swept)

    def save(self, index: int, sizes: TileSizes, kept: SavedSlab, best_score: int, best_cell: BestCell) -> None:
        """Store slab `index` in a file of its own, and the state of the sweep after it in the state file."""
        slab = vars(kept.slab.swept.lines) | {"above_h": kept.slab.above_h, "above_f": kept.slab.above_f}
        _write(self._folder / _file(index), slab if self._keeps else {})
        sides = (sizes.slab_rows, sizes.tile_rows, sizes.tile_columns)
        state = {"name": self._name, "sizes": sides, "slabs": index + 1, "row_h": kept.row_h, "row_f": kept.row_f}
        _write(self._folder / _STATE, state | {"best_score": best_score, "best_cell": best_cell})

    def finish(self, alignment: PairAlignments) -> None:
        """Store the alignment and delete everything else."""
        _write(self._folder / _RESULT, vars(alignment) | {"name": self._name})
        for path in [self._folder / _STATE, *self._folder.glob(_file("*"))]:
            path.unlink(missing_ok=True)

    def _check_name(self, name: str) -> None:
        """Raise DataError if `name`, the hash in a stored file, is of another comparison."""
        if name != self._name:
            raise DataError(
                f"{self._folder}: expected a checkpoint of this comparison, found one of other sequences or scores: "
                "remove the folder, or choose another one"
            )


def remove_checkpoints(folder: Path) -> None:
    """Delete the alignments stored in subfolders of `folder`, and folders that are then empty; keep other files."""
    for path in folder.glob(f"*/{_RESULT}"):
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    with contextlib.suppress(OSError):
        folder.rmdir()


def _file(index: object) -> str:
    return f"slab-{index}.npz"


def _hash_inputs(matrix: DPMatrix, keeps_lines: bool) -> str:
    """Return a SHA-256 hash, in hexadecimal, of everything that determines the result."""
    digest = hashlib.sha256(repr((matrix.scores, str(matrix.mode), keeps_lines)).encode())
    for side in (matrix.query, matrix.target):
        digest.update(len(side).to_bytes(8, "little") + matrix.backend.to_host(side).tobytes())
    return digest.hexdigest()


def _write(path: Path, arrays: dict[str, Any]) -> None:
    """Write an .npz file atomically: an interrupt leaves the old file. Raise OSError naming the file."""
    try:
        with open_output(str(path)) as output:
            with open(output.fileno(), "wb", closefd=False) as file:
                np.savez(file, **arrays)
            output.commit()
    except OSError as error:
        reason = error.strerror or "not all could be written (a full disk, a quota)"
        raise OSError(error.errno, reason, str(path)) from None


#: Exceptions of NumPy, zipfile and zlib for invalid files.
_UNREADABLE = (*NPY_HEADER_ERRORS, TypeError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)

_KEPT = tuple(field.name for field in fields(SpecialLines))
_ROWS, _ABOVE = ("row_h", "row_f"), ("above_h", "above_f")
_RANGES = ("query_starts", "query_ends", "target_starts", "target_ends")


@contextlib.contextmanager
def _open_arrays(path: Path) -> Iterator[Any]:
    """Yield the arrays of an .npz file. Raise DataError if it is damaged or foreign, OSError if it cannot be read."""
    try:
        with file_name_context(str(path)), np.load(path) as kept:
            yield kept
    except _UNREADABLE as error:
        raise DataError(f"{path}: expected a file of a checkpoint, found something else: remove the folder") from error


def _array(kept: Any, name: str, dtype: type[np.generic], *shape: int) -> NDArray[Any]:
    """Return array `name` of an .npz file; ValueError, before allocating memory, if its dtype or shape differs."""
    with kept.zip.open(f"{name}.npy") as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name} has an unknown format version")
        if np.lib.format.read_array_header_1_0(member) != (shape, False, np.dtype(dtype)):
            raise ValueError(f"{name} has another dtype or shape")
    array: NDArray[Any] = kept[name]
    return array


def _in_range(value: Any, low: int, high: int) -> int:
    if not low <= int(value) <= high:
        raise ValueError(f"{value} is not in the range {low} to {high}")
    return int(value)
