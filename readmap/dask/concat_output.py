"""Files that tasks have written -> one file: text or compressed blocks are appended as they are."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from readmap.bam.file_index import FileIndex, IndexFormat
from readmap.formats.bgzf import BLOCK_BYTES, END_OF_FILE, BgzfOutput, compress_with_package
from readmap.formats.file_errors import NamedFile
from readmap.formats.output import ByteSink, Output, open_output
from readmap.formats.samtools import INDEX_ENDINGS

#: Bytes that are copied at a time. They fit into a processor's cache, which halves the time of larger pieces.
COPIED_BYTES = 256 << 10


class ConcatOutput:
    """An output that is concatenated from files; the caller commits or aborts it."""

    def __init__(self, output: Output, level: int | None) -> None:
        """output: where the files are appended. level: compression level of BGZF blocks, or None for text."""
        self.name = output.name
        self._output, self._level = output, level
        self._text = 0
        self._block_sizes: list[int] = []
        self._block_starts: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self._is_finished = False
        self._buffer = bytearray(COPIED_BYTES)

    def begin(self, header: bytes) -> None:
        """Write the header, uncompressed here, in BGZF blocks if the output is compressed."""
        if self._level is None:
            self._output.write(header)
            return
        blocks = compress_with_package([np.frombuffer(header, np.uint8)], self._level)
        for data in blocks.data:
            self._output.write(data)
        self._count(blocks.sizes, len(header))

    def add(self, path: Path, block_sizes: Sequence[int] = (), size: int = 0) -> None:
        """Append a file and remove it. block_sizes, size: compressed bytes of each block, and uncompressed bytes in
        all, if an index is made."""
        self._count(block_sizes, size)
        view = memoryview(self._buffer)
        with NamedFile(str(path)) as file:
            left = os.fstat(file.fileno()).st_size - (0 if self._level is None else len(END_OF_FILE))
            left -= self._output.append(file, left)
            while left > 0 and (count := file.readinto(view[: min(left, COPIED_BYTES)])):
                self._output.write(view[:count])
                left -= count
        if left:
            raise EOFError(f"{path}: it has been shortened by {abs(left):,} bytes")
        path.unlink()

    def index(self, index: FileIndex) -> bytes:
        """Return the contents of the index file; index: has accumulated the entries of all files."""
        starts = np.concatenate([np.empty(0, np.int64), *self._block_starts])
        return index.write(self._block_sizes, starts)

    def finish(self) -> None:
        """Write the end-of-file block of BGZF if not yet written, and close the file."""
        if self._level is not None and not self._is_finished:
            self._output.write(END_OF_FILE)
        self._is_finished = True
        self._output.finish()

    def commit(self) -> None:
        """Give the output its name, and remove indexes of the file it replaces."""
        self.finish()
        for ending in INDEX_ENDINGS:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name + ending)
        self._output.commit()

    def abort(self) -> None:
        self._output.abort()

    def _count(self, block_sizes: Sequence[int], size: int) -> None:
        self._block_sizes += block_sizes
        self._block_starts.append(self._text + BLOCK_BYTES * np.arange(len(block_sizes)))
        self._text += size


def open_index(path: str, index_format: IndexFormat) -> ByteSink:
    plain = open_output(f"{path}.{index_format}")
    return BgzfOutput(plain, 1) if index_format is IndexFormat.CSI else plain
