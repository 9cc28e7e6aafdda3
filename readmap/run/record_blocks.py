"""Alignments -> blocks for the outputs: records, in order where they are sorted, and reads without a place."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from readmap.backend import Array, Backend
from readmap.bam.name_order import sort_by_name
from readmap.bam.order import SortedRecords, SortOrder, sort_records
from readmap.duplicates.fragments import FragmentBatch
from readmap.duplicates.marker import DuplicateMarker
from readmap.mapping.alignments import Alignments
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context
from readmap.mapping.records import Records, Style, format_records
from readmap.run.unmapped import format_unmapped
from readmap.run.writer import Block

#: The outputs of the blocks: records, and reads without a place.
RECORDS, UNMAPPED_READS = range(2)


class Made(NamedTuple):
    """The blocks of a batch, that of its records first, and its fragments, where duplicates are to be marked."""

    blocks: list[Block]
    described: FragmentBatch | None


class RecordBlocks:
    """Makes blocks of batches; records are sorted on the first device, where all are merged."""

    def __init__(self, first: Context, style: Style, duplicates: DuplicateMarker | None) -> None:
        """first: the first device's. duplicates: is told of all fragments, where these are to be marked."""
        self._first = first.backend
        self._contigs = len(first.index.contig_names.offsets) - 1
        self._style, self._duplicates = style, duplicates

    def of(self, batch: Batch, alignments: Alignments, context: Context) -> Made:
        """Those of the alignments of a batch."""
        records, described = format_records(alignments, batch, self._style, context), None
        backend, blocks = context.backend, list[Block]()
        if self._style.order:
            run, described = self._sort(records, alignments.plan.offsets, batch.reads.records_per_fragment, backend)
            blocks.append(Block(run.bytes, self._first, RECORDS, run))
        else:
            blocks.append(Block(records.bytes, backend, RECORDS))
        if self._style.unmapped:
            unmapped = format_unmapped(alignments, batch.reads, backend)
            if len(unmapped):
                blocks.append(Block(unmapped, backend, UNMAPPED_READS))
        return Made(blocks, described)

    def tell_duplicates(self, made: Made, backend: Backend) -> None:
        """Tell them of a batch's fragments, in the order of the batches; backend: that which the thread uses."""
        if self._duplicates and made.described and (run := made.blocks[RECORDS].run):
            with self._using_first(backend):
                self._duplicates.take(made.described, run)

    def _sort(
        self, records: Records, offsets: Array, together: int, backend: Backend
    ) -> tuple[SortedRecords, FragmentBatch | None]:
        """The records of a batch in order, on the first device; offsets: as describe has it."""
        first, described, numbers = self._first, None, None
        if backend is not first:
            backend.synchronize()
        with self._using_first(backend):
            given = (
                first.copy_from_peer(records.bytes),
                first.copy_from_peer(records.lengths),
                first.copy_from_peer(records.ends),
            )
            if self._duplicates:
                described = self._duplicates.table.describe(*given, first.copy_from_peer(offsets), together)
                numbers = described.numbers
            if self._style.order is SortOrder.QUERYNAME:
                return sort_by_name(*given, first, numbers), described
            return sort_records(*given, self._contigs, first, numbers), described

    def _using_first(self, backend: Backend) -> contextlib.AbstractContextManager[object]:
        """Have the thread use the first device for a while; backend: that which it uses."""
        return contextlib.nullcontext() if backend is self._first else self._first.thread_stream()
