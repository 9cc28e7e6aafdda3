"""From exceptions and signals to one line on standard error and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Container, Iterator
from concurrent.futures import Future, _base, thread
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from readmap.errors import BackendError, ReadmapError, UsageError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

FAILED, MISUSED = 1, 2

#: What a shell adds to the number of the signal that ended a process.
SIGNALLED = 128

#: Of SIGINT.
INTERRUPTED = SIGNALLED + signal.SIGINT

#: Where the host's memory ran out: what is told of a process that the system ended for it, so that schedulers which
#: give more memory then do so here too.
OUT_OF_MEMORY = SIGNALLED + signal.SIGKILL

#: Signals that end a command as Ctrl-C does; one that the caller ignores, as nohup does, stays ignored.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)

#: Between a signal and its repetition.
REPEAT_SECONDS = 0.02

#: Files of code that takes and releases locks, or that runs where exceptions are dropped.
LOCKING = {
    *(module.__file__ for module in (threading, queue, weakref, _base, thread)),
    "<frozen importlib._bootstrap>",
}

Result = TypeVar("Result")


def guarded(command: Callable[[], object], debug: bool) -> int:
    """The exit code of a command: 0, 1 for bad data or a failing machine, 2 for usage, 137 where the host's memory
    does not suffice, 128 and its number for a signal.

    A broken pipe gives the code 1 and no line: whoever closed it knows, and what they have is not all.
    """
    interrupt = _Interrupt()
    try:
        with signals_interrupt(interrupt):
            returned = command()
            if sys.stdout is not None:
                sys.stdout.flush()
        code = returned if isinstance(returned, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else FAILED
    except BrokenPipeError:
        code = FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        code, message = _described(error)
        _print(f"error: {message}", "\n" if isinstance(error, BackendError) else "")  # a compiler's lines are kept
    if code == INTERRUPTED:  # typer may have made it of the exception
        code = SIGNALLED + interrupt.number
    if code - SIGNALLED in SIGNALS:
        number = signal.Signals(code - SIGNALLED)
        _print("interrupted" if number == signal.SIGINT else f"interrupted by {number.name}")
    return code


def _described(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and what to say of it."""
    if isinstance(error, UsageError):
        return MISUSED, str(error)
    if isinstance(error, ReadmapError):
        return FAILED, str(error)
    if isinstance(error, MemoryError):
        told = f": {error}" if str(error) else ""
        if _is_of_device(error):
            return FAILED, f"the memory of the GPU does not suffice{told}"
        return OUT_OF_MEMORY, f"the memory does not suffice{told}{_available()}"
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return FAILED, reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return FAILED, "no more threads can be started: -t asks for fewer"
    # Known by its method and not by its class, which moved from click to typer.
    if message := getattr(error, "format_message", None):
        context = getattr(error, "ctx", None)
        return MISUSED, f"{message()} ({f'{context.command_path} ' if context else ''}--help says more)"
    return (
        FAILED,
        f"this is a bug of readmap, please report it with what --debug shows: {type(error).__name__}: {error}",
    )


def _available() -> str:
    """How much memory there is, in words; nothing where that is not known, or takes more than there is."""
    with contextlib.suppress(MemoryError):
        from readmap.backend.machine import available_memory
        from readmap.formats.wording import format_bytes

        if (available := available_memory()) is not None:
            return f"; {format_bytes(available)} are available"
    return ""


def _is_of_device(error: BaseException | None) -> bool:
    """Whether it was a device's memory that ran out: CuPy has an error of its own, which others may follow."""
    while error is not None:
        if type(error).__module__.startswith("cupy"):
            return True
        error = error.__cause__
    return False


def _print(message: str, kept: str = "") -> None:
    """Print on standard error, where there is one, without control characters other than those that are kept."""
    shown = "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in message)
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"readmap: {shown}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def signals_interrupt(interrupt: _Interrupt) -> Iterator[None]:
    """Meanwhile SIGNALS raise KeyboardInterrupt, as SIGINT does; a second signal is ignored.

    Raises MemoryError where a thread found no memory to begin.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) in usual}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    repeating = threading.Thread(target=interrupt.repeat, args=(reader, before), name="readmap-signals", daemon=True)
    repeating.start()
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    failures: queue.SimpleQueue[UnraisableHookArgs | None] = queue.SimpleQueue()
    hearing = threading.Thread(target=interrupt.hear, args=(failures, next(iter(before), signal.SIGINT)), daemon=True)
    hearing.start()
    hook, sys.unraisablehook = sys.unraisablehook, failures.put
    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    except Exception:
        if interrupt.over:
            raise KeyboardInterrupt from None  # the exception is what the interrupt became in code that it broke off
        raise
    finally:
        interrupt.over = True
        sys.unraisablehook = hook
        failures.put(None)
        hearing.join()
        signal.set_wakeup_fd(previous)
        os.close(writer)
        repeating.join()
        os.close(reader)
        for number, handler in before.items():
            signal.signal(number, handler)
        if interrupt.without_memory:
            raise MemoryError("to start a thread") from None


class _Interrupt:
    """A signal handler that raises KeyboardInterrupt once.

    over: whether it has, or is not to any more; without_memory: whether that is because a thread could not begin.
    number: of the signal that it was, or would have been.

    A signal does not end a wait for a lock that the main thread is about to begin, and that Python calls the handler
    only behind. And an exception in the library's own code for locks can leave one locked for ever, or be lost.
    So a signal is repeated until it is heard, and in such code it is heard only where the thread stands still.
    """

    def __init__(self) -> None:
        self.over = self.without_memory = False
        self.number: int = signal.SIGINT
        self._place: tuple[FrameType, int] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        if self.over:
            return
        if frame is not None and frame.f_code.co_filename in LOCKING:
            place, self._place = self._place, (frame, frame.f_lasti)
            if place != self._place:
                return
        self.over = True
        self.number = number
        self._place = None
        raise KeyboardInterrupt

    def hear(self, failures: queue.SimpleQueue[UnraisableHookArgs | None], number: signal.Signals) -> None:
        """Have a signal come where a thread died before its first line, since whoever started it waits for ever.

        CPython's issue 140746. failures: what the hook for exceptions that nobody can catch was called with, until
        None; such a thread has no memory for a hook in Python either.
        """
        main = _main_thread()
        while (failure := failures.get()) is not None:
            if isinstance(getattr(failure.object, "__self__", None), threading.Thread):
                self.without_memory = True
                signal.pthread_kill(main, number)
            else:
                sys.__unraisablehook__(failure)

    def repeat(self, reader: int, numbers: Container[int]) -> None:
        """Send the main thread each signal of `numbers` that Python writes to the pipe, until it is heard."""
        main = _main_thread()
        while caught := os.read(reader, 1):
            while caught[0] in numbers and not self.over:
                time.sleep(REPEAT_SECONDS)
                if not self.over:
                    signal.pthread_kill(main, caught[0])


def _main_thread() -> int:
    number = threading.main_thread().ident
    assert number is not None
    return number


def in_background(work: Callable[[], Result]) -> Result:
    """What `work` returns or raises. Another thread does it: in a long call of C, this one would not hear signals."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # it crosses to the caller's thread
            future.set_exception(error)

    threading.Thread(target=run, name="readmap-work", daemon=True).start()
    return future.result()


def leave(code: int) -> NoReturn:
    """End the process at once; by the signal that ended its work, if one did, so that a caller sees which.

    Threads may wait for an input that never comes, and taking Python and CuPy apart takes longer than letting go.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if code - SIGNALLED in SIGNALS:
        signal.signal(code - SIGNALLED, signal.SIG_DFL)
        os.kill(os.getpid(), code - SIGNALLED)
    os._exit(code)
