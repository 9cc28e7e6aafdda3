"""All fragments -> which are duplicates, and which of these the sequencer saw twice.

The rules are those of Picard's MarkDuplicates (src/main/java/picard/sam/markduplicates), of records as they come from a
mapper, grouped by name:

- the ends of a fragment are those of its primary records with all clipped bases (MarkDuplicates.buildReadEnds), the
  one that comes first on the reference in front, at the same place the forward one (buildSortedReadEndLists);
- fragments of the same library, barcode, ends and strands are a set, whose best is no duplicate: that of the highest
  sum of base qualities of 15 and more, at max_pairs 16,383 a read, of which a read that failed the sequencer's checks loses
  16,384 (htsjdk's DuplicateScoringStrategy); then by tile, x, y and the order of the input (ReadEndsMDComparator);
- a fragment with one mapped read is a duplicate of any pair that has an end there, else of the best such fragment
  (markDuplicateFragments);
- of the pairs of a set, those that lie at max_pairs so many pixels apart in x and in y, of one read group, tile and strands
  of the first and the second mate, are one cluster, of which all but one are optical duplicates
  (OpticalDuplicateFinder).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.compaction import count_flagged, select_flagged
from readmap.backend.radix_sort import argsort_columns
from readmap.duplicates.fragments import PLACE_BITS

_KEY, _MARK = Kernel("duplicates/sets", "key_fragments"), Kernel("duplicates/sets", "mark_sets")
_FIND_ENDS, _CHOOSE = Kernel("duplicates/sets", "find_paired_ends"), Kernel("duplicates/sets", "choose_best")
_LIST, _JOIN = Kernel("duplicates/optical", "list_located"), Kernel("duplicates/optical", "join_neighbours")
_KEEPERS, _OPTICAL = Kernel("duplicates/optical", "find_keepers"), Kernel("duplicates/optical", "mark_optical")

_PAIR_SET, _LONE_PAIR, _READ_SET = (
    constant("duplicates/sets.cu", name) for name in ("PAIR_SET", "LONE_PAIR", "READ_SET")
)
_NO_KEEPER = constant("duplicates/optical.cu", "NO_KEEPER")

#: Bits of a key: of the library, a place and its strand; and of what lies at the other end, or says that nothing does.
HIGH_BITS, LOW_BITS = 16 + PLACE_BITS + 1, PLACE_BITS + 2

#: Of a spot: strands, read group and tile.
SPOT_BITS = 34

#: Pairs of the same strands of a set above which none of them is looked at for optical duplicates, as in Picard.
MAX_OPTICAL_SET = 300_000


@dataclass(frozen=True)
class _Fragments:
    """struct Fragments of kernels/duplicates/fragment.cuh."""

    rows: Array
    barcodes: Array
    has_barcodes: bool


@dataclass(frozen=True)
class DuplicateSets:
    """What was found of all fragments.

    Attributes:
        marks: uint8 [fragments] on the device, DUPLICATE and OPTICAL.
        counters: int64 [libraries * COUNTERS], to be added to what was counted before.
        sizes: int64, of the sets of several pairs; optical: int64, the optical duplicates of each.
        alone: pairs that are in no such set.
    """

    marks: Array
    counters: NDArray[np.int64]
    sizes: NDArray[np.int64]
    optical: NDArray[np.int64]
    alone: int


def find_duplicates(rows: Array, barcodes: Array, counters: int, distance: int, backend: Backend) -> DuplicateSets:
    """The duplicates of all fragments, on a device.

    rows: FRAGMENT, as words, int64. barcodes: uint64, of each; none where they do not count.
    counters: of all libraries together. distance: in pixels, of optical duplicates; 0 where none are looked for.
    """
    size, has_barcodes = len(rows), len(barcodes) > 0
    fragments = _Fragments(rows, barcodes, has_barcodes)
    order = _order(fragments, backend)
    begins, marks = backend.empty(size, np.uint8), backend.full(size, 0, np.uint8)
    backend.launch(_MARK, size, fragments=fragments, order=order, begins=begins, size=size)
    counted = backend.full(counters, 0, np.uint64)
    heads, singles = (select_flagged(begins, mark, backend) for mark in (_PAIR_SET, _READ_SET))
    is_paired = backend.full(len(singles), 0, np.uint8)
    shared: dict[str, Any] = {"fragments": fragments, "order": order}
    if len(singles):
        given = {"heads": singles, "is_paired": is_paired, "count": len(singles)}
        backend.launch(_FIND_ENDS, size, **shared, **given)
    shared |= {"size": size, "max_pairs": MAX_OPTICAL_SET}
    found = []
    for of, all_duplicates in ((singles, is_paired), (heads, backend.full(len(heads), 0, np.uint8))):
        sizes, located = backend.empty(len(of), np.int64), backend.empty(len(of), np.int64)
        made = {"marks": marks, "sizes": sizes, "located": located, "counters": counted}
        backend.launch(_CHOOSE, len(of), **shared, heads=of, all_duplicates=all_duplicates, **made)
        found.append((sizes, located))
    sizes, located = found[1]
    optical = backend.full(len(heads), 0, np.uint64)
    if distance and len(heads):
        ends, count = backend.inclusive_sum_with_total(located)
        listed = shared | {"heads": heads, "sizes": sizes, "ends": ends}
        _mark_optical(fragments.rows, listed, count, marks, optical, counted, distance, backend)
    return DuplicateSets(
        marks,
        backend.to_host(counted).astype(np.int64),
        backend.to_host(sizes),
        backend.to_host(optical).astype(np.int64),
        count_flagged(begins, _LONE_PAIR, backend),
    )


def _order(fragments: _Fragments, backend: Backend) -> Array:
    """The numbers of all fragments, uint32, sets together, of a set those that came first in front."""
    size = len(fragments.rows)
    highs, lows = backend.empty(size, np.uint64), backend.empty(size, np.uint64)
    backend.launch(_KEY, size, rows=fragments.rows, highs=highs, lows=lows)
    barcodes = [(fragments.barcodes, 64)] if fragments.has_barcodes else []
    return argsort_columns([(highs, HIGH_BITS), *barcodes, (lows, LOW_BITS)], backend)


def _mark_optical(
    rows: Array,
    listed: dict[str, Any],
    count: int,
    marks: Array,
    optical: Array,
    counters: Array,
    distance: int,
    backend: Backend,
) -> None:
    """Mark the optical duplicates among so many located pairs; listed: the arguments of the kernel that lists them."""
    members = backend.empty(count, np.uint32)
    sets, spots, places = (backend.empty(count, np.uint64) for _ in range(3))
    made = {"members": members, "sets": sets, "spots": spots, "places": places}
    backend.launch(_LIST, len(optical), **listed, **made, count=count)
    order = argsort_columns([(sets, len(optical).bit_length()), (spots, SPOT_BITS), (places, 64)], backend)
    parents = backend.to_device(np.arange(count, dtype=np.int32))
    given = {"members": members, "order": order, "parents": parents}
    neighbours = {"rows": rows, "sets": sets, "spots": spots, "count": count, "distance": distance}
    backend.launch(_JOIN, count, **given, **neighbours)
    keepers = backend.full(count, _NO_KEEPER, np.uint32)
    backend.launch(_KEEPERS, count, **given, marks=marks, keepers=keepers)
    found = {"rows": rows, "sets": sets, "keepers": keepers, "marks": marks, "found": optical, "counters": counters}
    backend.launch(_OPTICAL, count, **given, **found)
