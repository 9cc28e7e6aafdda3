"""A sweep that was interrupted goes on from its last slab: what a folder keeps of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.compare.grid import Grid, Slab
from readmap.compare.sweep import Best, Borders, Matrix, Swept
from readmap.errors import DataError

_STATE = "state.npz"


@dataclass(frozen=True)
class State:
    """How far a sweep has come: its slabs, the borders below the last, the highest score and the first best cell."""

    slabs: list[Slab]
    row_h: Array
    row_f: Array
    most: int
    first: Best


class Checkpoint:
    """A folder with a file a slab, and one that tells how many are whole."""

    def __init__(self, folder: Path, matrix: Matrix, grid: Grid, keeps: bool) -> None:
        """keeps: whether the slabs' special rows and columns are, which the scores alone do not need."""
        self._folder, self._backend, self._keeps = folder, matrix.backend, keeps
        self._name = _name(matrix, grid, keeps)
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> State | None:
        """What is kept, on the device; None where nothing is. Raises DataError where it is of another comparison."""
        if not (self._folder / _STATE).exists():
            return None
        with _kept(self._folder / _STATE) as state:
            name, count, most, first = str(state["name"]), int(state["slabs"]), int(state["most"]), state["first"]
            row_h, row_f = (self._backend.to_device(state[row]) for row in ("row_h", "row_f"))
        if name != self._name:
            raise DataError(
                f"{self._folder}: expected work on this comparison, found that of other sequences, scores, or tiles "
                "(--memory, --threads, --device): remove the folder, or name another"
            )
        slabs = [_slab(self._folder / _file(number), self._backend) for number in range(count)]
        return State(slabs, row_h, row_f, most, Best(*map(int, first)))

    def save(self, grid: Grid, borders: Borders, most: int, first: Best) -> None:
        """Keep the grid's last slab, and where the sweep is behind it."""
        host, number = self._backend.to_host, len(grid.slabs) - 1
        _write(self._folder / _file(number), _arrays(grid.slabs[-1], self._backend) if self._keeps else {})
        rows = {"row_h": host(borders.row_h), "row_f": host(borders.row_f)}
        state = {"name": np.array(self._name), "slabs": np.array(number + 1), "most": np.array(most)}
        _write(self._folder / _STATE, state | rows | {"first": np.array(first)})

    def remove(self) -> None:
        """Drop all that is kept: the comparison has been made."""
        for path in [self._folder / _STATE, *self._folder.glob(_file("*"))]:
            path.unlink(missing_ok=True)
        # Others may have put something there.
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _file(number: object) -> str:
    return f"slab-{number}.npz"


def _name(matrix: Matrix, grid: Grid, keeps: bool) -> str:
    """A name of the comparison: of all that decides what is kept."""
    digest = hashlib.sha256(repr((matrix.scores, str(matrix.mode), grid.steps, matrix.strip, keeps)).encode())
    for side in (matrix.query, matrix.target):
        digest.update(len(side).to_bytes(8, "little") + matrix.backend.to_host(side).tobytes())
    return digest.hexdigest()


def _write(path: Path, arrays: dict[str, Any]) -> None:
    """All or nothing: an interrupt leaves what was there before."""
    beside = path.with_name(f"{path.name}.part")
    with open(beside, "wb") as file:
        np.savez(file, **arrays)
    os.replace(beside, path)


_KEPT = ("rows_h", "rows_f", "columns_h", "columns_e")


def _arrays(slab: Slab, backend: Backend) -> dict[str, Any]:
    swept = {name: backend.to_host(getattr(slab.swept, name)) for name in _KEPT}
    return swept | {"above_h": backend.to_host(slab.above_h), "above_f": backend.to_host(slab.above_f)}


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[Any]:
    """The arrays of a file. Raises DataError where it is damaged or none of ours, OSError where it cannot be read."""
    try:
        with np.load(path) as kept:
            yield kept
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: expected what a comparison keeps, found something else: remove the folder") from error


def _slab(path: Path, backend: Backend) -> Slab:
    with _kept(path) as kept:
        arrays = {name: backend.to_device(kept[name]) for name in kept.files}
    none = backend.empty((0, 0), np.int32)
    swept = Swept(None, 0, *(arrays.get(name, none) for name in _KEPT))
    return Slab(arrays.get("above_h", none), arrays.get("above_f", none), swept)
