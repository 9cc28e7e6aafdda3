"""Alignments -> blocks for the outputs: records, sorted within the batch if wanted, and unmapped reads."""

import contextlib
from typing import NamedTuple

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.tables import Table
from readmap.bam.order import SortedRecords, SortOrder, sort_by_name, sort_records
from readmap.duplicates.fragments import FragmentBatch
from readmap.duplicates.marker import DuplicateMarker
from readmap.mapping.alignments import Alignments
from readmap.mapping.batch import Batch, Context
from readmap.mapping.records import AlignmentRecords, RecordStyle, format_records
from readmap.reads.parsing import Reads
from readmap.run.writer import Block

#: The indices of the outputs: records and unmapped reads.
RECORDS, UNMAPPED_READS = range(2)

_MEASURE, _WRITE = Kernel("run/fastq", "measure_unmapped"), Kernel("run/fastq", "write_unmapped")


class RecordBatch(NamedTuple):
    """The blocks of a batch, its records first, and its fragments if duplicates are marked."""

    blocks: list[Block]
    fragments: FragmentBatch | None


class RecordBlocks:
    """Makes the blocks of batches. Records are sorted on the first device, where all sorted runs are merged."""

    def __init__(self, first: Context, style: RecordStyle, marker: DuplicateMarker | None) -> None:
        self._first = first.backend
        self._contigs = len(first.index.contig_names.offsets) - 1
        self._style, self._marker = style, marker

    def of(self, batch: Batch, alignments: Alignments, context: Context) -> RecordBatch:
        """Format an aligned batch; return its blocks (records, unmapped reads if wanted) and fragments."""
        records, fragments = format_records(alignments, batch, self._style, context), None
        backend, blocks = context.backend, list[Block]()
        if self._style.order:
            run, fragments = self._sort(records, alignments.plan.offsets, batch.reads.records_per_fragment, backend)
            blocks.append(Block(run.bytes, self._first, RECORDS, run))
        else:
            blocks.append(Block(records.bytes, backend, RECORDS))
        if self._style.unmapped:
            unmapped = _format_unmapped(alignments, batch.reads, backend)
            if len(unmapped):
                blocks.append(Block(unmapped, backend, UNMAPPED_READS))
        return RecordBatch(blocks, fragments)

    def count_fragments(self, made: RecordBatch, backend: Backend) -> None:
        """Give the fragments of a batch to the marker, in the order of the batches; backend: that the thread uses."""
        if self._marker and made.fragments and (run := made.blocks[RECORDS].run):
            with self._using_first(backend):
                self._marker.take(made.fragments, run)

    def _sort(
        self, records: AlignmentRecords, offsets: Array, records_per_fragment: int, backend: Backend
    ) -> tuple[SortedRecords, FragmentBatch | None]:
        """Sort records on the first device; return them and, with a marker, their fragments. offsets: by read."""
        first, fragments, numbers = self._first, None, None
        if backend is not first:
            backend.synchronize()
        with self._using_first(backend):
            copied = records.bytes, records.lengths, records.ends
            data, lengths, ends = (first.copy_from_peer(array) for array in copied)
            if self._marker:
                fragments = self._marker.table.describe(
                    data, lengths, ends, first.copy_from_peer(offsets), records_per_fragment
                )
                numbers = fragments.numbers
            if self._style.order is SortOrder.QUERYNAME:
                return sort_by_name(data, lengths, ends, first, numbers), fragments
            return sort_records(data, lengths, ends, self._contigs, first, numbers), fragments

    def _using_first(self, backend: Backend) -> contextlib.AbstractContextManager[object]:
        """Return a context in which the thread uses the first device; backend: that the thread uses now."""
        return contextlib.nullcontext() if backend is self._first else self._first.thread_stream()


class _UnmappedReads(Table, struct="run/fastq.cu:UnmappedReads"):
    """Reads with the offsets and flags of their records."""


def _format_unmapped(alignments: Alignments, reads: Reads, backend: Backend) -> Array:
    """Return FASTQ of unmapped single reads, and of pairs with two unmapped mates, as uint8 on the device.

    They are in the order of the input: mates alternate, and their names end in /1 and /2."""
    unmapped = _UnmappedReads(
        texts=reads, lengths=reads.lengths, line_offsets=alignments.plan.offsets, line_flags=alignments.flags
    )
    lengths = backend.empty(reads.count, np.int64)
    backend.launch(_MEASURE, reads.count, reads=unmapped, lengths_out=lengths)
    ends, total = backend.inclusive_sum_with_total(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(_WRITE, reads.count, reads=unmapped, record_ends=ends, out=out)
    return out
