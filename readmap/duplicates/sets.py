"""Fragments -> duplicates and optical duplicates, by the rules of Picard MarkDuplicates.

The rules follow src/main/java/picard/sam/markduplicates for records of an aligner, grouped by name:

- The ends of a fragment are the unclipped 5' ends of its primary records (MarkDuplicates.buildReadEnds). The end that
  comes first on the reference is stored first; at equal positions, the forward end (buildSortedReadEndLists).
- Fragments with equal library, barcode, ends and strands form a set, whose best fragment is not a duplicate. The best
  fragment has the highest sum of base qualities of 15 and more, at most 16,383 per read, minus 16,384 for a read that
  failed vendor checks (htsjdk's DuplicateScoringStrategy); ties are resolved by tile, x, y and input order
  (ReadEndsMDComparator).
- A fragment with one mapped read is a duplicate of any pair with an end at its position, else of the best such fragment
  (markDuplicateFragments).
- The pairs of a set with equal read group, tile and strands of the first and second mate, at most `distance` pixels
  apart in x and in y, form a cluster. All but one of its pairs are optical duplicates (OpticalDuplicateFinder).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import count_flagged, select_flagged
from readmap.backend.compilation.declarations import constant
from readmap.backend.radix_sort import argsort_columns
from readmap.backend.tables import Table
from readmap.duplicates.fragments import POSITION_BITS

_KEY, _MARK = Kernel("duplicates/sets", "key_fragments"), Kernel("duplicates/sets", "mark_sets")
_FIND_ENDS, _CHOOSE = Kernel("duplicates/sets", "find_paired_ends"), Kernel("duplicates/sets", "choose_best")
_LIST, _JOIN = Kernel("duplicates/optical", "list_located"), Kernel("duplicates/optical", "join_neighbours")
_KEEPERS, _OPTICAL = Kernel("duplicates/optical", "find_keepers"), Kernel("duplicates/optical", "mark_optical")

_PAIR_SET, _LONE_PAIR, _READ_SET = (
    constant("duplicates/sets.cu", name) for name in ("PAIR_SET", "LONE_PAIR", "READ_SET")
)
_NO_KEEPER = constant("duplicates/optical.cu", "NO_KEEPER")

#: Bits of the sort columns: library, position and strand of one end; position and strand of the other end, or a special
#: value.
HIGH_BITS, LOW_BITS = 16 + POSITION_BITS + 1, POSITION_BITS + 2

#: Bits of a spot: strands, read group and tile.
TILE_BITS = 34

#: Sets with more pairs of the same strands are not searched for optical duplicates, as in Picard.
MAX_OPTICAL_SET = 300_000


class _FragmentColumns(Table, struct="duplicates/fragment.cuh:Fragments"):
    """The fragments of a device as columns."""


@dataclass(frozen=True)
class DuplicateSets:
    """The result of the search.

    marks: uint8 [fragments] on the device, DUPLICATE and OPTICAL. counters: int64 [libraries * COUNTERS], to be added
    to the previous counters. sizes: int64, of the sets of several pairs; optical: int64, optical duplicates of each.
    alone: number of pairs without duplicates.
    """

    marks: Array
    counters: NDArray[np.int64]
    sizes: NDArray[np.int64]
    optical: NDArray[np.int64]
    alone: int


def find_duplicates(rows: Array, barcodes: Array, counters: int, distance: int, backend: Backend) -> DuplicateSets:
    """Find the duplicates among all fragments, on a device.

    rows: int64 [fragments, FRAGMENT_WORDS]. barcodes: uint64 [fragments]; empty to ignore barcodes. counters: number of
        counters of all libraries. distance: of optical duplicates, pixels; 0 disables them.
    """
    size, has_barcodes = len(rows), len(barcodes) > 0
    fragments = _FragmentColumns(rows=rows, barcodes=barcodes, has_barcodes=has_barcodes)
    order = _order(fragments, backend)
    kinds, marks = backend.empty(size, np.uint8), backend.full(size, 0, np.uint8)
    backend.launch(_MARK, size, fragments=fragments, order=order, kinds=kinds, size=size)
    counted = backend.full(counters, 0, np.uint64)
    heads, singles = (select_flagged(kinds, mark, backend) for mark in (_PAIR_SET, _READ_SET))
    is_paired = backend.full(len(singles), 0, np.uint8)
    shared: dict[str, Any] = {"fragments": fragments, "order": order}
    if len(singles):
        inputs = {"heads": singles, "is_paired": is_paired, "count": len(singles)}
        backend.launch(_FIND_ENDS, size, **shared, **inputs)
    shared |= {"size": size, "max_pairs": MAX_OPTICAL_SET}
    found = []
    for of, all_duplicates in ((singles, is_paired), (heads, backend.full(len(heads), 0, np.uint8))):
        sizes, located = backend.empty(len(of), np.int64), backend.empty(len(of), np.int64)
        outputs = {"marks": marks, "sizes": sizes, "located": located, "counters": counted}
        backend.launch(_CHOOSE, len(of), **shared, heads=of, all_duplicates=all_duplicates, **outputs)
        found.append((sizes, located))
    sizes, located = found[1]
    optical = backend.full(len(heads), 0, np.uint64)
    if distance and len(heads):
        ends, count = backend.inclusive_sum_with_total(located)
        listed = shared | {"heads": heads, "sizes": sizes, "ends": ends}
        changed = {"marks": marks, "found": optical, "counters": counted}
        _mark_optical(fragments.rows, listed, count, changed, distance, backend)
    host_counters, host_optical = (backend.to_host(array).astype(np.int64) for array in (counted, optical))
    alone = count_flagged(kinds, _LONE_PAIR, backend)
    return DuplicateSets(marks, host_counters, backend.to_host(sizes), host_optical, alone)


def _order(fragments: _FragmentColumns, backend: Backend) -> Array:
    """Return the indices of all fragments, uint32, sorted by set and, within a set, by input order."""
    size = len(fragments.rows)
    highs, lows = backend.empty(size, np.uint64), backend.empty(size, np.uint64)
    backend.launch(_KEY, size, rows=fragments.rows, highs=highs, lows=lows)
    barcodes = [(fragments.barcodes, 64)] if fragments.has_barcodes else []
    return argsort_columns([(highs, HIGH_BITS), *barcodes, (lows, LOW_BITS)], backend)


def _mark_optical(
    rows: Array, listed: dict[str, Any], count: int, changed: dict[str, Array], distance: int, backend: Backend
) -> None:
    """Mark optical duplicates among `count` located pairs.

    rows: as in find_duplicates. listed: arguments of kernel list_located. changed: the arrays that are updated: marks,
    optical duplicates found by set, and counters.
    """
    set_count = len(changed["found"])
    members = backend.empty(count, np.uint32)
    sets, tiles, coordinates = (backend.empty(count, np.uint64) for _ in range(3))
    outputs = {"members": members, "sets": sets, "tiles": tiles, "coordinates": coordinates}
    backend.launch(_LIST, set_count, **listed, **outputs, count=count)
    order = argsort_columns([(sets, set_count.bit_length()), (tiles, TILE_BITS), (coordinates, 64)], backend)
    parents = backend.to_device(np.arange(count, dtype=np.int32))
    inputs = {"members": members, "order": order, "parents": parents}
    neighbours = {"rows": rows, "sets": sets, "tiles": tiles, "count": count, "distance": distance}
    backend.launch(_JOIN, count, **inputs, **neighbours)
    keepers = backend.full(count, _NO_KEEPER, np.uint32)
    backend.launch(_KEEPERS, count, **inputs, marks=changed["marks"], keepers=keepers)
    backend.launch(_OPTICAL, count, **inputs, rows=rows, sets=sets, keepers=keepers, **changed)
