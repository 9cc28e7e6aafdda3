"""Find the diagonals on which a read and the reference agree best without gaps (Seeds -> Diagonals)."""

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant, row_dtype
from readmap.backend.radix_sort import argsort_columns
from readmap.backend.tables import Table
from readmap.mapping.batch import Batch, Context
from readmap.mapping.parameters import SPLIT
from readmap.mapping.seeds import Seeds, Selection
from readmap.reads.length_order import WORD_BASES

MAX_DIAGONALS = constant("mapping/diagonals.cuh", "MAX_DIAGONALS")
DIAGONAL = row_dtype("mapping/diagonals.cuh", "Diagonal")

_FIND = Kernel("mapping/diagonals", "find_diagonals")


class DiagonalTable(Table, struct="mapping/diagonals.cuh:DiagonalTable"):
    """The best diagonals of the selected reads; on the host `rows.view(DIAGONAL)` names the fields."""


def new_diagonals(reads: int, backend: Backend) -> DiagonalTable:
    """Allocate the diagonals of `reads` reads, with no unexamined suffixes."""
    return DiagonalTable.allocate(backend, selected=reads, fill={"unexamined_prefixes": 0})


def find_diagonals(selection: Selection, seeds: Seeds, batch: Batch, context: Context) -> DiagonalTable:
    """Return the best diagonals that the seeds of the selected reads lead to.

    The SPLIT pass uses only seeds in the part of the read that its placement leaves uncovered.
    """
    backend, placements = context.backend, batch.placements
    starts, ends = placements.uncovered_starts, placements.uncovered_ends
    if selection.search_pass.reason != SPLIT:
        starts, ends = backend.full(batch.reads.count, 0, np.int32), batch.queries.lengths
    slots, found = selection.slots, new_diagonals(len(selection.slots.indices), backend)
    uncovered = {"uncovered_starts": starts, "uncovered_ends": ends}
    limits = {name: getattr(selection.search_pass, name) for name in ("min_seed_bases", "max_suffixes")}
    batch.launch(_FIND, slots.count, context, seeds=seeds, selected=slots.indices, **uncovered, found=found, **limits)
    return found


def order_by_position(strands: Array, positions: Array, batch: Batch, context: Context) -> Array:
    """Return the stable uint32 permutation that sorts diagonals by read, orientation and position.

    strands: uint64, 2 * read index + orientation. positions: uint64, diagonal + length of the longest read.
    """
    position_bits = (WORD_BASES * len(context.index.reference.words) + batch.queries.max_length).bit_length()
    return argsort_columns([(strands, batch.reads.count.bit_length() + 1), (positions, position_bits)], context.backend)
