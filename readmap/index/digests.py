"""MD5 of contigs, computed by threads while the FASTA file is still being read."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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
        """Add the letters of a chunk, which must not change afterwards; waits if too many chunks are pending.

        letters: uint8 [letters], with one separator byte before each contig. starts: where contigs start; letters
            before the first start belong to the previous contig.
        """
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
