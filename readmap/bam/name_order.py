"""Records of BAM -> the same in the order of their names, as samtools sort -n has them."""

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
    """The records in the order of their names, those of a name by their flags.

    records: uint8, entries of some lengths, int64, 0 where an entry has no record; ends: their inclusive prefix sum.
    fragments: int64, the number of each entry's, which is to stand behind the record.
    """
    entries, given = len(lengths), {"bytes": records, "lengths": lengths, "ends": ends}
    most = backend.full(1, 0, np.int32)
    backend.launch(_MEASURE, entries, **given, most=most)
    count = -(-max(int(backend.to_host(most)[0]), 1) // WORD_BYTES)
    words, is_record = backend.empty(count * entries, np.uint64), backend.empty(entries, np.uint8)
    shape = {"entries": entries, "count": count}
    backend.launch(_KEYS, entries, **given, words=words, is_record=is_record, **shape)
    by_word = [(words[word * entries : (word + 1) * entries], 8 * WORD_BYTES) for word in range(count)]
    order = argsort_columns(by_word, backend)[: count_flagged(is_record, ANY_FLAG, backend)]
    written = backend.empty(WORD_BYTES * count * len(order), np.uint8)
    backend.launch(_WRITE, len(order), words=words, order=order, keys=written, **shape)
    gathered, new_ends = gather(records, ends, lengths, order, backend, fragments)
    return SortedRecords(gathered, written.reshape(-1, WORD_BYTES * count), new_ends)
