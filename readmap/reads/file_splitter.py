"""Files of reads -> where their records begin, by one pass that inflates them."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.byte_source import source_of_file, open_file
from readmap.formats.gzip_reader import GZIP_MAGIC, MissingEofBlock, read_fully
from readmap.formats.gzip_access_points import AccessPoints
from readmap.formats.byte_range import ByteRange
from readmap.reads.alignment_reads import START_BYTES, is_bam_or_cram
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_starts import Starts, record_starts
from readmap.reads.split_table import SplitFile, identify

#: Text from one point to the next. What lies between a point and a shard's begin is inflated in vain, some 50 ms; the
#: window of a point of gzip that is not blocked has 10 KB in the table.
SPACING = 16 << 20

#: Records from one mark to the next, which has 16 bytes in the table.
MARKED_RECORDS = 1 << 10

#: Threads that inflate or read one file; more take another one meanwhile.
FILE_THREADS = 4

#: Seconds between two moments at which progress is shown.
PATIENCE = 0.2

#: Called with records that have been found and bytes that have been read, of all files, and with the bytes there are.
Progress = Callable[[int, int, int], None]

#: Called with a line that warns.
Warn = Callable[[str], None]


class _Stopped(Exception):
    """Another file has failed, or an interrupt has come."""


def split_files(paths: Sequence[str], threads: int, progress: Progress, warn: Warn) -> tuple[SplitFile, ...]:
    """Where the records of each file begin.

    threads: that inflate, or read. warn: called where blocked gzip has no end-of-file block behind its last record.
    Raises DataError where a file is not regular, is BAM or CRAM, or broken, or a record of FASTQ is none; and OSError.
    """
    with FileSplitter(paths, threads, warn) as splitting:
        is_whole = False
        while not is_whole:
            is_whole = splitting.wait(PATIENCE)
            progress(*splitting.counts)
        return splitting.files


class FileSplitter:
    """The passes through some files, several at once; in the end of the context they are stopped."""

    def __init__(self, paths: Sequence[str], threads: int, warn: Warn) -> None:
        """As split_files has them. Raises DataError where a file is not regular, and OSError."""
        self._size = sum(_regular_size(path) for path in paths)
        self._surveys = [_Survey(path) for path in paths]
        self._warn, self._stop = warn, threading.Event()
        self._together = max(min(threads // FILE_THREADS, len(paths)), 1)
        self._threads = max(threads // self._together, 1)

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self._together, "readmap-split")
        self._waiting = {self._pool.submit(each.run, self._threads, self._stop) for each in self._surveys}
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def wait(self, seconds: float | None = None) -> bool:
        """Whether all is known, after so many seconds at most. Raises what split_files raises."""
        if not self._waiting:
            return True
        done, self._waiting = wait(self._waiting, seconds, FIRST_EXCEPTION)
        for survey in done:
            survey.result()
        if not self._waiting:
            for doubt in filter(None, [each.doubt for each in self._surveys]):
                self._warn(f"{doubt}, which some programs do not write")
        return not self._waiting

    @property
    def files(self) -> tuple[SplitFile, ...]:
        """What is known by now."""
        return tuple(each.known() for each in self._surveys)

    @property
    def counts(self) -> tuple[int, int, int]:
        """As Progress is called with them."""
        return sum(each.records for each in self._surveys), sum(each.read for each in self._surveys), self._size


class _Survey:
    """The pass through one file.

    records, read: those that have been found, and bytes of the file that have been read. doubt: what may be missing at
    its end.
    """

    def __init__(self, path: str) -> None:
        self.records = self.read = 0
        self.doubt: MissingEofBlock | None = None
        self._path, self._identity, self._points = path, identify(path), AccessPoints(SPACING)
        self._is_gzip = False
        self._marks: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
        self._whole: SplitFile | None = None

    def known(self) -> SplitFile:
        """What has been found; until all is, as far as the last mark."""
        if self._whole:
            return self._whole
        count = len(self._marks)
        if count > 1:  # others are added meanwhile
            self._marks[:count] = [np.concatenate(self._marks[:count])]
        marks = self._marks[0]
        records, text = marks[-1].tolist() if len(marks) else (0, 0)
        return self._file(records, text, marks, is_whole=False)

    def _file(self, records: int, text: int, marks: NDArray[np.int64], is_whole: bool = True) -> SplitFile:
        points = [*self._points.found] if self._is_gzip else None
        return SplitFile(self._path, self._identity, records, text, marks, points, is_whole)

    def run(self, threads: int, stop: threading.Event) -> None:
        """Find all; raises _Stopped where that is asked for meanwhile."""
        file, name = open_file(self._path)
        with file:
            start = read_fully(file, START_BYTES)
            if is_bam_or_cram(start):
                raise DataError(f"{name} is BAM or CRAM: expected FASTQ or FASTA")
            self._is_gzip = start.startswith(GZIP_MAGIC)
            with ByteRange(source_of_file(file, name, start, threads, HOST_INFLATERS, self._points)) as source:
                try:
                    for starts in record_starts(source, threads=min(threads, FILE_THREADS)):
                        self._add(starts)
                        self.read = (source.read_progress() or (0, 0))[0]
                        if stop.is_set():
                            raise _Stopped
                except MissingEofBlock as error:
                    self.doubt = error
                text = source.delivered
        self._whole = self._file(self.records, text, np.concatenate(self._marks))

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
