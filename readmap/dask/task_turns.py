"""The order of a worker's tasks: one uses the device while the next one reads ahead or the one before writes.

task 0    M M M M M W
task 1      r r . . M M M M W          r: reads   .: waits   M: uses the device   W: has released it
task 2                r r . M M M
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

from readmap.run.chunk_turns import DeviceLease


class TaskTurns:
    """What a worker's tasks wait for: the right to read and the device. One task at a time has each of them. changed:
    guards the other attributes. order: the tasks that have begun to read and have not had the device, in the order in
    which they get it. active: the number of tasks that have begun and not ended."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.reader: TaskTurn | None = None
        self.holder: TaskTurn | None = None
        self.order = deque[TaskTurn]()
        self.active = 0

    @contextlib.contextmanager
    def read_ahead(self) -> Iterator[TaskTurn]:
        """Wait for the right to read, and keep it until the task ends or calls `end_reading`; yield its turn."""
        turn = TaskTurn(self)
        with self.changed:
            self.changed.wait_for(lambda: self.reader is None)
            self.reader = turn
            self.order.append(turn)
            self.active += 1
        try:
            yield turn
        finally:
            turn.end_reading()
            turn.release_device()
            with self.changed:
                if turn in self.order:
                    self.order.remove(turn)
                self.active -= 1
                self.changed.notify_all()

    @contextlib.contextmanager
    def take(self) -> Iterator[TaskTurn]:
        """Wait for the right to read and for the device; yield the task's turn."""
        with self.read_ahead() as turn:
            turn.wait_for_device()
            yield turn


class TaskTurn(DeviceLease):
    """The turn of a task. Calling a method again has no effect."""

    def __init__(self, turns: TaskTurns) -> None:
        self._turns = turns

    def is_ahead(self) -> bool:
        """Return True if an earlier task uses the device or waits for it."""
        with self._turns.changed:
            return not self._may_hold()

    def wait_alone(self) -> None:
        """Wait, while this task reads, until all earlier tasks have ended."""
        with self._turns.changed:
            self._turns.changed.wait_for(lambda: self._turns.active == 1)

    def wait_for_device(self) -> None:
        """Wait until all earlier tasks have released the device, and take it."""
        with self._turns.changed:
            self._turns.changed.wait_for(self._may_hold)
            if self._turns.holder is None:
                self._turns.holder = self._turns.order.popleft()

    def end_reading(self) -> None:
        """Let the next task read."""
        with self._turns.changed:
            if self._turns.reader is self:
                self._turns.reader = None
                self._turns.changed.notify_all()

    def release_device(self) -> None:
        """Let the next task use the device, while this one does what needs little of it."""
        with self._turns.changed:
            if self._turns.holder is self:
                self._turns.holder = None
                self._turns.changed.notify_all()

    def _may_hold(self) -> bool:
        return self._turns.holder is self or (self._turns.holder is None and self._turns.order[0] is self)
