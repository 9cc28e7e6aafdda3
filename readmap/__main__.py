"""`python -m readmap`, which is the command `readmap`."""

import gc
import os
import signal
import sys


def run() -> int:
    """Run the command of this process and end it."""
    _fill_descriptors()
    # Nothing is open yet that would have to be closed: an interrupt ends the process at once, without a traceback.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL) if _is_usual(signal.SIGINT) else None
    gc.disable()  # nothing of what is loaded is garbage, and to look for some takes a tenth of the time
    from readmap.driver import start_cuda_context

    start_cuda_context(sys.argv[1:])
    from readmap.cli import main

    if handler is not None:
        signal.signal(signal.SIGINT, handler)
    return main()


def _is_usual(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.default_int_handler


def _fill_descriptors() -> None:
    """Open the standard streams that the caller has closed: the next file would take their numbers, and their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(run())
