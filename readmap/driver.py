"""Create a GPU's context in the background, while Python loads the modules that a command needs.

Creating a context takes a quarter of a second, during which the driver does not hold the GIL.
"""

import ctypes
import re
import threading
from collections.abc import Sequence

#: Commands that use a GPU if there is one, and options with which they do not.
GPU_COMMANDS, OPTIONS_WITHOUT_GPU = {"search", "map", "index", "compare", "scan"}, {"--database", "--help"}

LIBRARY = "libcuda.so.1"


def start_cuda_context(arguments: Sequence[str]) -> None:
    """Start a thread that creates the primary context of the GPU that a command will use, if any.

    arguments: the command line after `readmap`. Errors are ignored: the command meets and reports them again.
    """
    index = gpu_index(arguments)
    if index is not None:
        threading.Thread(target=_retain_context, args=(index,), name="readmap-context", daemon=True).start()


def gpu_index(arguments: Sequence[str]) -> int | None:
    """Return the index of the GPU that a command will use if there is one, or None if it will use none."""
    if not arguments or arguments[0] not in GPU_COMMANDS or OPTIONS_WITHOUT_GPU.intersection(arguments):
        return None
    devices = re.findall(r"^--device(?:=|\n)(.*)$", "\n".join(arguments), re.MULTILINE)
    match = re.fullmatch(r"auto|cuda(?::(\d+))?", devices[-1] if devices else "auto")
    return int(match[1] or 0) if match else None


def _retain_context(index: int) -> None:
    """Create the primary context of a GPU, or do nothing if there is no driver or no such GPU."""
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if not (driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index)):
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
