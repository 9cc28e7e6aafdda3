"""Run cases in worker processes: if a case crashes or hangs its worker, it is counted, and a new worker continues.

    this process     a worker: cases 0 to 999          another: 1,000 to 1,999
    counts      <-   0 ok, 1 ok, 2 refused, ...   <-   1,000 ok, ...
                     (killed by a signal: case 3 crashed; a new worker begins with case 4)

The last outcome that a worker has sent determines the case it is running, so no other state is shared.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import itertools
import json
import os
import re
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from attacks.outcomes import Outcome, Verdict

PR_SET_PDEATHSIG = 1

#: Lines of the messages of sanitizers and of faulthandler that name the error.
ERROR_LINES = re.compile(r"^.*(?:ERROR: AddressSanitizer|runtime error|Fatal Python error).*$", re.MULTILINE)


class Attack(Protocol):
    """An attack, whose cases are determined by their index.

    batch: cases per worker. limit: seconds per case.
    """

    batch: int
    limit: float

    def row(self, case_index: int) -> str:
        """Return the table row that counts a case, without running the case."""

    def run(self, case_index: int) -> Outcome:
        """Run a case in this process or a child of it, and return its outcome."""

    def keep(self, case_index: int, folder: Path) -> None:
        """Write the input of a case to a folder."""


def run_cases(
    attack: Attack, first: int, cases: int | None, seconds: float | None, workers: int, logs: Path
) -> Iterator[tuple[int, Outcome]]:
    """Yield the indices and outcomes of cases from `first` on, in any order.

    cases: the number of cases, or None for all cases that start within `seconds`.
    """
    ends = None if seconds is None else time.monotonic() + seconds
    stop = None if cases is None else first + cases
    batches = iter(range(first, stop, attack.batch) if stop is not None else itertools.count(first, attack.batch))
    running: dict[int, _Worker] = {}
    try:
        while True:
            while len(running) < workers and (ends is None or time.monotonic() < ends):
                start = next(batches, None)
                if start is None:
                    break
                end = start + attack.batch if stop is None else min(start + attack.batch, stop)
                _start_worker(running, attack, start, end, logs)
            if not running:
                return
            readable, _, _ = select.select(list(running), [], [], 0.2)
            for reader in list(running):
                worker = running[reader]
                if reader in readable:
                    yield from worker.outcomes()
                if worker.is_over or (ends is not None and time.monotonic() > ends + attack.limit):
                    del running[reader]
                elif worker.seconds > attack.limit or worker.has_ended:
                    del running[reader]
                    yield worker.next, worker.broken()
                    if worker.next + 1 < worker.end and (ends is None or time.monotonic() < ends):
                        _start_worker(running, attack, worker.next + 1, worker.end, logs)
    finally:
        for worker in running.values():
            worker.kill()


def _start_worker(running: dict[int, _Worker], attack: Attack, start: int, end: int, logs: Path) -> None:
    worker = _Worker(attack, start, end, logs)
    running[worker.reader] = worker


class _Worker:
    """A process that runs the cases from `next` to `end`, and sends each outcome."""

    def __init__(self, attack: Attack, start: int, end: int, logs: Path) -> None:
        self.next, self.end = start, end
        self._attack, self._log = attack, logs / f"worker-{start}.log"
        self._rest, self.has_ended = b"", False
        self._last_outcome = time.monotonic()
        sys.stdout.flush()
        self.reader, writer = os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(self.reader)
            _work(attack, range(start, end), writer, self._log)
        os.close(writer)

    @property
    def is_over(self) -> bool:
        """True if all of its cases have ended."""
        if self.next < self.end:
            return False
        self.kill()
        self._log.unlink(missing_ok=True)
        return True

    @property
    def seconds(self) -> float:
        """Seconds since the last outcome."""
        return time.monotonic() - self._last_outcome

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcomes that have arrived."""
        data = os.read(self.reader, 1 << 16)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            attack, verdict, reason = json.loads(line)
            self._last_outcome = time.monotonic()
            self.next += 1
            yield self.next - 1, Outcome(attack, Verdict(verdict), reason)

    def broken(self) -> Outcome:
        """Return the outcome of the case in which the worker crashed or hangs."""
        row = self._attack.row(self.next)
        if not self.has_ended:
            self.kill()
            return Outcome(row, Verdict.HUNG, f"no end after {self._attack.limit:g} s")
        code = self.kill()
        log = self._log.read_text(errors="replace") if self._log.exists() else ""
        errors = ERROR_LINES.findall(log)
        return Outcome(row, Verdict.CRASHED, f"{describe_end(code)}{f': {errors[0]}' if errors else ''}")

    def kill(self) -> int:
        """Kill the worker and its children; return its exit code, or the negative number of the signal."""
        for end in (os.killpg, os.kill):  # it may not lead a process group yet
            with contextlib.suppress(ProcessLookupError):
                if not self.has_ended:
                    end(self._process, signal.SIGKILL)
        _, status = os.waitpid(self._process, 0)
        os.close(self.reader)
        return os.waitstatus_to_exitcode(status)


def _work(attack: Attack, case_indices: range, writer: int, log: Path) -> None:
    """Run cases in this process; never return."""
    os.setsid()
    _die_with_parent()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 2)
    faulthandler.enable(descriptor)
    for case_index in case_indices:
        try:
            outcome = attack.run(case_index)
        except BaseException as error:  # any exception is the end of the case
            outcome = Outcome(attack.row(case_index), Verdict.CRASHED, _in_a_line(error))
        fields = [outcome.attack, outcome.verdict, outcome.reason]
        os.write(writer, json.dumps(fields).encode() + b"\n")
    os._exit(0)


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _in_a_line(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "readmap/" in frame.filename]
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def describe_end(code: int) -> str:
    """Describe the end of a process."""
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


@dataclass(frozen=True)
class Ended:
    """The end of a child. code: its exit code, the negative number of a signal, or None if it hung."""

    code: int | None
    output: bytes
    errors: str


def forked(function: Callable[[], int], folder: Path, limit: float) -> Ended:
    """Run a function in a child process in `folder`, without standard input; return how it ended and its output.

    The function's value is the exit code. The child has a session of its own, which is killed if the child hangs.
    """
    out, err = (os.memfd_create(name) for name in ("output", "errors"))
    _let_threads_end()
    process = os.fork()
    if not process:
        _run_child(function, folder, out, err)
    pidfd = os.pidfd_open(process)
    has_ended = bool(select.select([pidfd], [], [], limit)[0])
    os.close(pidfd)
    if not has_ended:
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    texts = []
    for descriptor in (out, err):
        texts.append(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        os.close(descriptor)
    return Ended(os.waitstatus_to_exitcode(status) if has_ended else None, texts[0], texts[1].decode(errors="replace"))


def _let_threads_end() -> None:
    """Wait for joined threads: a thread that is ending may hold the allocator's lock, which a child would inherit."""
    for _ in range(100):
        if len(os.listdir("/proc/self/task")) <= threading.active_count():
            return
        time.sleep(0.001)


def _run_child(function: Callable[[], int], folder: Path, out: int, err: int) -> None:
    code = 70
    try:
        os.setsid()
        _die_with_parent()
        os.chdir(folder)
        for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(descriptor, target)
        faulthandler.enable(2)
        code = function()
        threading._shutdown()  # type: ignore[attr-defined]
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
