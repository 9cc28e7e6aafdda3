"""Reference -> SuffixArray and PrefixTable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.team import Team
from readmap.errors import IndexFolderError
from readmap.index.reference import DeviceReference, Reference
from readmap.index.sort_plan import SortPlan, plan_sort
from readmap.index.suffix_sorting import sort_suffixes

_FILL, _FILL_GAPS = Kernel("index/index", "fill_prefix_table"), Kernel("index/index", "fill_gaps")
_RANK, _CHECK = Kernel("index/index", "rank_places"), Kernel("index/index", "check_order")
_UNPACK = Kernel("index/codes", "unpack_codes")

#: Bases that the prefix table on disk resolves: 4^12 entries are 67 MB, and leave one suffix to an entry at 16 Mbp.
MAX_TABLE_BASES = 12
MIN_TABLE_BASES = 6

#: Of a table of more bases, which is made where the index is loaded: how many suffixes there are to an entry at least,
#: and how many such tables have room in the memory that the rest of the index leaves, most of which is for reads.
SUFFIXES_PER_ENTRY, TABLES_IN_MEMORY = 1, 4

#: Places that divsufsort sorts quickest, whatever the threads.
SMALL = 1 << 24

#: With the one behind the end. Each has a letter of its own for divsufsort, whose letters are bytes.
_MAX_BARRIERS = 256 - 4 + 1

#: Entries of a prefix table that a kernel fills together where no suffix has their codes.
_STRETCH = constant("index/index.cu", "STRETCH")

#: What a kernel leaves where it has nothing to report.
NO_ERROR = 2**64 - 1

Suffixes = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SuffixPlan:
    """How a suffix array is built: by kernels where `sort` says how, else by divsufsort.

    Attributes:
        length: of the reference, with barriers.
        suffixes: how many start at a base.
        dtype: uint32, or uint64 where 32 bits do not hold the places.
        sort: the kernels' plan.
    """

    length: int
    suffixes: int
    dtype: np.dtype[Any]
    sort: SortPlan | None

    @property
    def nbytes(self) -> int:
        """The bytes of memory that building takes, the array among them, on the devices or on the host of a CPU."""
        return (
            self.sort.nbytes
            if self.sort
            else self.length * (1 + 4) + self.suffixes * (8 if self.dtype == np.uint64 else 0)
        )


def plan_suffix_array(
    reference: Reference, held: DeviceReference, team: Team, force_64_bits: bool = False
) -> SuffixPlan:
    """How the suffix array of a reference is built there; raises BackendError where the memory is too small.

    The array is the same in any case. divsufsort is the quickest for a small reference on a CPU, and on one thread.
    held: the reference on the first device.
    """
    backend = team.first
    length, dtype = reference.length, np.dtype(np.uint64 if force_64_bits or reference.length >= 2**32 else np.uint32)
    few_barriers = len(reference.barrier_starts) <= _MAX_BARRIERS
    small = length <= SMALL or (backend.threads == 1 and length < 2**31)
    by_kernels = backend.lanes > 1 or not (small and few_barriers)
    sort = plan_sort(held, length, dtype, team) if by_kernels else None
    return SuffixPlan(length, reference.bases - reference.ambiguous_bases, dtype, sort)


def build_suffix_array(
    held: Sequence[DeviceReference],
    plan: SuffixPlan,
    team: Team,
    report: Callable[[float], None] = lambda share: None,
) -> list[Array]:
    """The places of all suffixes that start at a base, in order, of the plan's dtype, a part on each device that sorts.

    The order is over {barrier, A, C, G, T}; suffixes that a barrier makes equal stand in the order of their places.
    held: the reference on each device. report: hears the share of the work that is done, where kernels do it.
    """
    if plan.sort:
        return sort_suffixes(held, plan.sort, team, report)
    codes = team.first.empty(plan.length, np.uint8)
    team.first.launch(_UNPACK, -(-plan.length // 32), reference=held[0], codes=codes, length=plan.length)
    from pydivsufsort import divsufsort  # no other command needs what it loads

    order = divsufsort(codes)[plan.length - plan.suffixes :]
    return [order.view(np.uint32) if plan.dtype == np.uint32 else order.astype(np.uint64)]


def kernel_types(suffixes: Suffixes) -> tuple[tuple[str, str], ...]:
    """The variant of the kernels that reads these suffixes."""
    return (("suffix_t", "u64" if suffixes.dtype == np.uint64 else "u32"),)


def table_bases(length: int) -> int:
    """How many bases the prefix table of a reference resolves: about one suffix an entry."""
    return min(MAX_TABLE_BASES, max(MIN_TABLE_BASES, math.ceil(math.log(max(length, 1), 4))))


def loaded_table_bases(stored: int, suffixes: Suffixes, others: int, backend: Backend) -> int:
    """How many bases the prefix table resolves on a device: the stored one's, or more where they pay and have room.

    others: bytes that the rest of the index takes there.
    """
    entries, memory = len(suffixes) / SUFFIXES_PER_ENTRY, backend.memory()
    if memory:
        entries = min(entries, (memory[0] - others) / (TABLES_IN_MEMORY * suffixes.itemsize))
    return max(min(int(math.log2(max(entries, 1)) / 2), backend.most_table_bases), stored)


def table_bytes(bases: int, dtype: np.dtype[Any]) -> int:
    """The bytes of a prefix table; dtype: the suffixes'."""
    return ((1 << 2 * bases) + 1) * dtype.itemsize


def build_prefix_table(held: DeviceReference, suffixes: Array, bases: int, backend: Backend) -> Array:
    """table[x] counts the suffixes whose first `bases` bases, A behind a barrier, are smaller than x; [4^bases + 1].

    Raises IndexFolderError where these bases are out of order; the suffixes are known to be places of the reference.
    """
    table, error, count = backend.empty(4**bases + 1, suffixes.dtype), _nowhere(backend), len(suffixes)
    what = {"reference": held, "suffixes": suffixes, "table": table, "suffix_count": count, "table_bases": bases}
    backend.launch(_FILL, count + 1, error=error, **what)
    backend.launch(_FILL_GAPS, 4**bases // _STRETCH, **what)
    if (rank := _found(error, backend)) is not None:
        raise IndexFolderError(f"suffix_array is out of order at rank {rank}")
    return table


def first_unsorted_rank(held: DeviceReference, length: int, suffixes: Array, backend: Backend) -> int | None:
    """A rank whose suffix is no place of a base, or does not belong behind that before it; None where all is well."""
    ranks = backend.full(length, np.iinfo(suffixes.dtype).max, suffixes.dtype)
    backend.launch(_RANK, len(suffixes), suffixes=suffixes, ranks=ranks, length=length)
    error = _nowhere(backend)
    backend.launch(_CHECK, len(suffixes), reference=held, suffixes=suffixes, ranks=ranks, error=error, length=length)
    return _found(error, backend)


def _nowhere(backend: Backend) -> Array:
    """Where a kernel leaves the smallest rank that it reports, uint64 [1]."""
    return backend.full(1, -1, np.int64).view(np.uint64)


def _found(error: Array, backend: Backend) -> int | None:
    """The rank that a kernel left; None where it left none."""
    rank = int(backend.to_host(error)[0])
    return None if rank == NO_ERROR else rank
