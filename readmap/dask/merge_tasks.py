"""The tasks that bring the records of sorted shards together: which are duplicates, then a range of keys each."""

from __future__ import annotations

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
from readmap.dask.job import RECORDS, Job
from readmap.dask.run_files import Border, open_part
from readmap.dask.scratch import make_once
from readmap.dask.worker import worker_backend, take_turn, return_errors
from readmap.duplicates.marker import DuplicateMarker, DuplicateRules
from readmap.duplicates.metrics import LibraryMetrics
from readmap.duplicates.shards import read_fragments
from readmap.formats.output import open_output

MARKS = "marks.npy"

#: Bytes of records that a thread merges together: as many of all shards as of the runs of one.
MERGED_BYTES = MAX_PIECE // 4


@dataclass(frozen=True)
class Marked:
    """The metrics of the duplicates of all shards, library by library, and the text of their file."""

    libraries: list[LibraryMetrics]
    metrics: str


@dataclass(frozen=True)
class Merged:
    """What there is of a range: bytes of each block, bytes of its text, and what the file's index is to hear."""

    block_sizes: list[int]
    seen: list[IndexEntries]

    @property
    def size(self) -> int:
        """Bytes of its text."""
        return sum(seen.size for seen in self.seen)


@return_errors
def mark(job: Job, rules: DuplicateRules, bounds: Sequence[tuple[int, int]]) -> Marked:
    """Which fragments of all shards are duplicates, in the folder of the marks; bounds: of their numbers in each."""
    with take_turn():
        return make_once(job.marks, functools.partial(_mark, job, rules, bounds))


def _mark(job: Job, rules: DuplicateRules, bounds: Sequence[tuple[int, int]], folder: Path) -> Marked:
    backend = worker_backend(job.resources)
    with backend.thread_stream():
        duplicates, places = DuplicateMarker(rules, backend), []
        duplicates.begin(job.groups, job.contig_lengths)
        for number, (first, _) in enumerate(bounds):
            shard = read_fragments(str(job.shard(number) / RECORDS))
            begin = duplicates.table.restore(shard.rows, shard.barcodes, shard.counters)
            places.append((begin, first, len(shard.rows)))
        marks = duplicates.marking(CpuBackend(1)).marks
    spread = np.zeros(bounds[-1][1], np.uint8)
    for begin, first, count in places:
        spread[first : first + count] = marks[begin : begin + count]
    np.save(folder / MARKS, spread)
    return Marked(duplicates.libraries, duplicates.metrics(job.command_line))


@return_errors
def merge_range(job: Job, number: int, begin: Border | None, end: Border | None) -> Merged:
    """The records of all shards from one border to another, marked and in blocks, in the folder of the range."""
    with take_turn():
        return make_once(job.range(number), functools.partial(_merge, job, begin, end))


def _merge(job: Job, begin: Border | None, end: Border | None, folder: Path) -> Merged:
    backend, lengths, packing = worker_backend(job.resources), job.contig_lengths, job.packing
    host, codec = CpuBackend(backend.threads), choose_codec(packing.codec, packing.level, [backend])
    index, seen = FileIndex(lengths, format_for(max(lengths, default=0)), 0), list[IndexEntries]()
    with (
        backend.thread_stream(),
        codec.open(open_output(str(folder / RECORDS)), backend.threads, packing.level) as output,
    ):
        runs = SortedRuns(MERGED_BYTES * PIECES_IN_MEMORY, lambda: folder, host, output.buffer)
        try:
            for shard in range(job.tasks):
                runs.add_file(open_part(job.shard(shard), shard, begin, end))
            for piece in runs.merged(index.measure, _marking(job)):
                output.write_borrowed(piece.bytes, piece.release)
                if piece.measured:
                    seen.append(piece.measured)
            output.commit()
        finally:
            runs.close()
    return Merged(output.block_sizes, seen)


def _marking(job: Job) -> Marking | None:
    if not job.rules:
        return None
    marks = np.load(job.marks / MARKS, mmap_mode="r")
    return Marking(marks, FRAGMENT_TAG_BYTES, job.rules.is_removed, job.rules.has_type)
