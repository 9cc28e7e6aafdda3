"""Test that altered checkpoints cause an error or a correct result."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import random_bases

from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.errors import DataError
from readmap.pairwise.comparison import compare_all
from readmap.pairwise.parameters import CompareSettings, MatchScores
from readmap.reads.sequences import Sequences
from readmap.strand import Strand


class Interrupted(Exception):
    """Raised in the middle of a sweep."""


@pytest.fixture
def backend(backends: str, small_tiles: None) -> Backend:
    opened = open_backend(backends, threads=1)
    opened.concurrent_warps = opened.resident_warps = 1  # slabs of few rows
    return opened


class Comparing:
    """A comparison with a checkpoint folder, which can be interrupted."""

    def __init__(self, backend: Backend, folder: Path, score_only: bool = False) -> None:
        self.backend = backend
        text = random_bases(random.Random(9), 3000 if backend.warp_width == 1 else 20_000)
        texts = text, text[:900] + random_bases(random.Random(1), 40) + text[900:]
        self.sides = [Sequences.of([b"a"], [np.frombuffer(side.encode(), np.uint8)]) for side in texts]
        self.settings = CompareSettings(MatchScores(), score_only=score_only, checkpoint=folder)
        self.folder = folder / "1-1-forward"

    def run(self, slabs: int | None = None) -> tuple[int, list[int]]:
        """Return the score and the operations. slabs: interrupt after this number of slabs."""
        reported = 0

        def progress(done: int, total: int) -> None:
            nonlocal reported
            reported += 1
            if reported == slabs:
                raise Interrupted

        (found,) = compare_all(*self.sides, self.settings, Strand.FORWARD, Team.of(self.backend), progress)
        return int(found.alignments.scores[0]), found.alignments.operations.tolist()

    def change(self, file: str, arrays: dict[str, Any]) -> None:
        """Write a file of the folder again with other arrays."""
        with np.load(self.folder / file) as kept:
            np.savez(self.folder / file, **dict(kept) | arrays)

    def kept(self, file: str) -> dict[str, Any]:
        with np.load(self.folder / file) as kept:
            return dict(kept)


@pytest.mark.parametrize("score_only", [False, True], ids=["alignment", "score"])
@pytest.mark.parametrize("file", ["state.npz", "slab-1.npz", "alignment.npz"])
def test_wrong_shapes_and_dtypes_are_rejected(backend: Backend, tmp_path: Path, file: str, score_only: bool) -> None:
    comparing = Comparing(backend, tmp_path, score_only)
    right = comparing.run()
    if file != "alignment.npz":
        (comparing.folder / "alignment.npz").unlink()
        with pytest.raises(Interrupted):
            comparing.run(slabs=2)
    arrays = comparing.kept(file)
    changed = {name: array for name, array in arrays.items() if name != "name"}
    if score_only and file == "slab-1.npz":
        assert not changed
        return
    for name, array in changed.items():
        for other in (array.astype(np.int16), array.reshape(1, *array.shape), np.append(array, array.reshape(-1)[:1])):
            comparing.change(file, arrays | {name: other})
            if array.size or other.shape != array.shape:
                with pytest.raises(DataError, match=f"{file}: expected a file of a checkpoint, found something else"):
                    comparing.run()
    comparing.change(file, arrays)
    assert comparing.run() == right


IMPOSSIBLE: list[tuple[str, int | list[int]]] = [
    *(("slabs", 0), ("slabs", 7777), ("best_score", -1)),
    *(("sizes", [0, 0, 0]), ("sizes", [-256, -256, 500]), ("sizes", [2**40, 2**40 - 256, 500])),
    *(("best_cell", [5, -1, -1]), ("best_cell", [5, 2**40, 5]), ("best_cell", [-1, -1, -1])),
]


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_impossible_values_are_rejected(backend: Backend, tmp_path: Path, name: str, value: int | list[int]) -> None:
    comparing = Comparing(backend, tmp_path)
    with pytest.raises(Interrupted):
        comparing.run(slabs=2)
    comparing.change("state.npz", {name: np.array(value)})
    with pytest.raises(DataError, match=r"1-1-forward.*: expected (a file of a checkpoint|a checkpoint of \S+), found"):
        comparing.run()


@pytest.mark.parametrize("seed", range(6))
def test_arbitrary_scores_cause_an_error_or_a_valid_alignment(backend: Backend, tmp_path: Path, seed: int) -> None:
    """The alignment that is returned always has its score."""
    comparing, rng = Comparing(backend, tmp_path), np.random.default_rng(seed)
    with pytest.raises(Interrupted):
        comparing.run(slabs=3)
    for file in ("state.npz", "slab-0.npz", "slab-1.npz", "slab-2.npz"):
        arrays = comparing.kept(file)
        reach = int(rng.choice([3, 1000, 2**31 - 1]))
        for name in rng.choice([name for name in arrays if arrays[name].dtype == np.int32], 3):
            arrays[name] = rng.integers(-reach, reach, arrays[name].shape, np.int32)
        comparing.change(file, arrays)
    message = ""
    try:
        assert comparing.run()[0] > 0
    except DataError as error:
        message = str(error)
    assert not message or "1-1-forward: expected a checkpoint of this comparison, found contradictory data" in message


def test_an_alignment_that_contradicts_the_sequences_is_rejected(backend: Backend, tmp_path: Path) -> None:
    comparing = Comparing(backend, tmp_path)
    score, _ = comparing.run()
    for name, value in (("scores", [score + 1]), ("query_starts", [-5]), ("target_ends", [2**40])):
        kept = comparing.kept("alignment.npz")
        comparing.change("alignment.npz", {name: np.array(value, kept[name].dtype)})
        with pytest.raises(DataError, match=r"1-1-forward: expected a checkpoint of .*: remove the folder"):
            comparing.run()
        comparing.change("alignment.npz", kept)
    assert comparing.run()[0] == score
