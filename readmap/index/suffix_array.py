"""Reference -> SuffixArray and PrefixTable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydivsufsort import divsufsort

from readmap.backend import Backend, Kernel
from readmap.index.reference import Bytes, Reference

_FILL = Kernel("index/index", "fill_prefix_table")
_RANK, _DOUBT = Kernel("index/index", "rank_places"), Kernel("index/index", "doubt_order")
_CHECK = Kernel("index/index", "check_order")

#: Bases that the prefix table resolves: 4^12 entries are 67 MB, and leave one suffix to an entry at 16 Mbp.
MOST_TABLE_BASES = 12
LEAST_TABLE_BASES = 6

#: What a kernel leaves where it has nothing to report.
NOWHERE = 2**64 - 1

Suffixes = np.ndarray[Any, Any]


def build_suffix_array(text: Bytes, force_64_bits: bool = False) -> Suffixes:
    """The places of all suffixes that start at a base, in order: uint32, or uint64 where 32 bits do not hold them.

    The order is over {barrier, A, C, G, T}; suffixes that start at a barrier sort first and are dropped.
    """
    order: Suffixes = divsufsort(text)
    suffixes = order[len(text) - int(np.count_nonzero(text)) :]
    if force_64_bits or len(text) > 2**32 - 1:
        return suffixes.astype(np.uint64)
    return suffixes.view(np.uint32) if suffixes.dtype == np.int32 else suffixes.astype(np.uint32)


def kernel_types(suffixes: Suffixes) -> tuple[tuple[str, str], ...]:
    """The variant of the kernels that reads these suffixes."""
    return (("suffix_t", "u64" if suffixes.dtype == np.uint64 else "u32"),)


def table_bases(length: int) -> int:
    """How many bases the prefix table of a reference resolves: about one suffix an entry."""
    return min(MOST_TABLE_BASES, max(LEAST_TABLE_BASES, math.ceil(math.log(max(length, 1), 4))))


def build_prefix_table(reference: Reference, suffixes: Suffixes, bases: int, backend: Backend) -> Suffixes:
    """table[x] counts the suffixes whose first `bases` bases, A behind a barrier, are smaller than x; [4^bases + 1]."""
    table = backend.empty(4**bases + 1, suffixes.dtype)
    backend.launch(
        _FILL,
        len(suffixes) + 1,
        reference=reference.to_device(backend),
        suffixes=backend.to_device(suffixes),
        table=table,
        suffix_count=len(suffixes),
        table_bases=bases,
    )
    return backend.to_host(table)


def first_disorder(reference: Reference, suffixes: Suffixes, backend: Backend) -> int | None:
    """The smallest rank whose suffix is no place of a base, or sorts behind its successor; None where all is well."""
    held, length = reference.to_device(backend), reference.length
    order, ranks = backend.to_device(suffixes), backend.full(length, 0, suffixes.dtype)
    backend.launch(_RANK, len(suffixes), suffixes=order, ranks=ranks, length=length)
    doubts = backend.full(2, -1, np.int64).view(np.uint64)
    backend.launch(_DOUBT, len(suffixes), reference=held, suffixes=order, ranks=ranks, doubts=doubts, length=length)
    doubled, doubted = backend.to_host(doubts).tolist()
    if doubled == doubted == NOWHERE:
        return None
    # Letter by letter, which takes long where much is repeated, but sees where the disorder begins, and that
    # suffixes which barriers make equal may stand in any order.
    error = backend.full(1, -1, np.int64).view(np.uint64)
    backend.launch(
        _CHECK,
        len(suffixes),
        reference=held,
        suffixes=order,
        error=error,
        suffix_count=len(suffixes),
        length=length,
    )
    rank = min(doubled, int(backend.to_host(error)[0]))
    return None if rank == NOWHERE else rank
