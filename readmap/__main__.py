"""The entry point of the command `readmap` and of `python -m readmap`."""

import gc
import os
import signal
import sys


def run() -> int:
    """Run the command in sys.argv and return its exit code."""
    _open_standard_streams()
    # While modules load, an interrupt ends the process at once: there is nothing to close, and no traceback to show.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL) if _has_default_handler(signal.SIGINT) else None
    gc.disable()  # modules contain no garbage, and collections take a tenth of the loading time
    from readmap.driver import start_cuda_context

    start_cuda_context(sys.argv[1:])
    from readmap.cli import main

    if handler is not None:
        signal.signal(signal.SIGINT, handler)
    return main()


def _has_default_handler(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.default_int_handler


def _open_standard_streams() -> None:
    """Open /dev/null for each standard stream that is closed, so that no file takes descriptor 0, 1 or 2."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(run())
