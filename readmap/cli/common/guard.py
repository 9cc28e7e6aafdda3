"""Turn exceptions and signals into one line on standard error and an exit code."""

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
#: A shell adds this to the number of the signal that ended a process.
SIGNALLED = 128
#: Exit code of a command that SIGINT ended.
INTERRUPTED = SIGNALLED + signal.SIGINT
#: Exit code if the memory of the host is exhausted. The out-of-memory killer causes the same code, so schedulers that
#: retry with more memory do so here too.
OUT_OF_MEMORY = SIGNALLED + signal.SIGKILL
#: Signals that end a command. A signal that the caller ignores, as nohup does, stays ignored.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
#: Seconds between repetitions of a signal.
REPEAT_SECONDS = 0.02
#: Source files that take and release locks, or whose exceptions are dropped.
LOCKING = {*(module.__file__ for module in (threading, queue, weakref, _base, thread)), "<frozen importlib._bootstrap>"}

Result = TypeVar("Result")


def run_guarded(command: Callable[[], object], debug: bool) -> int:
    """Run a command, print its error in one line, and return its exit code.

    0: success; 1: invalid data or a failing machine; 2: usage; 137: not enough memory on the host; 128 + n: signal n.
    A broken pipe is 1 without a message, because whoever closed the pipe knows. debug: also print the traceback.
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
        code, message = _describe(error)
        _print(f"error: {message}", "\n" if isinstance(error, BackendError) else "")  # keep the lines of a compiler
    if code == INTERRUPTED:  # typer may have caught the exception
        code = SIGNALLED + interrupt.number
    if code - SIGNALLED in SIGNALS:
        number = signal.Signals(code - SIGNALLED)
        _print("interrupted" if number == signal.SIGINT else f"interrupted by {number.name}")
    return code


def _describe(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    if isinstance(error, UsageError):
        return MISUSED, str(error)
    if isinstance(error, ReadmapError):
        return FAILED, str(error)
    if isinstance(error, MemoryError):
        detail = f": {error}" if str(error) else ""
        if _is_device_memory(error):
            return FAILED, f"not enough GPU memory{detail}"
        return OUT_OF_MEMORY, f"not enough memory{detail}{_describe_available()}"
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return FAILED, reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return FAILED, "cannot start more threads: use fewer with -t"
    # Recognized by its method, because the class moved from click to typer.
    if message := getattr(error, "format_message", None):
        context = getattr(error, "ctx", None)
        return MISUSED, f"{message()} ({f'{context.command_path} ' if context else ''}--help shows the options)"
    reason = f"{type(error).__name__}: {error}"
    return FAILED, f"this is a bug in readmap, please report it with the output of --debug: {reason}"


def _describe_available() -> str:
    """Return the available memory as the end of a message; "" if it is unknown or there is no memory to find out."""
    with contextlib.suppress(MemoryError):
        from readmap.backend.machine import available_memory
        from readmap.formats.wording import format_bytes

        if (available := available_memory()) is not None:
            return f"; {format_bytes(available)} are available"
    return ""


def _is_device_memory(error: BaseException | None) -> bool:
    """Return True if the memory of a device is exhausted: CuPy's own error is the error or one of its causes."""
    while error is not None:
        if type(error).__module__.startswith("cupy"):
            return True
        error = error.__cause__
    return False


def _print(message: str, kept: str = "") -> None:
    """Print a line on standard error, if it is open, and escape control characters that are not in `kept`."""
    shown = "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in message)
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"readmap: {shown}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def signals_interrupt(interrupt: _Interrupt) -> Iterator[None]:
    """Let SIGNALS raise KeyboardInterrupt inside the context, as SIGINT does; ignore a second signal.

    Raises MemoryError if a thread could not start.
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
    failed_signal = next(iter(before), signal.SIGINT)
    watching = threading.Thread(target=interrupt.watch_threads, args=(failures, failed_signal), daemon=True)
    watching.start()
    hook, sys.unraisablehook = sys.unraisablehook, failures.put
    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    except Exception:
        if interrupt.is_over:
            raise KeyboardInterrupt from None  # the interrupted code has raised another exception
        raise
    finally:
        interrupt.is_over = True
        sys.unraisablehook = hook
        failures.put(None)
        watching.join()
        signal.set_wakeup_fd(previous)
        os.close(writer)
        repeating.join()
        os.close(reader)
        for number, handler in before.items():
            signal.signal(number, handler)
        if interrupt.is_without_memory:
            raise MemoryError("to start a thread") from None


class _Interrupt:
    """A signal handler that raises KeyboardInterrupt once.

    is_over: the exception has been raised, or must not be raised any more. is_without_memory: a thread could not start.
    number: the last signal that was handled.

    A signal does not end a wait for a lock if it arrives just before the main thread starts to wait, because Python
    calls the handler only after the wait. An exception inside the library's own code for locks can leave a lock taken
    forever, or be lost. So a signal is repeated until it is handled, and inside such code it is handled only if the
    thread has not moved since the last repetition.
    """

    def __init__(self) -> None:
        self.is_over = self.is_without_memory = False
        self.number: int = signal.SIGINT
        self._position: tuple[FrameType, int] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.is_over:
            return
        if frame is not None and frame.f_code.co_filename in LOCKING:
            position, self._position = self._position, (frame, frame.f_lasti)
            if position != self._position:
                return
        self.is_over = True
        self.number = number
        self._position = None
        raise KeyboardInterrupt

    def watch_threads(self, failures: queue.SimpleQueue[UnraisableHookArgs | None], number: signal.Signals) -> None:
        """Send a signal if a thread died before its first line, because its starter would wait forever.

        failures: arguments of sys.unraisablehook, until None. This is CPython's issue 140746; the dead thread has no
        memory to call a hook in Python either.
        """
        main = _main_thread()
        while (failure := failures.get()) is not None:
            if isinstance(getattr(failure.object, "__self__", None), threading.Thread):
                self.is_without_memory = True
                signal.pthread_kill(main, number)
            else:
                sys.__unraisablehook__(failure)

    def repeat(self, reader: int, numbers: Container[int]) -> None:
        """Send the main thread each signal of `numbers` that Python writes to the pipe, until it is handled."""
        main = _main_thread()
        while caught := os.read(reader, 1):
            while caught[0] in numbers and not self.is_over:
                time.sleep(REPEAT_SECONDS)
                if not self.is_over:
                    signal.pthread_kill(main, caught[0])


def _main_thread() -> int:
    number = threading.main_thread().ident
    assert number is not None
    return number


def in_background(work: Callable[[], Result]) -> Result:
    """Return or raise the result of `work`, run in another thread, so that signals are handled during long C calls."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised again in the calling thread
            future.set_exception(error)

    threading.Thread(target=run, name="readmap-work", daemon=True).start()
    return future.result()


def exit_process(code: int) -> NoReturn:
    """End the process immediately, by the signal that interrupted the command if the code is 128 + n.

    A regular exit would wait for threads that may wait for input forever, and takes time to finalize Python and CuPy.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if code - SIGNALLED in SIGNALS:
        signal.signal(code - SIGNALLED, signal.SIG_DFL)
        os.kill(os.getpid(), code - SIGNALLED)
    os._exit(code)
