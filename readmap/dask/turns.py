"""The tasks of a worker in turns: one has its device and its threads, while the one before it writes its last records.

task 0    M M M M M W
task 1            . M M M M W        .: waits   M: has its turn   W: has given way
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """What a worker's tasks wait for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: Turn | None = None
        self._ending = 0

    @contextlib.contextmanager
    def take(self) -> Iterator[Turn]:
        """A turn, when no other task has one; it lasts until the task ends or gives way."""
        turn = Turn(self)
        with self._changed:
            self._changed.wait_for(lambda: self._holder is None)
            self._holder = turn
        try:
            yield turn
        finally:
            self.end(turn)
            with self._changed:
                self._ending -= 1
                self._changed.notify_all()

    def end(self, turn: Turn) -> None:
        """Let the next task have a turn, beside what the one of this turn has still to do; once is enough."""
        with self._changed:
            if self._holder is turn:
                self._holder = None
                self._ending += 1
                self._changed.notify_all()

    def wait_alone(self) -> None:
        """Wait, in a turn, until the tasks before have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ending)


class Turn:
    """The turn of a task."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def give_way(self) -> None:
        """Let the next task begin, while this one does what needs little of the device; once is enough."""
        self._turns.end(self)

    def wait_alone(self) -> None:
        """Wait until the tasks before have ended, which have given way."""
        self._turns.wait_alone()
