"""FASTA -> Reference, one chunk of the file at a time: kernels find letters, headers and barriers, and pack the words.

The kernels run on the host, because the file and the packed words are there; on the device only if there is no C++
compiler.
"""

import hashlib
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.backend.cpu import host_backend
from readmap.errors import DataError
from readmap.formats import fasta
from readmap.formats.alphabets import Alphabet
from readmap.formats.byte_source import ByteSource
from readmap.formats.fasta import Contig
from readmap.formats.newlines import LINE_BREAKS
from readmap.formats.wording import decode_name
from readmap.index.reference import LAST_BARRIER_END, Reference, barrier_words, packed_words

#: Maximum number of chunks that wait for a thread, and in all. One thread digests a contig, more slowly than the file
#: is read; 12 chunks make up for that in a contig of 250 Mbp.
CHUNKS_PER_THREAD, MAX_CHUNKS = 2, 12


class ContigDigests:
    """The MD5s of contigs whose letters arrive chunk by chunk. A context manager whose exit ends the threads."""

    def __init__(self, threads: int) -> None:
        # One queue per thread keeps the parts of a contig in order while other contigs are digested.
        self._workers = [ThreadPoolExecutor(1, "readmap-md5") for _ in range(threads)]
        self._turns = itertools.cycle(self._workers)
        self._results: list[Future[list[str]]] = []
        self._pending: deque[list[Future[Any]]] = deque()
        self._worker: ThreadPoolExecutor | None = None
        self._md5 = hashlib.md5()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.shutdown(cancel_futures=True)

    def add(self, letters: NDArray[np.uint8], starts: Sequence[int]) -> None:
        """Queue a chunk's letters, which must not change, or wait; starts: where contigs start, after a separator."""
        # finish() reads the results once more.
        for done in self._pending.popleft() if self._is_full else ():
            done.result()
        jobs: list[Future[Any]] = []
        if self._worker:
            jobs.append(self._worker.submit(self._md5.update, (letters[: starts[0] - 1] if starts else letters).data))
        if starts:
            self._end_contig()
            self._results.append(next(self._turns).submit(_digest_all, letters, starts))
            self._worker, self._md5 = next(self._turns), hashlib.md5()
            jobs += [self._results[-1], self._worker.submit(self._md5.update, letters[starts[-1] :].data)]
        self._pending.append(jobs)

    def finish(self) -> list[str]:
        """Return the MD5s of all contigs except the last."""
        return [digest for result in self._results for digest in result.result()]

    @property
    def _is_full(self) -> bool:
        return len(self._pending) == min(CHUNKS_PER_THREAD * len(self._workers), MAX_CHUNKS)

    def _end_contig(self) -> None:
        if self._worker:
            self._results.append(self._worker.submit(lambda md5: [md5.hexdigest()], self._md5))


def _digest_all(letters: NDArray[np.uint8], starts: Sequence[int]) -> list[str]:
    """Return the MD5s of the contigs that lie completely in the letters: all that start there except the last."""
    return [hashlib.md5(letters[start : end - 1].data).hexdigest() for start, end in itertools.pairwise(starts)]


#: Bytes of the file that are processed together: enough work for all threads.
CHUNK_BYTES = 16 << 20

#: Maximum bytes of chunks whose MD5s are pending.
WAITING_BYTES = MAX_CHUNKS * CHUNK_BYTES

#: Maximum length of a contig in the SAM specification.
MAX_CONTIG_BASES = 2**31 - 1

_MODULE = "index/fasta"
_MEASURE, _GATHER, _PACK, _FIND, _MARK = (
    Kernel(_MODULE, name) for name in ("measure_blocks", "gather_text", "pack_text", "find_barriers", "mark_barriers")
)
_BLOCK, _RUN, _WORD, _IN_HEADER, _UNCHANGED = (
    constant("index/fasta.cu", name) for name in ("BLOCK", "RUN", "WORD", "IN_HEADER", "UNCHANGED")
)

#: Value of a kernel's error position if it found no error.
_NO_ERROR = 2**64 - 1


def read_reference(source: ByteSource, backend: Backend, progress: Callable[[int], None] | None = None) -> Reference:
    """Read a FASTA file: lines of any length, LF or CRLF, upper or lower case, blank lines anywhere.

    progress: called after every chunk with the number of decompressed bytes read so far. Takes WAITING_BYTES of memory
        besides the reference. Raises DataError if the file is not FASTA or has no sequence, a contig is empty or too
        long, a name is missing, repeated or not allowed in SAM, or a character is not a nucleotide; errors of `source`.
    """
    with ContigDigests(backend.threads) as digests:
        text, contigs = _ReferenceBuilder(host_backend(_MODULE, backend.threads) or backend), _Contigs(source.name)

        def add(count: int) -> None:
            found = text.find(np.frombuffer(buffer, np.uint8, 1 + count))
            contigs.add(buffer, 1 + count, found)
            letters = text.pack(found)
            digests.add(letters[found.kept :], [start - found.kept for start in found.headers[:, 2].tolist()])

        total = 0
        buffer = bytearray(1 + CHUNK_BYTES)
        buffer[:1] = b"\n"
        while count := source.readinto(memoryview(buffer)[1:]):
            add(count)
            buffer[0] = buffer[count]
            total += count
            if progress:
                progress(total)
        contigs.expect_some()
        # An artificial header ends the last contig.
        buffer[1:3] = b"\n>"
        add(2)
        names, starts = contigs.finish(text.length)
        lengths = (np.diff(starts) - 1).tolist()
        found = [Contig(*facts) for facts in zip(names, lengths, digests.finish(), strict=True)]
        return text.finish(starts, tuple(found))


@dataclass(frozen=True)
class _ChunkText:
    """The letters and headers of a chunk.

    text: uint8 [letters] on the device: `kept` letters of previous chunks, then the letters of this chunk. origin:
    position of text[0] in the reference. headers: int64 [headers, 3], struct Header of kernels/index/fasta.cu. bad:
    index of the first sequence byte that is not a nucleotide, or None.
    """

    text: Array
    kept: int
    origin: int
    headers: NDArray[np.int64]
    bad: int | None


class _ReferenceBuilder:
    """The packed letters and the barriers of the chunks so far; the text starts with a barrier, at position -1."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        # The letters of the last, possibly incomplete word and of the word before it.
        self._kept = np.full(_WORD - 1, ord("A"), np.uint8)
        self._in_header = False
        self._words = np.empty(0, np.uint64)
        self._barriers: list[tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]] = []
        self.length = -1

    def find(self, data: NDArray[np.uint8]) -> _ChunkText:
        """Extract the letters and headers of a chunk. data: uint8 [1 + bytes], the previous chunk's last byte first."""
        backend, size = self._backend, len(data)
        blocks = -(-(size - 1) // _BLOCK)
        chunk = backend.to_device(data)
        measured = [backend.empty(blocks, dtype) for dtype in (np.int64, np.int64, np.int64, np.uint8)]
        names = ("letters", "leads", "headers", "ends")
        backend.launch(_MEASURE, blocks, bytes=chunk, **dict(zip(names, measured, strict=True)), size=size)
        letters, leads, headers, ends = map(backend.to_host, measured)
        in_header = self._find_header_blocks(ends)
        text_ends = len(self._kept) + np.cumsum(letters - leads * in_header + headers)
        header_ends = np.cumsum(headers)
        text = backend.empty(int(text_ends[-1]), np.uint8)
        rows = backend.empty((int(header_ends[-1]), 3), np.int64)
        error, kept = backend.full(1, -1, np.int64).view(np.uint64), len(self._kept)
        arrays = {"in_header": in_header, "text_ends": text_ends, "header_ends": header_ends, "kept": self._kept}
        inputs = {name: backend.to_device(array) for name, array in arrays.items()}
        outputs = {"text": text, "headers": rows, "error": error}
        backend.launch(_GATHER, blocks, bytes=chunk, **inputs, **outputs, size=size, kept_count=kept)
        bad, origin = int(backend.to_host(error)[0]), self.length - kept
        return _ChunkText(text, kept, origin, backend.to_host(rows), None if bad == _NO_ERROR else bad)

    def pack(self, found: _ChunkText) -> NDArray[np.uint8]:
        """Pack a chunk's letters into words and store its barriers; return `found.text` on the host, uint8."""
        backend, size = self._backend, len(found.text)
        text = backend.to_host(found.text)
        self.length = found.origin + size
        words = -(-(size - _WORD) // _WORD)
        if words <= 0:
            self._kept = text
            return text
        items = -(-words // _RUN)
        packed = backend.empty(words, np.uint64)
        counts = [backend.empty(items, np.int64) for _ in range(2)]
        common = {"text": found.text, "size": size, "fresh": found.kept}
        backend.launch(_PACK, items, words=packed, starts=counts[0], ends=counts[1], word_count=words, **common)
        self._store(found.origin // _WORD + 1, backend.to_host(packed))
        starts, ends = map(backend.to_host, counts)
        chosen = np.flatnonzero(starts + ends)
        if len(chosen):
            started, ended = np.cumsum(starts[chosen]), np.cumsum(ends[chosen])
            start_count, end_count = int(started[-1]), int(ended[-1])
            positions = [backend.empty(count, np.int64) for count in (start_count, end_count)]
            letters = backend.empty(start_count, np.uint8)
            arrays = {"chosen": chosen, "started": started, "ended": ended}
            common |= {name: backend.to_device(array) for name, array in arrays.items()}
            common |= {"start_count": start_count, "end_count": end_count, "origin": found.origin}
            outputs = {"starts": positions[0], "letters": letters, "ends": positions[1]}
            backend.launch(_FIND, len(chosen), **common, **outputs)
            self._barriers.append(tuple(map(backend.to_host, (positions[0], letters, positions[1]))))  # type: ignore[arg-type]
        self._kept = text[size - _WORD - self.length % _WORD :].copy()
        return text

    def finish(self, contig_starts: NDArray[np.int64], contigs: tuple[Contig, ...]) -> Reference:
        """Return the reference of all chunks, after the end of the last contig. contig_starts: int64 [contigs + 1]."""
        starts, letters, ends = (np.concatenate(parts) for parts in zip(*self._barriers, strict=True))
        # The barrier before the first contig, which ends at 0, is dropped; the last barrier has no end yet.
        starts, letters = np.append(starts, self.length), np.append(letters, np.uint8(0))
        ends = np.append(ends[1:], (self.length, LAST_BARRIER_END))
        blocks = self._backend.empty(barrier_words(self.length), np.uint64)
        bounds = {"barrier_starts": self._backend.to_device(starts), "barrier_ends": self._backend.to_device(ends)}
        self._backend.launch(_MARK, len(blocks), **bounds, blocks=blocks, barriers=len(starts))
        self._words.resize(packed_words(self.length), refcheck=False)
        return Reference(self._words, self._backend.to_host(blocks), starts, ends, letters, contig_starts, contigs)

    def _find_header_blocks(self, ends: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which blocks start inside a header, bool [blocks]. ends: uint8, BlockEnd of each block."""
        known = np.maximum.accumulate(np.where(ends == _UNCHANGED, 0, np.arange(1, len(ends) + 1)))
        after = np.where(known > 0, ends[known - 1] == _IN_HEADER, self._in_header)
        before = np.append(self._in_header, after[:-1])
        self._in_header = bool(after[-1])
        return before

    def _store(self, first: int, words: NDArray[np.uint64]) -> None:
        """Store packed words from index `first` on, and enlarge the array if it is too small."""
        if first + len(words) > len(self._words):
            # resize() remaps the memory without copying.
            self._words.resize(max(first + len(words), int(len(self._words) * fasta.GROWTH)), refcheck=False)
        self._words[first : first + len(words)] = words


class _Contigs:
    """The names and start positions of the contigs so far."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._starts: list[int] = []
        # The parts of a header that may continue in the next chunk, and the start of its contig.
        self._open: tuple[list[bytes], int] | None = None

    def add(self, buffer: bytearray, size: int, found: _ChunkText) -> None:
        """Add the contigs of the headers in a chunk, buffer[1:size]; raise DataError for the first error in it."""
        headers = found.headers[: np.searchsorted(found.headers[:, 0], size if found.bad is None else found.bad)]
        first = int(found.headers[0, 0]) if len(found.headers) else size
        sequence = 1
        if self._open:
            sequence = self._continue_header(buffer, first)
        elif not self._names:
            fasta.expect_no_sequence(self._path, bytes(buffer[1:first]))
        for header_start, header_end, contig_start in headers.tolist():
            header, sequence = bytes(buffer[header_start + 1 : header_end]), header_end
            if header_end == size:
                self._open = [header], found.origin + contig_start
            else:
                self._add_header(header, found.origin + contig_start)
        if found.bad is not None:
            start = int(headers[-1, 2]) if len(headers) else self._starts[-1] - found.origin
            before = max(found.kept, start) - start
            wrong = bytes(buffer[sequence : found.bad]).translate(None, LINE_BREAKS)
            character = bytes(buffer[found.bad : found.bad + 1])
            raise fasta.invalid_letter(self._record(), before + len(wrong) + 1, character, Alphabet.NUCLEOTIDES)

    def expect_some(self) -> None:
        """Raise DataError if there was no header."""
        if not self._names and not self._open:
            raise DataError(f"{self._path}: {fasta.EMPTY_FILE}")

    def finish(self, length: int) -> tuple[Sequence[str], NDArray[np.int64]]:
        """End the last contig at position `length`; return the names and the contig starts, int64 [contigs + 1]."""
        self._end_contig(length)
        names = [name.decode("utf-8", "surrogateescape") for name in self._names]
        return names, np.array([*self._starts, length], np.int64)

    def _continue_header(self, buffer: bytearray, stop: int) -> int:
        """Append buffer[1:stop], up to a newline, to the open header; add its contig if it ends; return its end."""
        assert self._open
        parts, start = self._open
        end = buffer.find(b"\n", 1, stop)
        parts.append(bytes(buffer[1 : stop if end < 0 else end]))
        if end < 0:
            return stop
        self._open = None
        self._add_header(b"".join(parts), start)
        return end

    def _add_header(self, header: bytes, start: int) -> None:
        """Add the contig that starts at position `start`; raise DataError if its name is invalid or repeated."""
        if self._names:
            self._end_contig(start)
        name, number = fasta.record_name(self._path, len(self._names) + 1, header), len(self._names) + 1
        self._names.append(name)
        self._starts.append(start)
        found = fasta.CONTIG_NAME.match(name)
        valid = found.end() if found else 0
        if valid < len(name):
            wrong = f"{decode_name(name[valid : valid + 1])!r} at character {valid + 1}"
            raise DataError(f"{self._record()}: expected a contig name allowed in SAM, found {wrong}")
        earlier = self._numbers.setdefault(name, number)
        if earlier != number:
            raise DataError(f"{self._record()}: record {earlier} has the same name")

    def _end_contig(self, next_start: int) -> None:
        """Raise DataError if the last contig is empty or too long; next_start: start of the next contig."""
        length = next_start - 1 - self._starts[-1]
        if not length:
            raise DataError(f"{self._record()}: expected a sequence, found an empty contig")
        if length > MAX_CONTIG_BASES:
            expected = f"expected at most {MAX_CONTIG_BASES:,} bases, SAM's maximum"
            raise DataError(f"{self._record()}: {expected}, found {length:,}")

    def _record(self) -> str:
        return fasta.describe_record(self._path, len(self._names), self._names[-1])
