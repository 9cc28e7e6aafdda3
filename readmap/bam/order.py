"""Records of BAM -> the same in the order of their places: contig, position, strand, and the order they came in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, count_flagged, select_flagged
from readmap.backend.radix_sort import sort_pairs
from readmap.bam.marking import FRAGMENT_TAG_BYTES

_KEYS = Kernel("bam/order", "compute_keys")
_OFFSET, _DETACH = Kernel("bam/order", "offset_fragment_ids"), Kernel("bam/order", "detach_fragment_tags")
_LENGTHS, _GATHER = Kernel("bam/order", "permute_lengths"), Kernel("bam/order", "gather_records")

#: Bits of a key below those of the contig: position and strand.
POSITION_BITS = 32


class SortOrder(StrEnum):
    """In which records are sorted, as @HD names it."""

    COORDINATE = "coordinate"
    QUERYNAME = "queryname"


@dataclass(frozen=True)
class SortedRecords:
    """Records of BAM in order, on a device.

    Attributes:
        bytes: uint8, one record behind the other.
        keys: ascending, by which they are in order. Of coordinates uint64 [records]: contig, position + 1, strand, from
            the high bits to the lowest; what has no contig is behind the last one. Of names uint8 [records, bytes].
        ends: int64 [records], where each ends.
    """

    bytes: Array
    keys: Array
    ends: Array


def host_keys(run: SortedRecords, backend: Backend) -> np.ndarray[Any, Any]:
    """The keys on the host, [records]; those of bytes as NumPy's bytes, which compare as these."""
    keys = backend.to_host(run.keys)
    return keys if keys.ndim == 1 else keys.view(f"S{keys.shape[1]}").reshape(-1)


def record_keys(
    records: Array, lengths: Array, ends: Array, contigs: int, backend: Backend
) -> tuple[Array, Array, Array]:
    """The keys of coordinates, uint64, the numbers, uint32, and whether there is a record, uint8, of each entry.

    The arguments are those of sort_records.
    """
    entries = len(lengths)
    keys, numbers = backend.empty(entries, np.uint64), backend.empty(entries, np.uint32)
    is_record = backend.empty(entries, np.uint8)
    made = {"keys": keys, "numbers": numbers, "is_record": is_record}
    backend.launch(_KEYS, entries, bytes=records, lengths=lengths, ends=ends, contigs=contigs, **made)
    return keys, numbers, is_record


def sort_records(
    records: Array, lengths: Array, ends: Array, contigs: int, backend: Backend, fragments: Array | None = None
) -> SortedRecords:
    """The records in the order of their places.

    records: uint8, entries of some lengths, int64, 0 where an entry has no record; ends: their inclusive prefix sum.
    contigs: of the header. fragments: int64, the number of each entry's, which is to stand behind the record.
    """
    entries = len(lengths)
    keys, numbers, is_record = record_keys(records, lengths, ends, contigs, backend)
    scratch = backend.empty(entries, np.uint64), backend.empty(entries, np.uint32)
    keys, order = sort_pairs(keys, numbers, *scratch, POSITION_BITS + (contigs + 1).bit_length(), backend)
    count = count_flagged(is_record, ANY_FLAG, backend)
    gathered, new_ends = gather(records, ends, lengths, order[:count], backend, fragments)
    return SortedRecords(gathered, keys[:count], new_ends)


def offset_fragment_ids(run: SortedRecords, first: int, backend: Backend) -> None:
    """Have the numbers behind the records count from the first fragment of all batches on; first: that of the run's."""
    backend.launch(_OFFSET, len(run.ends), bytes=run.bytes, ends=run.ends, first=first, tag_bytes=FRAGMENT_TAG_BYTES)


def detach_fragment_tags(
    records: Array, ends: Array, contigs: int, fragments: int, backend: Backend
) -> tuple[SortedRecords, int | None]:
    """Records of a file in order, held as before they were written, and the first one that is none, None without one.

    records: uint8, which are changed. ends: int64, where each ends. contigs: of the header. fragments: of the file, of
    which the records have kept the numbers as tags.
    """
    keys, is_invalid = backend.empty(len(ends), np.uint64), backend.empty(len(ends), np.uint8)
    shape = {"contigs": contigs, "fragments": fragments, "tag_bytes": FRAGMENT_TAG_BYTES}
    backend.launch(_DETACH, len(ends), bytes=records, ends=ends, **shape, keys=keys, is_invalid=is_invalid)
    wrong = backend.to_host(select_flagged(is_invalid, ANY_FLAG, backend)[:1]).tolist()
    return SortedRecords(records, keys, ends), wrong[0] if wrong else None


def permute_lengths(lengths: Array, order: Array, backend: Backend, tag_bytes: int = 0) -> Array:
    """The lengths, int64, of the records that an order, uint32, names, with what stands behind them."""
    new_lengths = backend.empty(len(order), np.int64)
    given = {"lengths": lengths, "order": order, "records": len(lengths), "tag_bytes": tag_bytes}
    backend.launch(_LENGTHS, len(order), **given, new_lengths=new_lengths)
    return new_lengths


def gather(
    records: Array, ends: Array, lengths: Array, order: Array, backend: Backend, fragments: Array | None = None
) -> tuple[Array, Array]:
    """The records in another order, uint8, and where each ends, int64.

    ends, lengths: int64, of all entries. order: uint32, the numbers of those that have a record. fragments: as
    sort_records has them.
    """
    numbers, tag_bytes = (backend.empty(0, np.int64), 0) if fragments is None else (fragments, FRAGMENT_TAG_BYTES)
    new_ends = backend.inclusive_sum(permute_lengths(lengths, order, backend, tag_bytes))
    gathered = backend.empty(len(records) + tag_bytes * len(order), np.uint8)
    places = {"ends": ends, "lengths": lengths, "order": order, "new_ends": new_ends, "records": len(lengths)}
    backend.launch(_GATHER, len(order), bytes=records, sorted=gathered, numbers=numbers, tag_bytes=tag_bytes, **places)
    return gathered, new_ends
