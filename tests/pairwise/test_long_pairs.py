"""Test long pairs against the oracle and against batches, for any division of the matrix."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples import random_bases
from numpy.typing import NDArray
from oracles.comparison import Comparison
from pair_examples import CORNERS, SCORES, draw_long_pair, draw_pair, parsed, same

from readmap import DataError, PairAlignments
from readmap.backend import Backend, open_backend
from readmap.backend.team import Team
from readmap.pairwise import checkpoint
from readmap.pairwise.batches import align_batch
from readmap.pairwise.device_sequences import sequences_from_texts
from readmap.pairwise.long_pairs import align_long
from readmap.pairwise.matrix import Cell, DPMatrix
from readmap.pairwise.parameters import CompareSettings, MatchScores, Mode
from readmap.pairwise.sweep import matrix_borders, sweep

MODES = pytest.mark.parametrize("mode", list(Mode))


@pytest.fixture(scope="module", params=[1, 3], ids=["one thread", "threads"])
def backend(backends: str, request: pytest.FixtureRequest) -> Backend:
    opened = open_backend(backends, threads=request.param)
    opened.concurrent_warps = opened.resident_warps = 1  # slabs of few rows
    return opened


def codes(text: str, backend: Backend) -> Any:
    return sequences_from_texts([text], backend).codes[: len(text)]


def align(pair: tuple[str, str], scores: MatchScores, mode: Mode, backend: Backend, **how: Any) -> PairAlignments:
    known, sides = {"progress"} & how.keys(), [codes(side, backend) for side in pair]
    own = {name: how.pop(name) for name in known}
    return align_long(
        [DPMatrix(*sides, scores, mode, backend)], CompareSettings(scores, **how), Team.of(backend), **own
    )


def batch(pairs: list[tuple[str, str]], scores: MatchScores, mode: Mode, backend: Backend) -> PairAlignments:
    backend.scratch_bytes = max(backend.scratch_bytes, 1 << 30)  # so that no pair is too large
    sides = (sequences_from_texts([pair[side] for pair in pairs], backend) for side in (0, 1))
    return align_batch(*sides, scores, mode, backend).to_host(backend)


@MODES
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_alignments_match_the_oracle(backend: Backend, scores: MatchScores, mode: Mode) -> None:
    draw = random.Random(f"{scores}{mode}")
    for pair in [*CORNERS, *(draw_pair(draw, longest) for longest in (2, 9, 60))]:
        assert parsed(align(pair, scores, mode, backend)) == [Comparison(*pair, scores, mode).alignment], pair


@MODES
@pytest.mark.parametrize("memory", [1 << 16, 1 << 30])
def test_tiles_slabs_and_pruning_change_nothing(backend: Backend, mode: Mode, memory: int, small_tiles: None) -> None:
    draw = random.Random(f"{mode}{memory}")
    for scores in (MatchScores(), MatchScores(2, 3, 5, 1), MatchScores(1, 1, 0, 1), MatchScores(100, 70, 300, 50)):
        pairs = [pair for pair in (draw_long_pair(draw, 2500) for _ in range(6)) if all(pair)]
        expected = parsed(batch(pairs, scores, mode, backend))
        for pair, alignment in zip(pairs, expected, strict=True):
            for pruning in (True, False):
                assert parsed(align(pair, scores, mode, backend, memory=memory, pruning=pruning)) == [alignment]
            only = align(pair, scores, mode, backend, score_only=True, memory=memory)
            ends = alignment.score, alignment.query_end, alignment.target_end
            assert (only.scores[0], only.query_ends[0], only.target_ends[0]) == ends
            assert (only.query_starts[0], only.target_starts[0], len(only.operations)) == (-1, -1, 0)


@pytest.mark.parametrize(
    ("mode", "height"), [(mode, height) for mode in Mode for height in MatchScores().sweep_costs(mode)]
)
def test_rows_per_lane_change_nothing(
    backend: Backend, mode: Mode, height: int, small_tiles: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slabs, special rows and columns, and incomplete last strips."""
    draw = random.Random(f"{mode}{height}")
    pairs = [pair for pair in (draw_long_pair(draw, 5000) for _ in range(4)) if all(pair)]
    monkeypatch.setattr(MatchScores, "sweep_costs", lambda *_: {height: 1})
    for pair, expected in zip(pairs, parsed(batch(pairs, MatchScores(), mode, backend)), strict=True):
        for memory in (1 << 18, 1 << 30):
            assert parsed(align(pair, MatchScores(), mode, backend, memory=memory)) == [expected]


def test_choice_of_rows_per_lane() -> None:
    """On a GPU that sweeps 528 strips at once."""
    gpu: Any = SimpleNamespace(warp_width=32, lanes_16bit=2, resident_warps=528)

    def height(rows: int, row_step: int = 1 << 30) -> int:
        matrix = DPMatrix(np.empty(rows, np.uint8), np.empty(rows, np.uint8), MatchScores(), Mode.LOCAL, gpu)
        return matrix.choose_lane_rows(rows, rows, row_step)

    assert height(1_000_000) == 15
    assert height(1_100_000) == 11
    assert height(1_150_000) == 18
    assert height(3 * 528 * 64 * 24) == 24
    assert height(5_000) == 9
    assert height(1_000_000, row_step=3 * 1024) == 16
    assert height(1_500_000, row_step=3 * 1024) == 24
    assert height(1_100_000, row_step=11 * 1024) == 11
    assert height(1_100_000, row_step=17 * 1024) == 17


def test_ties_end_at_the_first_cell(backend: Backend, small_tiles: None) -> None:
    unit = random_bases(random.Random(3), 40)
    apart = ("N" * 20).join([unit] * 60)
    found = align((apart, apart), MatchScores(1, 3, 3, 2), Mode.LOCAL, backend)
    assert same(found, batch([(apart, apart)], MatchScores(1, 3, 3, 2), Mode.LOCAL, backend))
    assert (found.query_ends[0], found.target_ends[0]) == (40, 40)


def test_a_sequence_with_itself_is_pruned(backend: Backend, small_tiles: None) -> None:
    text = random_bases(random.Random(4), 12_000)
    matrix = DPMatrix(codes(text, backend), codes(text, backend), MatchScores(), Mode.LOCAL, backend)
    skipped = {}
    for prunes in (True, False):
        best = backend.full(1, 0, np.int32)
        step = matrix.strip_rows * -(-matrix.rows // matrix.strip_rows)
        swept = sweep(matrix, Cell(0, 0), matrix_borders(matrix), step, matrix.columns, best, prunes)
        assert swept.best == (12_000, 11_999, 11_999)
        skipped[prunes] = swept.skipped
    assert skipped[True] > skipped[False] == 0


def test_borders_match_the_matrix(backend: Backend) -> None:
    draw = random.Random(6)
    query, target = random_bases(draw, 530), random_bases(draw, 400)
    comparison = Comparison(query, target, MatchScores(), Mode.GLOBAL)
    matrix = DPMatrix(codes(query, backend), codes(target, backend), MatchScores(), Mode.GLOBAL, backend)
    borders, host = matrix_borders(matrix), backend.to_host
    swept = sweep(matrix, Cell(0, 0), borders, matrix.strip_rows, 130)
    table: NDArray[Any] = np.array(comparison.matrices[0])
    assert np.array_equal(host(borders.row_h), table[-1, 1:])
    assert len(swept.lines.rows_h) == 529 // matrix.strip_rows
    for number in range(len(swept.lines.rows_h)):
        assert np.array_equal(host(swept.lines.rows_h)[number], table[(number + 1) * matrix.strip_rows, 1:])
    for number in range(3):
        assert np.array_equal(host(swept.lines.columns_h)[number], table[:, (number + 1) * 130])
    insertions = np.array(comparison.matrices[2])
    below = np.maximum(insertions[-1, 1:] - 2, table[-1, 1:] - 5)
    assert np.array_equal(host(borders.row_f), below)


class Interrupted(Exception):
    """Raised in the middle of a sweep."""


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\3\4 a half one"])
@pytest.mark.parametrize("name", ["state.npz", "slab-0.npz"])
def test_damaged_checkpoints_are_rejected(
    backend: Backend, small_tiles: None, tmp_path: Path, name: str, content: bytes
) -> None:
    def interrupt(*_: int) -> None:
        raise Interrupted

    text = random_bases(random.Random(9), 3000 if backend.warp_width == 1 else 30_000)
    with pytest.raises(Interrupted):
        align((text, text), MatchScores(), Mode.LOCAL, backend, checkpoint=tmp_path, progress=interrupt)
    assert (tmp_path / name).exists()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: expected a file of a checkpoint, found something else"):
        align((text, text), MatchScores(), Mode.LOCAL, backend, checkpoint=tmp_path)


def test_foreign_files_in_a_checkpoint_folder_stay(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "1-1-forward"
    folder.mkdir()
    (folder / "notes").touch()
    found = align(("ACGT", "ACGT"), MatchScores(), Mode.LOCAL, backend, checkpoint=folder)
    assert found.cigars() == ["4="]
    checkpoint.remove_checkpoints(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_an_interrupted_write_loses_no_checkpoint(
    backend: Backend, small_tiles: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random_bases(random.Random(8), 6000 if backend.warp_width == 1 else 30_000)
    folder, calls, savez = tmp_path / "work", [0], np.savez

    def fail(file: Any, **arrays: Any) -> None:
        calls[0] += 1
        file.write(b"half of it")
        if calls[0] == 6:
            raise Interrupted
        file.seek(0)
        savez(file, **arrays)

    monkeypatch.setattr(checkpoint.np, "savez", fail)
    with pytest.raises(Interrupted):
        align((text, text), MatchScores(), Mode.LOCAL, backend, checkpoint=folder)
    found = align((text, text), MatchScores(), Mode.LOCAL, backend, checkpoint=folder)
    assert found.cigars() == [f"{len(text)}="]


def test_herpesvirus_alignment_matches_the_paper(backends: str, shared: Path) -> None:
    """Table 5 of CUDAlign; positions are 1-based."""
    from readmap.reads.sequences import read_sequences

    backend = open_backend(backends)
    names = (shared / "data/pairs" / f"{name}.fa.gz" for name in ("NC_000898", "NC_007605"))
    pair = tuple(read_sequences(str(name), 1).letters.tobytes().decode() for name in names)
    found = align((pair[0], pair[1]), MatchScores(), Mode.LOCAL, backend, score_only=True)
    assert (found.scores[0], found.query_ends[0], found.target_ends[0]) == (18, 41058, 44353)
