"""BAM and CRAM as inputs: the reads in them as FASTQ, which `samtools fastq` makes, and the lines of their header."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import threading
import zlib
from collections.abc import Sequence

from readmap.errors import DataError
from readmap.formats.compression import ByteSource, bytes_behind, open_file
from readmap.formats.gzip_data import GZIP_MAGIC, read_up_to
from readmap.formats.samtools import Samtools

#: Enough of a file to know what it is.
START_BYTES = 4096

#: What is read of a file at a time.
PIECE_BYTES = 1 << 18

#: More would wait for the one that writes the FASTQ.
MOST_THREADS = 4

#: Of `start`: every tag.
ALL_TAGS = ("*",)

CRAM_MAGIC = b"CRAM"

PAIRED = 1


class AlignmentReads(ByteSource):
    """The reads of alignments as FASTQ, as they were before; secondary and supplementary records are left out.

    name: what messages call it: the path, or "standard input".
    header: the lines of its header.
    is_paired: whether its reads are pairs, by the first of them; mates then follow each other where the file is
        collated by names.
    """

    collating = "samtools collate"

    def __init__(self, file: io.FileIO, name: str, start: bytes, threads: int) -> None:
        """file: closed in the end. start: what has been read of it. threads: the most that inflate.

        Raises DataError where the header or the first record cannot be read.
        """
        self.name = name
        self._file = file
        self._threads = threads
        self._samtools: Samtools | None = None
        self._start = start
        text = self._first_lines()
        self.header = [line for line in text if line.startswith("@")]
        records = [line.split("\t") for line in text[len(self.header) :] if line]
        self.is_paired = any(int(record[1]) & PAIRED for record in records)

    def start(self, tags: Sequence[str]) -> None:
        """Begin; to be called once, before the first read. tags: those that a read's comment holds, between tabs."""
        kept = ["-T", ",".join(tags)] if tags else []
        # With threads htslib does not see that a CRAM file lacks its end.
        threads = 0 if self._start.startswith(CRAM_MAGIC) else min(self._threads, MOST_THREADS)
        self._samtools = Samtools("fastq", "-n", "-@", str(threads), *kept, "-")
        threading.Thread(target=self._feed, args=(self._samtools,), name="readmap-feed", daemon=True).start()

    def readinto(self, target: memoryview) -> int:
        """As ByteSource says. Raises DataError where the file is broken, so that its end is never taken for whole."""
        assert self._samtools is not None
        filled: int = self._samtools.output.readinto(target)  # type: ignore[attr-defined]
        if not filled and len(target) and (failure := self._samtools.failure()):
            raise DataError(f"{self.name}: the alignments cannot be read: {failure}")
        return filled

    def close(self) -> None:
        """Ends samtools, from any thread; whoever reads the file closes it."""
        if self._samtools is None:
            self._file.close()
        else:
            self._samtools.close()

    def _first_lines(self) -> list[str]:
        """The header and, behind it, the first record as SAM. What it takes to read them is kept in `_start`."""
        parts = [self._start]
        with tempfile.TemporaryFile() as lines, Samtools("head", "-n", "1", "-", stdout=lines) as head:
            with contextlib.suppress(BrokenPipeError):
                head.input.write(parts[0])
                while part := self._file.read(PIECE_BYTES):
                    parts.append(part)
                    head.input.write(part)
            head.end_input()
            if failure := head.failure():
                raise DataError(f"{self.name}: the alignments cannot be read: {failure}")
            lines.seek(0)
            self._start = b"".join(parts)
            return lines.read().decode("utf-8", "surrogateescape").rstrip("\n").split("\n")

    def _feed(self, samtools: Samtools) -> None:
        """Hand all bytes of the file to the command; where one of the two ends early, the command's end says why."""
        with self._file, contextlib.suppress(OSError, ValueError):
            samtools.input.write(self._start)
            shutil.copyfileobj(self._file, samtools.input, PIECE_BYTES)
        with contextlib.suppress(OSError):
            samtools.end_input()


def open_reads(path: str, threads: int = 1) -> ByteSource:
    """The bytes of a file of reads, as open_bytes gives them; of BAM and CRAM AlignmentReads, still to be started.

    Raises OSError where it cannot be read, DataError as AlignmentReads does.
    """
    file, name = open_file(path)
    try:
        start = read_up_to(file, START_BYTES)
        if _holds_alignments(start):
            return AlignmentReads(file, name, start, threads)
        return bytes_behind(file, name, start, threads)
    except BaseException:
        file.close()
        raise


def _holds_alignments(start: bytes) -> bool:
    if not start.startswith(GZIP_MAGIC):
        return start.startswith(CRAM_MAGIC)
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start, 4) == b"BAM\1"
    return False
