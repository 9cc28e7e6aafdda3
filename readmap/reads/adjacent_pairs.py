"""Reads of which those beside each other that have one name are mates, and the others single.

    name     A  A  B  C  C  C  D
    pairs    ^--^     ^--^            B, the last C and D are single

As bwa mem -p has it: what has found its mate is nobody else's. So in a row of one name a cut is right behind every
second read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from readmap.backend import Backend, Kernel
from readmap.reads.parsing import BY_RECORD, Reads

_MARK, _PLACE = Kernel("reads/parsing", "mark_same_names"), Kernel("reads/parsing", "place_reads")

#: Of a slot: what stands there is the mate that a single read does not have.
_NOBODY = -1


def pair_adjacent_reads(reads: Reads, backend: Backend) -> Reads:
    """Single reads -> pairs, among which there may be single ones."""
    if not reads.count:
        return reads
    same = backend.empty(reads.count, np.uint8)
    names = {"name_starts": reads.name_starts, "name_lengths": reads.name_lengths}
    backend.launch(_MARK, reads.count, bytes=reads.bytes, **names, same=same)
    is_same, numbers = backend.to_host(same).astype(np.bool_), np.arange(reads.count)
    begins = np.maximum.accumulate(np.where(is_same, -1, numbers))
    is_second = (numbers - begins) % 2 == 1
    firsts = np.flatnonzero(~is_second)
    has_mate = np.append(is_second[1:], False)[firsts]
    slots = np.full(2 * len(firsts), _NOBODY)
    slots[::2] = firsts
    slots[1::2][has_mate] = firsts[has_mate] + 1
    held = {name: getattr(reads, name) for name in BY_RECORD}
    arrays = {name: backend.empty(len(slots), array.dtype) for name, array in held.items()}
    made = {f"new_{name}": array for name, array in arrays.items()}
    backend.launch(_PLACE, len(slots), slots=backend.to_device(slots), **held, **made, reads=reads.count)
    return replace(reads, **arrays, count=len(slots), paired=True, has_singles=not has_mate.all())
