"""NVIDIA's driver, before CuPy is there: a GPU's context is made while Python loads what a command needs.

A context takes a quarter of a second, in which the driver does not hold Python's lock.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence

#: Commands that compute on a GPU where there is one, and what says that one does not, or only tells of itself.
COMPUTING, NOT_COMPUTING = {"search", "map", "index", "compare", "scan"}, {"--database", "--help"}

LIBRARY = "libcuda.so.1"


def start_cuda_context(arguments: Sequence[str]) -> None:
    """Have a thread make the context that a command will ask for, if any; arguments: those behind `readmap`.

    It is the one of the device that all who use it share. Whatever fails here fails again where it is told.
    """
    number = gpu_index(arguments)
    if number is not None:
        threading.Thread(target=_retain, args=(number,), name="readmap-context", daemon=True).start()


def gpu_index(arguments: Sequence[str]) -> int | None:
    """The GPU that a command takes where there is one; None where it takes none."""
    if not arguments or arguments[0] not in COMPUTING or NOT_COMPUTING.intersection(arguments):
        return None
    named = re.findall(r"^--device(?:=|\n)(.*)$", "\n".join(arguments), re.MULTILINE)
    found = re.fullmatch(r"auto|cuda(?::(\d+))?", named[-1] if named else "auto")
    return int(found[1] or 0) if found else None


def _retain(number: int) -> None:
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if not (driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), number)):
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
