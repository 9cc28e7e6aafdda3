"""BAM records -> BAM records sorted by contig, position and strand, stably, or by name as by samtools sort -n."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, count_flagged, select_flagged
from readmap.backend.radix_sort import argsort_columns, sort_pairs
from readmap.bam.marking import FRAGMENT_TAG_BYTES

_KEYS = Kernel("bam/order", "compute_keys")
_OFFSET, _DETACH = Kernel("bam/order", "offset_fragment_ids"), Kernel("bam/order", "detach_fragment_tags")
_LENGTHS, _GATHER = Kernel("bam/order", "permute_lengths"), Kernel("bam/order", "gather_records")
#: Bits of position and strand in a key, below the contig.
POSITION_BITS = 32


class SortOrder(StrEnum):
    """The sort order of records, as in SO of @HD."""

    COORDINATE = "coordinate"
    QUERYNAME = "queryname"


@dataclass(frozen=True)
class SortedRecords:
    """Sorted BAM records on a device, by coordinate (contig, position + 1, strand; no contig comes last) or by name."""

    bytes: Array  # uint8, the concatenated records
    keys: Array  # ascending; by coordinate uint64 [records], by name uint8 [records, key bytes]
    ends: Array  # int64 [records], where each record ends


def host_keys(run: SortedRecords, backend: Backend) -> np.ndarray[Any, Any]:
    """Copy the keys to the host, [records]; keys of names as NumPy bytes, which compare in the same order."""
    keys = backend.to_host(run.keys)
    return keys if keys.ndim == 1 else keys.view(f"S{keys.shape[1]}").reshape(-1)


def record_keys(
    records: Array, lengths: Array, ends: Array, contigs: int, backend: Backend
) -> tuple[Array, Array, Array]:
    """Return coordinate keys, uint64, indices, uint32, and is_record, uint8, of entries. Arguments: as sort_records."""
    entries = len(lengths)
    keys, indices = backend.empty(entries, np.uint64), backend.empty(entries, np.uint32)
    is_record = backend.empty(entries, np.uint8)
    outputs = {"keys": keys, "indices": indices, "is_record": is_record}
    backend.launch(_KEYS, entries, bytes=records, lengths=lengths, ends=ends, contigs=contigs, **outputs)
    return keys, indices, is_record


def sort_records(
    records: Array, lengths: Array, ends: Array, contigs: int, backend: Backend, fragments: Array | None = None
) -> SortedRecords:
    """Sort records by coordinate.

    records: uint8, concatenated entries. lengths: int64 [entries], 0 for an entry without a record; ends: their
    inclusive scan. contigs: number in the header. fragments: int64 [entries], fragment IDs to append to the records.
    """
    entries = len(lengths)
    keys, indices, is_record = record_keys(records, lengths, ends, contigs, backend)
    scratch = backend.empty(entries, np.uint64), backend.empty(entries, np.uint32)
    keys, order = sort_pairs(keys, indices, *scratch, POSITION_BITS + (contigs + 1).bit_length(), backend)
    count = count_flagged(is_record, ANY_FLAG, backend)
    gathered, new_ends = gather(records, ends, lengths, order[:count], backend, fragments)
    return SortedRecords(gathered, keys[:count], new_ends)


def offset_fragment_ids(run: SortedRecords, first: int, backend: Backend) -> None:
    """Add `first`, the index of the run's first fragment among all batches, to the fragment IDs of a run."""
    backend.launch(_OFFSET, len(run.ends), bytes=run.bytes, ends=run.ends, first=first, tag_bytes=FRAGMENT_TAG_BYTES)


def detach_fragment_tags(
    records: Array, ends: Array, contigs: int, fragments: int, backend: Backend
) -> tuple[SortedRecords, int | None]:
    """Restore a sorted run from a file whose records have fragment IDs as tags; return it and its first invalid record.

    records: uint8, modified in place. ends: int64 [records]. contigs, fragments: numbers in the file. The second value
    is the index of the first record that is out of order or has no valid fragment ID, or None.
    """
    keys, is_invalid = backend.empty(len(ends), np.uint64), backend.empty(len(ends), np.uint8)
    shape = {"contigs": contigs, "fragments": fragments, "tag_bytes": FRAGMENT_TAG_BYTES}
    backend.launch(_DETACH, len(ends), bytes=records, ends=ends, **shape, keys=keys, is_invalid=is_invalid)
    invalid = backend.to_host(select_flagged(is_invalid, ANY_FLAG, backend)[:1]).tolist()
    return SortedRecords(records, keys, ends), invalid[0] if invalid else None


def permute_lengths(lengths: Array, order: Array, backend: Backend, tag_bytes: int = 0) -> Array:
    """Return lengths[order] + tag_bytes, int64; order: uint32."""
    new_lengths = backend.empty(len(order), np.int64)
    inputs = {"lengths": lengths, "order": order, "records": len(lengths), "tag_bytes": tag_bytes}
    backend.launch(_LENGTHS, len(order), **inputs, new_lengths=new_lengths)
    return new_lengths


def gather(
    records: Array, ends: Array, lengths: Array, order: Array, backend: Backend, fragments: Array | None = None
) -> tuple[Array, Array]:
    """Copy records in another order; return the copies, uint8, and where each ends, int64.

    ends, lengths: int64 [entries]. order: uint32, indices of the entries to copy. fragments: int64 [entries], appended.
    """
    tag_bytes = 0 if fragments is None else FRAGMENT_TAG_BYTES
    fragments = backend.empty(0, np.int64) if fragments is None else fragments
    new_ends = backend.inclusive_sum(permute_lengths(lengths, order, backend, tag_bytes))
    gathered = backend.empty(len(records) + tag_bytes * len(order), np.uint8)
    arrays = {"ends": ends, "lengths": lengths, "order": order, "new_ends": new_ends, "records": len(lengths)}
    backend.launch(
        _GATHER, len(order), bytes=records, sorted=gathered, fragments=fragments, tag_bytes=tag_bytes, **arrays
    )
    return gathered, new_ends


_MEASURE, _NAME_KEYS = Kernel("bam/name_order", "measure_keys"), Kernel("bam/name_order", "compute_name_keys")
_WRITE = Kernel("bam/name_order", "write_keys")

WORD_BYTES = 8


def sort_by_name(
    records: Array, lengths: Array, ends: Array, backend: Backend, fragments: Array | None = None
) -> SortedRecords:
    """Sort records by name, and records of one name by their flags. Arguments: see `sort_records`."""
    entries, inputs = len(lengths), {"bytes": records, "lengths": lengths, "ends": ends}
    max_bytes = backend.full(1, 0, np.int32)
    backend.launch(_MEASURE, entries, **inputs, max_bytes=max_bytes)
    count = -(-max(int(backend.to_host(max_bytes)[0]), 1) // WORD_BYTES)
    words, is_record = backend.empty(count * entries, np.uint64), backend.empty(entries, np.uint8)
    shape = {"entries": entries, "count": count}
    backend.launch(_NAME_KEYS, entries, **inputs, words=words, is_record=is_record, **shape)
    columns = [(words[word * entries : (word + 1) * entries], 8 * WORD_BYTES) for word in range(count)]
    order = argsort_columns(columns, backend)[: count_flagged(is_record, ANY_FLAG, backend)]
    keys = backend.empty(WORD_BYTES * count * len(order), np.uint8)
    backend.launch(_WRITE, len(order), words=words, order=order, keys=keys, **shape)
    gathered, new_ends = gather(records, ends, lengths, order, backend, fragments)
    return SortedRecords(gathered, keys.reshape(-1, WORD_BYTES * count), new_ends)
