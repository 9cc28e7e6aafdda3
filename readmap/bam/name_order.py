"""BAM records -> BAM records sorted by name, in the order of samtools sort -n."""

from __future__ import annotations

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compaction import ANY_FLAG, count_flagged
from readmap.backend.radix_sort import argsort_columns
from readmap.bam.order import SortedRecords, gather

_MEASURE, _KEYS = Kernel("bam/name_order", "measure_keys"), Kernel("bam/name_order", "compute_name_keys")
_WRITE = Kernel("bam/name_order", "write_keys")

WORD_BYTES = 8


def sort_by_name(
    records: Array, lengths: Array, ends: Array, backend: Backend, fragments: Array | None = None
) -> SortedRecords:
    """Sort records by name, and records of one name by their flags.

    records: uint8, concatenated entries. lengths: int64 [entries], 0 for an entry without a record; ends: inclusive
    scan of the lengths. fragments: int64 [entries], fragment IDs to append to the records.
    """
    entries, inputs = len(lengths), {"bytes": records, "lengths": lengths, "ends": ends}
    max_bytes = backend.full(1, 0, np.int32)
    backend.launch(_MEASURE, entries, **inputs, max_bytes=max_bytes)
    count = -(-max(int(backend.to_host(max_bytes)[0]), 1) // WORD_BYTES)
    words, is_record = backend.empty(count * entries, np.uint64), backend.empty(entries, np.uint8)
    shape = {"entries": entries, "count": count}
    backend.launch(_KEYS, entries, **inputs, words=words, is_record=is_record, **shape)
    columns = [(words[word * entries : (word + 1) * entries], 8 * WORD_BYTES) for word in range(count)]
    order = argsort_columns(columns, backend)[: count_flagged(is_record, ANY_FLAG, backend)]
    keys = backend.empty(WORD_BYTES * count * len(order), np.uint8)
    backend.launch(_WRITE, len(order), words=words, order=order, keys=keys, **shape)
    gathered, new_ends = gather(records, ends, lengths, order, backend, fragments)
    return SortedRecords(gathered, keys.reshape(-1, WORD_BYTES * count), new_ends)
