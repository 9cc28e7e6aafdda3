"""Scan files of reads once to find where records start and from where their text can be inflated."""

import os
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readmap.errors import DataError
from readmap.formats.byte_source import ByteRange, open_file, source_of_file
from readmap.formats.gzip_access_points import AccessPoints
from readmap.formats.gzip_reader import GZIP_MAGIC, MissingEofBlock, read_fully
from readmap.reads.alignment_reads import START_BYTES, is_bam_or_cram
from readmap.reads.inflaters import HOST_INFLATERS
from readmap.reads.record_starts import Starts, record_starts
from readmap.reads.split_table import SplitFile, identify_file

#: Bytes of text between access points. Inflating from a point to the start of a shard takes up to 50 ms; a point inside
#: a gzip member takes 10 KB of the table.
POINT_SPACING = 16 << 20
RECORDS_PER_MARK = 1 << 10  # records between marks; a mark takes 16 bytes of the table
THREADS_PER_FILE = 4  # threads that inflate or read one file; more threads scan another file meanwhile
PROGRESS_INTERVAL = 0.2  # seconds between updates of the progress

#: Called with records found and bytes read, of all files, and the total bytes.
Progress = Callable[[int, int, int], None]
Warn = Callable[[str], None]  # called with a warning of one line


class _ScanStopped(Exception):
    """The scan was stopped because another file failed or the process was interrupted."""


def split_files(paths: Sequence[str], threads: int, progress: Progress, warn: Warn) -> tuple[SplitFile, ...]:
    """Find where the records of each file start.

    threads: for inflating or reading. warn: called if BGZF lacks its end-of-file block after the last record.
    Raises DataError if a file is not regular, is BAM or CRAM, or is corrupt, or a FASTQ record is invalid; and OSError.
    """
    with FileSplitter(paths, threads, warn) as splitter:
        is_done = False
        while not is_done:
            is_done = splitter.wait(PROGRESS_INTERVAL)
            progress(*splitter.progress)
        return splitter.files


class FileSplitter:
    """Scans several files at once; a context manager, which stops the scans at its end."""

    def __init__(self, paths: Sequence[str], threads: int, warn: Warn) -> None:
        """See split_files. Raises DataError if a file is not regular, and OSError."""
        self._size = sum(_regular_size(path) for path in paths)
        self._scans = [_FileScan(path) for path in paths]
        self._warn, self._stop = warn, threading.Event()
        self._concurrent_files = max(min(threads // THREADS_PER_FILE, len(paths)), 1)
        self._threads = max(threads // self._concurrent_files, 1)

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self._concurrent_files, "readmap-split")
        self._waiting = {self._pool.submit(each.run, self._threads, self._stop) for each in self._scans}
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to `seconds`; return True if all files are scanned, after warnings. Raises DataError, OSError."""
        if not self._waiting:
            return True
        done, self._waiting = wait(self._waiting, seconds, FIRST_EXCEPTION)
        for scan in done:
            scan.result()
        if not self._waiting:
            for missing_eof in filter(None, [each.missing_eof for each in self._scans]):
                self._warn(f"{missing_eof}, which some programs do not write")
        return not self._waiting

    @property
    def files(self) -> tuple[SplitFile, ...]:
        """The files, as far as they have been scanned."""
        return tuple(each.result() for each in self._scans)

    @property
    def progress(self) -> tuple[int, int, int]:
        """The arguments of Progress: records found, bytes read, total bytes."""
        return sum(each.records for each in self._scans), sum(each.bytes_read for each in self._scans), self._size


class _FileScan:
    """The scan of one file."""

    def __init__(self, path: str) -> None:
        self.records = self.bytes_read = 0  # found and read so far
        self.missing_eof: MissingEofBlock | None = None
        self._path, self._identity, self._points = path, identify_file(path), AccessPoints(POINT_SPACING)
        self._is_gzip = False
        self._marks: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
        self._whole: SplitFile | None = None

    def result(self) -> SplitFile:
        """Return the file with its marks (records and text bytes before each) and access points found until now."""
        if self._whole:
            return self._whole
        count = len(self._marks)
        if count > 1:  # the scanning thread may append more meanwhile
            self._marks[:count] = [np.concatenate(self._marks[:count])]
        marks = self._marks[0]
        records, text_bytes = marks[-1].tolist() if len(marks) else (0, 0)
        return self._file(records, text_bytes, marks, is_whole=False)

    def _file(self, records: int, text_bytes: int, marks: NDArray[np.int64], is_whole: bool = True) -> SplitFile:
        points = [*self._points.found] if self._is_gzip else None
        return SplitFile(self._path, self._identity, records, text_bytes, marks, points, is_whole)

    def run(self, threads: int, stop: threading.Event) -> None:
        """Scan the file, and store its marks for `result`. Raises _ScanStopped if `stop` is set, and DataError."""
        file, name = open_file(self._path)
        with file:
            start = read_fully(file, START_BYTES)
            if is_bam_or_cram(start):
                raise DataError(f"{name} is BAM or CRAM: expected FASTQ or FASTA")
            self._is_gzip = start.startswith(GZIP_MAGIC)
            with ByteRange(source_of_file(file, name, start, threads, HOST_INFLATERS, self._points)) as source:
                try:
                    for starts in record_starts(source, threads=min(threads, THREADS_PER_FILE)):
                        self._add_marks(starts)
                        self.bytes_read = (source.read_progress() or (0, 0))[0]
                        if stop.is_set():
                            raise _ScanStopped
                except MissingEofBlock as error:
                    self.missing_eof = error
                text_bytes = source.delivered
        self._whole = self._file(self.records, text_bytes, np.concatenate(self._marks))

    def _add_marks(self, starts: Starts) -> None:
        """Count the records that start at `starts`, and mark one in RECORDS_PER_MARK."""
        marked = np.arange(-self.records % RECORDS_PER_MARK, len(starts), RECORDS_PER_MARK)
        self._marks.append(np.column_stack([self.records + marked, starts[marked]]))
        self.records += len(starts)


def _regular_size(path: str) -> int:
    if not stat.S_ISREG((status := os.stat(path)).st_mode):
        raise DataError(f"{path} is not a regular file: parts of it cannot be read separately")
    return status.st_size
