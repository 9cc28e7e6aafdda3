"""The tasks of a worker in turns: one has its device, while the next one reads ahead, or the one before writes its last
records.

task 0    M M M M M W
task 1      r r . . M M M M W          r: reads   .: waits   M: has the device   W: has given way
task 2                r r . M M M
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

from readmap.run.device_lease import DeviceLease


class Turns:
    """What a worker's tasks wait for: two things that one task has at a time, its turn to read and its device.

    changed: with which the others are seen. reader, holder: who reads, and who has the device. order: who have begun to
    read, and have not had the device, which they are given in this order. begun: how many have begun, and not ended.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.reader: Turn | None = None
        self.holder: Turn | None = None
        self.order = deque[Turn]()
        self.begun = 0

    @contextlib.contextmanager
    def read_ahead(self) -> Iterator[Turn]:
        """The turn of a task to read, until it ends or says that it has read; the device it waits for itself."""
        turn = Turn(self)
        with self.changed:
            self.changed.wait_for(lambda: self.reader is None)
            self.reader = turn
            self.order.append(turn)
            self.begun += 1
        try:
            yield turn
        finally:
            turn.end_reading()
            turn.release_device()
            with self.changed:
                if turn in self.order:
                    self.order.remove(turn)
                self.begun -= 1
                self.changed.notify_all()

    @contextlib.contextmanager
    def take(self) -> Iterator[Turn]:
        """The same, of a task that has the device from the begin on."""
        with self.read_ahead() as turn:
            turn.wait_for_device()
            yield turn


class Turn(DeviceLease):
    """The turn of a task."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def is_ahead(self) -> bool:
        """Whether a task before has the device, or waits for it."""
        with self._turns.changed:
            return not self._may_hold()

    def wait_alone(self) -> None:
        """Wait, while it reads, until the tasks before have ended."""
        with self._turns.changed:
            self._turns.changed.wait_for(lambda: self._turns.begun == 1)

    def wait_for_device(self) -> None:
        """Have the device, once the tasks before have had it; once is enough."""
        with self._turns.changed:
            self._turns.changed.wait_for(self._may_hold)
            if self._turns.holder is None:
                self._turns.holder = self._turns.order.popleft()

    def end_reading(self) -> None:
        """Let the next task read; once is enough."""
        with self._turns.changed:
            if self._turns.reader is self:
                self._turns.reader = None
                self._turns.changed.notify_all()

    def release_device(self) -> None:
        """Let the next task have the device, while this one does what needs little of it; once is enough."""
        with self._turns.changed:
            if self._turns.holder is self:
                self._turns.holder = None
                self._turns.changed.notify_all()

    def _may_hold(self) -> bool:
        return self._turns.holder is self or (self._turns.holder is None and self._turns.order[0] is self)
