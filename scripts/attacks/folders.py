"""Damage indexes, databases and checkpoints: bytes on the disk, or contents with correct checksums."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from attacks.command_runs import contents, judge, names_in, run, run_or_exit, warm_up, write_base
from attacks.mutations import mutate
from attacks.outcomes import Outcome, Verdict
from readmap.database.database import Database
from readmap.formats.fasta import Contig
from readmap.index.index import Index

Array = np.ndarray[Any, Any]

INDEX, DATABASE, BEGUN, DONE = "ref.fa.readmap", "proteins.fa.readmapdb", "begun", "done"
SEARCH = ["search", "reads.fq", "-x", "ref.fa", "-t", "1", "-o", "out.sam"]
EXACT = [*SEARCH[:-1], "out.tsv", "--exact"]
COMPARE = ["compare", "one.fa", "other.fa", "-t", "1", "-o", "out.tsv", "--no-pruning", "--checkpoint"]

#: Commands that read each folder.
COMMANDS: dict[str, Sequence[Sequence[str]]] = {
    INDEX: (
        SEARCH,
        [*SEARCH, "-a"],
        ["search", "r1.fq", "r2.fq", *SEARCH[2:]],
        [*EXACT, "--structure", "array"],
        [*EXACT, "--structure", "array", "--no-prefix-table"],
        [*EXACT, "--structure", "tree"],
        ["info", "ref.fa", "--check", "-t", "1"],
        ["info", "ref.fa"],
    ),
    DATABASE: (
        ["scan", "query.fa", DATABASE, "-t", "1", "-o", "out.tsv"],
        ["scan", "proteins.fa", DATABASE, "-t", "1", "-o", "out.txt"],
        ["info", DATABASE, "--check"],
    ),
    BEGUN: ([*COMPARE, BEGUN],),
    DONE: ([*COMPARE, DONE],),
}
NAMES = (INDEX, INDEX, INDEX, DATABASE, DATABASE, BEGUN, DONE)


class Case(NamedTuple):
    """A folder's name, True if its checksums are made correct, and a command that reads it."""

    name: str
    is_right: bool
    command: Sequence[str]


class Folders:
    """The attack; see workers.Attack."""

    batch, limit = 50, 90.0

    def __init__(self, seed: int, scratch: Path, kinds: Sequence[str] = ("raw", "right")) -> None:
        """kinds: kinds of damage to draw from: "raw" (bytes on the disk), "right" (correct checksums)."""
        self._seed, self._scratch, self._kinds = seed, scratch, kinds
        self._base = scratch / "base"
        warm_up()
        write_base(self._base)
        self._interrupt(BEGUN, _leave_at_second_slab)
        self._interrupt(DONE, _leave_at_end)
        self._before = names_in(self._base)
        self._expected = {}
        for name, commands in COMMANDS.items():
            for words in commands:
                folder = scratch / "undisturbed"
                shutil.copytree(self._base, folder)
                ended = run_or_exit(words, folder, few_rows)
                self._expected[name, tuple(words)] = _results(words, folder, ended.output)
                shutil.rmtree(folder)

    def row(self, case_index: int) -> str:
        case, _ = self._case(case_index)
        kind = {INDEX: "index", DATABASE: "database"}.get(case.name, "checkpoint")
        return f"folders, {kind}, {'checksums right' if case.is_right else 'damaged'}"

    def run(self, case_index: int) -> Outcome:
        case, row = self._case(case_index)[0], self.row(case_index)
        folder = self._scratch / f"folder-{os.getpid()}"
        try:
            self._make(case_index, folder)
            ended = run(case.command, folder, patch=few_rows)
            before = {*self._before, *names_in(folder / case.name), case.name}
            verdict, reason = judge(ended, folder, {*before, *(f"{case.name}/{name}" for name in before)})
            found = _results(case.command, folder, ended.output)
            if (
                verdict is Verdict.ACCEPTED
                and not case.is_right
                and found != self._expected[case.name, tuple(case.command)]
            ):
                verdict, reason = Verdict.LOST, "accepted, and the output differs"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Outcome(row, verdict, f"{reason} ({' '.join(case.command)})" if verdict.is_finding else "")

    def keep(self, case_index: int, folder: Path) -> None:
        self._make(case_index, folder)
        (folder / "words").write_text("\n".join(self._case(case_index)[0].command) + "\n")

    def _interrupt(self, name: str, patch: Callable[[], None]) -> None:
        """Write a checkpoint as an interrupted run leaves it."""
        run_or_exit([*COMPARE, name], self._base, patch, code=99)

    def _case(self, case_index: int) -> tuple[Case, Random]:
        draw = Random(f"{self._seed} folders {case_index}")
        name = draw.choice(NAMES)
        return Case(name, draw.choice(self._kinds) == "right", draw.choice(COMMANDS[name])), draw

    def _make(self, case_index: int, folder: Path) -> None:
        """Copy the base files and damage the folder of the case."""
        case, draw = self._case(case_index)
        shutil.copytree(self._base, folder, dirs_exist_ok=True)
        if not case.is_right:
            for _ in range(draw.choice((1, 1, 1, 2))):
                _damage(draw, folder / case.name)
        elif case.name == INDEX:
            _alter_index(draw, folder / INDEX)
        elif case.name == DATABASE:
            _alter_database(draw, folder / DATABASE)
        else:
            _alter_checkpoint(draw, folder / case.name)


def _results(words: Sequence[str], folder: Path, output: bytes) -> dict[str, bytes]:
    """Return the contents of a run's output file, or else its standard output."""
    return contents(folder / words[words.index("-o") + 1]) if "-o" in words else {"": output}


def few_rows() -> None:
    """Use slabs and tiles of a few rows, so that small sequences have several of them."""
    from readmap.pairwise import grid, long_pairs

    grid.TRACED_TILE, long_pairs.GROUP_CELLS, long_pairs.MIN_GROUP_STRIPS = 150, 1, 1


def _leave_at_second_slab() -> None:
    from readmap.pairwise.checkpoint import Checkpoint

    save = Checkpoint.save

    def save_and_leave(self: Checkpoint, slab_index: int, *rest: Any) -> None:
        save(self, slab_index, *rest)
        if slab_index == 1:
            os._exit(99)

    few_rows()
    Checkpoint.save = save_and_leave  # type: ignore[method-assign]


def _leave_at_end() -> None:
    from readmap.pairwise.checkpoint import Checkpoint

    finish = Checkpoint.finish

    def finish_and_leave(self: Checkpoint, alignment: Any) -> None:
        finish(self, alignment)
        os._exit(99)

    few_rows()
    Checkpoint.finish = finish_and_leave  # type: ignore[method-assign]


def _damage(draw: Random, folder: Path) -> None:
    """Mutate a file of a folder, swap it with another file, delete it, or alter its array."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        return
    file = draw.choice(files)
    with contextlib.suppress(Exception):  # a damaged file may not be an array
        array = np.load(file) if file.suffix == ".npy" and draw.random() < 0.1 else None
        if array is not None:
            np.save(file, altered(draw, array))
            return
    kind = draw.randrange(7)
    if kind == 0:
        other = draw.choice(files)
        data = other.read_bytes()
        other.write_bytes(file.read_bytes())
        file.write_bytes(data)
    elif kind == 1:
        file.unlink()
        if draw.random() < 0.2:
            file.mkdir()
    else:
        file.write_bytes(mutate(draw, file.read_bytes(), times=draw.choice((1, 1, 2, 5)))[0])


def altered(draw: Random, array: Array) -> Array:
    """Return the array with another dtype, shape or content."""
    array = np.array(array)
    kind = draw.randrange(12)
    flat = array.reshape(-1)
    if kind == 0:
        return array.astype(draw.choice((np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float64, "S3")))
    if kind == 1:
        return draw.choice((array[..., None], array[None], flat, flat[:0], np.asarray(flat[0] if len(flat) else 0)))
    if kind == 2:
        return array[: draw.randrange(len(array) + 1)] if array.ndim else array
    if kind == 3:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 4 and array.ndim:
        return np.asfortranarray(array[::-1]) if draw.random() < 0.5 else np.sort(array, axis=None).reshape(array.shape)
    if kind == 5:
        return np.full_like(array, draw.choice((0, 1)))
    raw = bytearray(array.tobytes())
    if kind == 6:
        raw = bytearray(draw.randbytes(len(raw)))
    if kind == 7:
        raw = bytearray(b"\xff" * len(raw))
    if kind == 8 and raw:
        start = draw.randrange(len(raw))
        raw[start : start + 200] = draw.randbytes(len(raw[start : start + 200]))
    for _ in range(draw.choice((1, 1, 3, 20)) if kind > 8 and len(flat) else 0):
        size, place = array.itemsize, draw.randrange(len(flat))
        span = slice(place * size, (place + 1) * size)
        value = int.from_bytes(raw[span], "little") + draw.choice((1, -1, 7, -7, 64, 1 << 15))
        extreme = draw.choice((0, len(flat), 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, value))
        raw[span] = (extreme % 2 ** (8 * size)).to_bytes(size, "little")
    return np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


def _alter_index(draw: Random, folder: Path) -> None:
    """Write an index with altered arrays or facts and correct checksums."""
    index = Index.open(folder)
    fields = ["words", "barrier_blocks", "barrier_starts", "barrier_ends", "barrier_letters", "contig_starts"]
    arrays = {name: np.array(getattr(index.reference, name)) for name in fields}
    arrays |= {name: np.array(getattr(index, name)) for name in ("suffixes", "prefix_table", "edges")}
    contigs, bases, source = list(index.reference.contigs), index.table_bases, index.source
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        name = draw.choice([*arrays, *arrays, "table_bases", "contigs"])
        if name == "table_bases":
            bases = draw.choice((0, 1, bases + 1, bases - 1, 15, 16, 31, 64, -1, 10**6))
        elif name == "contigs":
            contig = draw.choice(contigs)
            length = draw.choice((0, 1, -1, contig.length + 1, 1 << 40))
            new = draw.choice(
                (Contig(contig.name, length, contig.md5), replace(contig, name=draw.choice(("", "x" * 300))))
            )
            contigs = draw.choice(([*contigs, new], [new], contigs[1:], [new if c == contig else c for c in contigs]))
            contigs = contigs or [contig]
        else:
            arrays[name] = altered(draw, arrays[name])
    reference = replace(index.reference, contigs=tuple(contigs), **{name: arrays[name] for name in fields})
    Index(reference, arrays["suffixes"], arrays["prefix_table"], bases, arrays["edges"], source).write(
        folder, force=True
    )


def _alter_database(draw: Random, folder: Path) -> None:
    """Write a database with altered arrays and correct checksums."""
    database = Database.open(folder)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        name = draw.choice(("codes", "starts", "lengths", "order", "text", "offsets"))
        if name in ("text", "offsets"):
            array = altered(draw, getattr(database.titles, name))
            database = replace(database, titles=replace(database.titles, **{name: array}))
        else:
            database = replace(database, **{name: altered(draw, getattr(database, name))})
    database.write(folder, force=True)


def _alter_checkpoint(draw: Random, folder: Path) -> None:
    """Alter arrays of a file of a checkpoint, except the name of the comparison."""
    file = draw.choice(sorted(folder.rglob("*.npz")))
    with np.load(file) as kept:
        arrays = {name: kept[name] for name in kept.files}
    for _ in range(draw.choice((1, 1, 2))):
        name = draw.choice([name for name in arrays if name != "name"])
        arrays[name] = altered(draw, arrays[name])
    if draw.random() < 0.1:
        del arrays[draw.choice(list(arrays))]
    np.savez(file, **arrays)  # type: ignore[arg-type]
