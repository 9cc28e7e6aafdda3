"""Chunks that several threads map at once: what one of them does out of turn, and what it does in its turn.

Out of turn a thread computes, with memory that a chunk in front may need. In turn it learns, counts and writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Stopped(Exception):
    """The run ends before the chunk's turn comes."""


class Preempted(Exception):
    """A chunk in front needs the memory: what has been computed is to be dropped, and computed anew in its turn."""


class Turns:
    """The order of chunks, which are numbered from 0; serial: none is worked on out of turn."""

    def __init__(self, serial: bool = False) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._at_work: set[int] = set()
        self._is_serial = serial
        self._is_stopped = False

    def stop(self) -> None:
        """End the run: whoever waits, and whoever comes to wait, is Stopped."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def begin(self, number: int) -> None:
        """Work on a chunk, out of turn unless memory has ended before. Raises Stopped."""
        self._wait(lambda: not self._is_serial or self._number == number)
        with self._changed:
            self._at_work.add(number)

    def wait(self, number: int) -> None:
        """Go on in the chunk's turn. Raises Stopped and Preempted."""
        self._wait(lambda: self._is_serial or self._number == number)
        if self._number != number:
            raise Preempted

    def drop(self, number: int) -> None:
        """Hold no memory any more, and go on in the chunk's turn. Raises Stopped."""
        with self._changed:
            self._at_work.discard(number)
            self._changed.notify_all()
        self._wait(lambda: self._number == number)

    def alone(self, number: int) -> bool:
        """Go on in the chunk's turn, where memory has ended, while no other holds any; from now on in single file.

        Returns whether others may have held some before. Raises Stopped and Preempted.
        """
        self.wait(number)
        with self._changed:
            were_others, self._is_serial = not self._is_serial, True
            self._changed.notify_all()
        self._wait(lambda: self._at_work <= {number})
        return were_others

    def end(self, number: int) -> None:
        """The chunk is done. Raises Stopped."""
        self.drop(number)
        with self._changed:
            self._number += 1
            self._changed.notify_all()

    def _wait(self, until: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or until())
            if self._is_stopped:
                raise Stopped


class Turn:
    """The turn of one chunk; waited: seconds for it."""

    def __init__(self, turns: Turns, number: int) -> None:
        self.waited = 0.0
        self._turns = turns
        self._number = number

    def __call__(self) -> None:
        """Wait for it. Raises Stopped and Preempted."""
        began = time.perf_counter()
        self._turns.wait(self._number)
        self.waited += time.perf_counter() - began

    def alone(self) -> bool:
        """Wait for it, and for all that others hold, where memory has ended: whether that may be more now.

        Raises Stopped and Preempted.
        """
        return self._turns.alone(self._number)


def only_turn() -> Turn:
    """That of a batch beside which there is no other."""
    return Turn(Turns(serial=True), 0)
