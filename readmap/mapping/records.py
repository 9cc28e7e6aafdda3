"""Format SAM or BAM records (Alignments -> bytes)."""

from dataclasses import dataclass

import numpy as np

from readmap.backend import Array, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.tables import Table
from readmap.bam.order import SortOrder
from readmap.formats.sam import NO_READ_GROUP, PROGRAM, ReadGroup, SamEncoding, common_tags
from readmap.mapping.alignments import Alignments
from readmap.mapping.batch import Batch, Context

_SUM = Kernel("mapping/sam", "sum_qualities")
_MEASURE, _WRITE = Kernel("mapping/sam", "measure_records"), Kernel("mapping/sam", "write_records")


@dataclass(frozen=True)
class RecordStyle:
    """Format and optional contents of the output."""

    encoding: SamEncoding = SamEncoding.TEXT
    read_groups: tuple[ReadGroup, ...] = (NO_READ_GROUP,)  # of each lane
    program: str = PROGRAM  # ID of readmap's @PG line in the header
    comments: bool = False  # append the tags in the comments of reads
    barcodes: bool = False  # write the barcode of a read name, its eighth field, as RX
    order: SortOrder | None = None  # of binary records within a batch; None to keep the order of the reads
    unmapped: bool = False  # write unmapped reads to a separate output too


class _RecordStyleTable(Table, struct="mapping/sam.cu:RecordStyle"):
    """Format and optional contents of the records."""


@dataclass(frozen=True)
class AlignmentRecords:
    """The records of a batch in input order, on the device."""

    bytes: Array  # uint8
    lengths: Array  # int64 [entries], length of each entry's record, 0 for none
    ends: Array  # int64 [entries], inclusive scan of the lengths


def format_records(alignments: Alignments, batch: Batch, style: RecordStyle, context: Context) -> AlignmentRecords:
    """Return the SAM or BAM records of a batch of alignments; this reads the device counters back."""
    backend, index, reads, count = context.backend, context.index, batch.reads, alignments.plan.entries
    read_group = style.read_groups[reads.lane]
    tags = np.frombuffer(common_tags(read_group, style.program, style.encoding), np.uint8)
    quality_sums = backend.empty(reads.count if reads.paired else 0, np.int32)
    batch.launch(_SUM, len(quality_sums), context, quality_sums=quality_sums)
    table = _RecordStyleTable(
        common_tags=backend.to_device(tags),
        common_tags_length=len(tags),
        has_read_group=read_group != NO_READ_GROUP,
        comments=style.comments,
        barcodes=style.barcodes,
        soft_clipped=context.reporting.soft_clipped,
        encoding=constant("mapping/records.cuh", style.encoding.value),
    )
    shared = {"barrier_letters": index.barrier_letters, "names": index.contig_names, "style": table}
    shared |= {"plan": alignments.plan, "extensions": alignments.extensions, "alignments": alignments}
    shared["quality_sums"] = quality_sums
    lengths = backend.empty(count, np.int64)
    batch.launch(_MEASURE, count, context, lengths=lengths, **shared)
    ends = backend.inclusive_sum(lengths)
    (total,) = batch.read_back((ends, 1))
    out = backend.empty(total, np.uint8)
    batch.launch(_WRITE, count, context, record_ends=ends, out=out, **shared)
    return AlignmentRecords(out, lengths, ends)
