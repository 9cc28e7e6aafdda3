"""Seeds -> Diagonals: where the reference resembles each read without gaps, the best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.sorting import order_by
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.parameters import SPLIT
from readmap.mapping.passes import Selection
from readmap.mapping.seeds import Seeds
from readmap.reads.length_order import WORD_BASES

KEPT = constant("mapping/diagonals.cuh", "KEPT")
DIAGONAL = row_dtype("mapping/diagonals.cuh", "Diagonal")
DIAGONAL_WORDS = DIAGONAL.itemsize // 8

_FIND = Kernel("mapping/diagonals", "find_diagonals", grouped=True)


@dataclass(frozen=True)
class Diagonals:
    """KEPT rows a selected read, of which the first `counts` are diagonals.

    Attributes:
        rows: int64 [selected * KEPT, DIAGONAL_WORDS]; on the host `rows.view(DIAGONAL)` names the fields.
        counts: int32 [selected].
        unexamined: int32 [selected], the most bases shared at a seed by a place that was not looked at, 0 for none.
    """

    rows: Array
    counts: Array
    unexamined: Array

    @classmethod
    def empty(cls, reads: int, backend: Backend) -> Diagonals:
        """Room for those of so many reads, of which none leaves a place unexamined."""
        rows, counts = backend.empty((reads * KEPT, DIAGONAL_WORDS), np.int64), backend.empty(reads, np.int32)
        return cls(rows, counts, backend.full(reads, 0, np.int32))


def find_diagonals(selection: Selection, seeds: Seeds, batch: Batch, context: Context) -> Diagonals:
    """The best diagonals that the seeds of the selected reads lead to: of a pass over parts, the seeds in these."""
    backend, queries, placements = context.backend, batch.queries, batch.placements
    if selection.effort.takes == SPLIT:
        begins, ends = placements.part_begins, placements.part_ends
    else:
        begins, ends = backend.full(batch.reads.count, 0, np.int32), queries.lengths
    found = Diagonals.empty(len(selection.slots.numbers), backend)
    batch.launch(
        _FIND,
        selection.slots.count,
        context,
        seeds=seeds,
        selected=selection.slots.numbers,
        part_begins=begins,
        part_ends=ends,
        found=found,
        shortest_seed=selection.effort.shortest_seed,
        neighbours=selection.effort.neighbours,
    )
    return found


def order_by_place(strands: Array, places: Array, batch: Batch, context: Context) -> Array:
    """The numbers of diagonals, uint32, by read, orientation and place; equal ones as they stood.

    strands: uint64, twice a read's number and the orientation. places: uint64, diagonals, counted from that on which as
    many bases lie in front of the reference as the longest read has.
    """
    place_bits = (WORD_BASES * len(context.index.reference.words) + batch.queries.longest).bit_length()
    return order_by([(strands, batch.reads.count.bit_length() + 1), (places, place_bits)], context.backend)
