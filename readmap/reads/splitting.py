"""Files of reads -> where their records begin, by one pass that inflates them."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.compression import bytes_behind, open_file
from readmap.formats.gzip_data import GZIP_MAGIC, UnmarkedEnd, read_up_to
from readmap.formats.gzip_points import Points
from readmap.formats.text_range import TextRange
from readmap.reads.alignment_reads import START_BYTES, holds_alignments
from readmap.reads.inflating import HOST_INFLATERS
from readmap.reads.record_starts import Starts, record_starts
from readmap.reads.split_table import SplitFile, identify

#: Text from one point to the next. What lies between a point and a shard's begin is inflated in vain, some 50 ms; the
#: window of a point of gzip that is not blocked has 10 KB in the table.
SPACING = 16 << 20

#: Records from one mark to the next, which has 16 bytes in the table.
MARKED_RECORDS = 1 << 10

#: Threads that inflate one file; more take another one meanwhile.
FILE_THREADS = 4

#: Seconds between two moments at which progress is shown.
PATIENCE = 0.2

#: Called with records that have been found and bytes that have been read, of all files, and with the bytes there are.
Progress = Callable[[int, int, int], None]


class _Stopped(Exception):
    """Another file has failed, or an interrupt has come."""


def split_files(
    paths: Sequence[str], threads: int, progress: Progress, warn: Callable[[str], None]
) -> tuple[SplitFile, ...]:
    """Where the records of each file begin.

    threads: that inflate. warn: called where blocked gzip has no end-of-file block behind its last record.
    Raises DataError where a file is not regular, is BAM or CRAM, or broken, or a record of FASTQ is none; and OSError.
    """
    sizes = [_regular_size(path) for path in paths]
    surveys = [_Survey(path) for path in paths]
    stop, together = threading.Event(), max(min(threads // FILE_THREADS, len(paths)), 1)
    with ThreadPoolExecutor(together, "readmap-split") as pool:
        try:
            given = max(threads // together, 1)
            waiting: set[Future[SplitFile]] = {*(jobs := [pool.submit(each.run, given, stop) for each in surveys])}
            while waiting:
                done, waiting = wait(waiting, PATIENCE, FIRST_EXCEPTION)
                for job in done:
                    job.result()
                progress(sum(each.records for each in surveys), sum(each.read for each in surveys), sum(sizes))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    for survey in surveys:
        if survey.doubt:
            warn(f"{survey.doubt}, which some programs do not write")
    return tuple(job.result() for job in jobs)


class _Survey:
    """The pass through one file.

    records, read: those that have been found, and bytes of the file that have been read. doubt: what may be missing at
    its end.
    """

    def __init__(self, path: str) -> None:
        self.records = self.read = 0
        self.doubt: UnmarkedEnd | None = None
        self._path = path
        self._marks: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]

    def run(self, threads: int, stop: threading.Event) -> SplitFile:
        """What is found; raises _Stopped where that is asked for meanwhile."""
        identity, points = identify(self._path), Points(SPACING)
        file, name = open_file(self._path)
        with file:
            start = read_up_to(file, START_BYTES)
            if holds_alignments(start):
                raise DataError(f"{name} is BAM or CRAM: expected FASTQ or FASTA")
            with TextRange(bytes_behind(file, name, start, threads, HOST_INFLATERS, points)) as source:
                try:
                    for starts in record_starts(source):
                        self._add(starts)
                        self.read = (source.taken() or (0, 0))[0]
                        if stop.is_set():
                            raise _Stopped
                except UnmarkedEnd as error:
                    self.doubt = error
                text = source.delivered
        kept = points.found if start.startswith(GZIP_MAGIC) else None
        return SplitFile(name, identity, self.records, text, np.concatenate(self._marks), kept)

    def _add(self, starts: Starts) -> None:
        """Keep marks of the next records."""
        marked = np.arange(-self.records % MARKED_RECORDS, len(starts), MARKED_RECORDS)
        self._marks.append(np.column_stack([self.records + marked, starts[marked]]))
        self.records += len(starts)


def _regular_size(path: str) -> int:
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode):
        raise DataError(f"{path} is no regular file: a part of it cannot be read by itself")
    return facts.st_size
