"""Pair adjacent reads of one name; all other reads are single, as with bwa mem -p.

    name     A  A  B  C  C  C  D
    pairs    ^--^     ^--^            B, the last C and D are single

In a run of reads with one name, the mates are the first and second read, the third and fourth, and so on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from readmap.backend import Backend, Kernel
from readmap.reads.parsing import PER_READ, Reads

_MARK, _GATHER = Kernel("reads/parsing", "mark_same_names"), Kernel("reads/parsing", "gather_reads")

#: Slot of an absent mate.
_ABSENT = -1


def pair_adjacent_reads(reads: Reads, backend: Backend) -> Reads:
    """Return the reads as pairs, in which single reads have an absent mate."""
    if not reads.count:
        return reads
    same = backend.empty(reads.count, np.uint8)
    names = {"name_starts": reads.name_starts, "name_lengths": reads.name_lengths}
    backend.launch(_MARK, reads.count, bytes=reads.bytes, **names, same=same)
    is_same, indices = backend.to_host(same).astype(np.bool_), np.arange(reads.count)
    run_starts = np.maximum.accumulate(np.where(is_same, -1, indices))
    is_second = (indices - run_starts) % 2 == 1
    firsts = np.flatnonzero(~is_second)
    has_mate = np.append(is_second[1:], False)[firsts]
    slots = np.full(2 * len(firsts), _ABSENT)
    slots[::2] = firsts
    slots[1::2][has_mate] = firsts[has_mate] + 1
    arrays = {name: getattr(reads, name) for name in PER_READ}
    gathered = {name: backend.empty(len(slots), array.dtype) for name, array in arrays.items()}
    targets = {f"new_{name}": array for name, array in gathered.items()}
    backend.launch(_GATHER, len(slots), slots=backend.to_device(slots), **arrays, **targets, reads=reads.count)
    return replace(reads, **gathered, count=len(slots), paired=True, has_singles=not has_mate.all())
