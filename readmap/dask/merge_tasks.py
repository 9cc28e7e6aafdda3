"""The tasks that merge the sorted shards: find the duplicates, then merge each range of sort keys."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readmap.backend.cpu import CpuBackend
from readmap.bam.codecs import choose_codec
from readmap.bam.file_index import FileIndex, IndexEntries, format_for
from readmap.bam.marking import FRAGMENT_TAG_BYTES, Marking
from readmap.bam.sorted_runs import MAX_PIECE, PIECES_IN_MEMORY, SortedRuns
from readmap.dask.job import RECORDS, Job, make_once
from readmap.dask.run_files import Border, open_shard_run
from readmap.dask.worker import config_backend, return_errors, take_turn
from readmap.duplicates.marker import DuplicateMarker, DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics
from readmap.duplicates.shards import read_fragments
from readmap.formats.output import open_output

MARKS = "marks.npy"
#: Bytes of records that a thread merges at once, from all shards.
MERGED_BYTES = MAX_PIECE // 4


@dataclass(frozen=True)
class MarkedDuplicates:
    """The duplicates of all shards: metrics by library, and the text of the metrics file."""

    libraries: list[LibraryMetrics]
    metrics: str


@dataclass(frozen=True)
class Merged:
    """What a task returns about its range: the size of each compressed block, and entries for the file's index."""

    block_sizes: list[int]
    entries: list[IndexEntries]


@return_errors
def mark(job: Job, rules: DuplicateRules, bounds: Sequence[tuple[int, int]]) -> MarkedDuplicates:
    """Find the duplicates of all shards, write a mark for each fragment; bounds: [first, end) fragments by shard."""
    with take_turn():
        return make_once(job.marks, functools.partial(_mark, job, rules, bounds))


def _mark(job: Job, rules: DuplicateRules, bounds: Sequence[tuple[int, int]], folder: Path) -> MarkedDuplicates:
    """Find duplicates and write MARKS, uint8 by fragment number, to `folder`."""
    backend = config_backend(job.config)
    with backend.thread_stream():
        marker, ranges = DuplicateMarker(rules, backend), []
        marker.set_header(job.groups, job.contig_lengths)
        for index, (first, _) in enumerate(bounds):
            shard = read_fragments(str(job.shard(index) / RECORDS))
            start = marker.table.restore(shard.rows, shard.barcodes, shard.counters)
            ranges.append((start, first, len(shard.rows)))
        found = marker.marking(CpuBackend(1)).marks
    marks = np.zeros(bounds[-1][1], np.uint8)
    for start, first, count in ranges:
        marks[first : first + count] = found[start : start + count]
    np.save(folder / MARKS, marks)
    return MarkedDuplicates(marker.libraries, marker.metrics(job.config.command_line))


@return_errors
def merge_range(job: Job, index: int, start: Border | None, end: Border | None) -> Merged:
    """Merge all records between two borders (None: no limit); mark, compress and write them as range `index`."""
    with take_turn():
        return make_once(job.range(index), functools.partial(_merge, job, start, end))


def _merge(job: Job, start: Border | None, end: Border | None, folder: Path) -> Merged:
    """Merge the records between two borders, and write them to RECORDS in `folder`."""
    backend, lengths = config_backend(job.config), job.contig_lengths
    marking = None
    if job.rules:
        marks = np.load(job.marks / MARKS, mmap_mode="r")
        marking = Marking(marks, FRAGMENT_TAG_BYTES, job.rules.is_removed, job.rules.has_type)
    host, codec = CpuBackend(backend.threads), choose_codec(job.config.codec, job.level, [backend])
    index, entries = FileIndex(lengths, format_for(max(lengths, default=0)), 0), list[IndexEntries]()
    with backend.thread_stream(), codec.open(open_output(str(folder / RECORDS)), backend.threads, job.level) as output:
        runs = SortedRuns(MERGED_BYTES * PIECES_IN_MEMORY, lambda: folder, host, output.buffer)
        try:
            for shard in range(job.tasks):
                runs.add_file(open_shard_run(job.shard(shard), shard, start, end))
            for piece in runs.merged(index.measure, marking):
                output.write_borrowed(piece.bytes, piece.release)
                if piece.measured:
                    entries.append(piece.measured)
            output.commit()
        finally:
            runs.close()
    return Merged(output.block_sizes, entries)
