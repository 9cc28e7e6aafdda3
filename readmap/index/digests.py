"""MD5 of contigs, by threads, while the contigs are still read."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

#: Chunks for each thread whose letters may wait for it: a contig is digested by one thread, slower than it is read. In
#: all no more than make up for that in a contig of 250 Mbp.
CHUNKS_PER_THREAD, MAX_CHUNKS = 2, 12


class ContigDigests:
    """The MD5s of contigs whose letters come chunk by chunk; a context manager, whose end ends the threads."""

    def __init__(self, threads: int) -> None:
        # Each with a queue of its own, so that a contig's pieces stay in order while other contigs go on.
        self._workers = [ThreadPoolExecutor(1, "readmap-md5") for _ in range(threads)]
        self._turns = itertools.cycle(self._workers)
        self._results: list[Future[list[str]]] = []
        self._under_way: deque[list[Future[Any]]] = deque()
        self._worker: ThreadPoolExecutor | None = None
        self._md5 = hashlib.md5()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.shutdown(cancel_futures=True)

    def add(self, letters: NDArray[np.uint8], starts: Sequence[int]) -> None:
        """The letters of a chunk, which stay as they are; waits while too many chunks are under way.

        letters: uint8 [letters], with one byte that is none in front of each contig. starts: where contigs start; what
        stands before the first of them belongs to the contig before.
        """
        # Their result may be asked for again.
        for done in self._under_way.popleft() if self._is_full else ():
            done.result()
        jobs: list[Future[Any]] = []
        if self._worker:
            jobs.append(self._worker.submit(self._md5.update, (letters[: starts[0] - 1] if starts else letters).data))
        if starts:
            self._end_contig()
            self._results.append(next(self._turns).submit(_digest_all, letters, starts))
            self._worker, self._md5 = next(self._turns), hashlib.md5()
            jobs += [self._results[-1], self._worker.submit(self._md5.update, letters[starts[-1] :].data)]
        self._under_way.append(jobs)

    def finish(self) -> list[str]:
        """The MD5s of all contigs but the last one."""
        return [digest for result in self._results for digest in result.result()]

    @property
    def _is_full(self) -> bool:
        return len(self._under_way) == min(CHUNKS_PER_THREAD * len(self._workers), MAX_CHUNKS)

    def _end_contig(self) -> None:
        if self._worker:
            self._results.append(self._worker.submit(lambda md5: [md5.hexdigest()], self._md5))


def _digest_all(letters: NDArray[np.uint8], starts: Sequence[int]) -> list[str]:
    """Of the contigs that the letters hold whole: all that start but the last."""
    return [hashlib.md5(letters[start : end - 1].data).hexdigest() for start, end in itertools.pairwise(starts)]
