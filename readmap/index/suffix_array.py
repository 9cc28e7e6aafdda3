"""Reference -> SuffixArray, PrefixTable."""

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
_INVERT, _CHECK = Kernel("index/index", "invert_suffixes"), Kernel("index/index", "check_order")
_UNPACK = Kernel("index/codes", "unpack_codes")

#: Limits of the bases resolved by the stored prefix table: 4^12 entries take 67 MB, one suffix per entry at 16 Mbp.
MAX_TABLE_BASES = 12
MIN_TABLE_BASES = 6

#: Limits of the larger table built at loading: at least this many suffixes per entry, and room for this many such
#: tables in the memory left by the index. The larger part of that memory is for reads.
SUFFIXES_PER_ENTRY, TABLES_IN_MEMORY = 1, 4

#: Maximum number of positions for which divsufsort is faster than the kernels with any number of threads.
SMALL = 1 << 24

#: Maximum number of barriers, including the last: each has its own letter in divsufsort's byte alphabet, next to A, C,
#: G, T.
_MAX_BARRIERS = 256 - 4 + 1

#: Entries of a prefix table that one item of fill_gaps fills.
_GAP_ENTRIES = constant("index/index.cu", "GAP_ENTRIES")

#: Value of a kernel's error position if it found no error.
NO_ERROR = 2**64 - 1

Suffixes = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SuffixPlan:
    """How a suffix array is built: by kernels if `sort` is not None, else by divsufsort.

    length: positions of the reference, including barriers. suffixes: number of suffixes, which are those that start at
    A, C, G or T. dtype: uint32, or uint64 if 32 bits are too few for the positions. sort: the plan of the kernels.
    """

    length: int
    suffixes: int
    dtype: np.dtype[Any]
    sort: SortPlan | None

    @property
    def nbytes(self) -> int:
        """The bytes of memory that building takes, including the result, on the devices or the CPU's host."""
        divsufsort = self.length * (1 + 4) + self.suffixes * (8 if self.dtype == np.uint64 else 0)
        return self.sort.nbytes if self.sort else divsufsort


def plan_suffix_array(
    reference: Reference, device_reference: DeviceReference, team: Team, force_64_bits: bool = False
) -> SuffixPlan:
    """Plan a build by kernels, or by divsufsort for a small reference on a CPU; BackendError if memory is too small."""
    backend = team.first
    length, dtype = reference.length, np.dtype(np.uint64 if force_64_bits or reference.length >= 2**32 else np.uint32)
    few_barriers = len(reference.barrier_starts) <= _MAX_BARRIERS
    small = length <= SMALL or (backend.threads == 1 and length < 2**31)
    by_kernels = backend.warp_width > 1 or not (small and few_barriers)
    sort = plan_sort(device_reference, length, dtype, team) if by_kernels else None
    return SuffixPlan(length, reference.bases - reference.ambiguous_bases, dtype, sort)


def build_suffix_array(
    device_references: Sequence[DeviceReference],
    plan: SuffixPlan,
    team: Team,
    report: Callable[[float], None] = lambda share: None,
) -> list[Array]:
    """Sort the suffixes; return their positions in order, in the plan's dtype, as one part per sorting device.

    The order is over {barrier, A, C, G, T}; suffixes that a barrier makes equal are in order of position.
    device_references: one per device. report: called with the completed share of the work if kernels sort.
    """
    if plan.sort:
        return sort_suffixes(device_references, plan.sort, team, report)
    codes = team.first.empty(plan.length, np.uint8)
    team.first.launch(_UNPACK, -(-plan.length // 32), reference=device_references[0], codes=codes, length=plan.length)
    from pydivsufsort import divsufsort  # imported here, because its imports are slow

    order = divsufsort(codes)[plan.length - plan.suffixes :]
    return [order.view(np.uint32) if plan.dtype == np.uint32 else order.astype(np.uint64)]


def kernel_types(suffixes: Suffixes) -> tuple[tuple[str, str], ...]:
    """Return the kernels' type arguments for the dtype of these suffixes."""
    return (("suffix_t", "u64" if suffixes.dtype == np.uint64 else "u32"),)


def table_bases(length: int) -> int:
    """Return the bases to resolve by a stored prefix table: about one suffix per entry."""
    return min(MAX_TABLE_BASES, max(MIN_TABLE_BASES, math.ceil(math.log(max(length, 1), 4))))


def loaded_table_bases(stored: int, suffixes: Suffixes, others: int, backend: Backend) -> int:
    """Return the bases of the prefix table to use on a device, at least `stored`; others: bytes of the other arrays."""
    entries, memory = len(suffixes) / SUFFIXES_PER_ENTRY, backend.memory()
    if memory:
        entries = min(entries, (memory[0] - others) / (TABLES_IN_MEMORY * suffixes.itemsize))
    return max(min(int(math.log2(max(entries, 1)) / 2), backend.max_table_bases), stored)


def table_bytes(bases: int, dtype: np.dtype[Any]) -> int:
    """Return the bytes of a prefix table with elements of `dtype`."""
    return ((1 << 2 * bases) + 1) * dtype.itemsize


def build_prefix_table(device_reference: DeviceReference, suffixes: Array, bases: int, backend: Backend) -> Array:
    """Return the prefix table, [4^bases + 1]: how many suffixes have first bases (A after a barrier) below each index.

    Raises IndexFolderError if the first bases are not in order; all suffixes must be positions of the reference.
    """
    table, error, count = backend.empty(4**bases + 1, suffixes.dtype), _no_error(backend), len(suffixes)
    what = {"reference": device_reference, "suffixes": suffixes, "table": table}
    what |= {"suffix_count": count, "table_bases": bases}
    backend.launch(_FILL, count + 1, error=error, **what)
    backend.launch(_FILL_GAPS, 4**bases // _GAP_ENTRIES, **what)
    if (rank := _reported_rank(error, backend)) is not None:
        raise IndexFolderError(f"suffix_array is out of order at rank {rank}")
    return table


def first_unsorted_rank(reference: DeviceReference, length: int, suffixes: Array, backend: Backend) -> int | None:
    """Return the smallest rank that is out of order or not the position of a base; None if all ranks are valid."""
    ranks = backend.full(length, np.iinfo(suffixes.dtype).max, suffixes.dtype)
    backend.launch(_INVERT, len(suffixes), suffixes=suffixes, ranks=ranks, length=length)
    error = _no_error(backend)
    what = {"reference": reference, "suffixes": suffixes, "ranks": ranks, "length": length}
    backend.launch(_CHECK, len(suffixes), **what, error=error)
    return _reported_rank(error, backend)


def _no_error(backend: Backend) -> Array:
    """Return memory for the smallest rank that a kernel reports, uint64 [1]."""
    return backend.full(1, -1, np.int64).view(np.uint64)


def _reported_rank(error: Array, backend: Backend) -> int | None:
    rank = int(backend.to_host(error)[0])
    return None if rank == NO_ERROR else rank
