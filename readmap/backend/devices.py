"""Choose and open devices by the names given to --device and --gpus."""

import functools
import re
from collections.abc import Sequence

from readmap.backend.base import Backend, unavailable
from readmap.backend.cpu import CpuBackend
from readmap.errors import UsageError

ALL = "all"  # the value of `Gpus` for all GPUs of the machine

#: GPUs that work together: a count (GPUs 0 to count - 1), a sequence of indices, or ALL.
Gpus = int | str | Sequence[int]


@functools.cache
def cuda_available() -> str | None:
    """Return None if a CUDA GPU is usable, else the reason, including what to install."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed: pip install 'readmap[cuda13]' (or cuda12, after your driver's CUDA)"
    try:
        if not cupy.cuda.is_available():
            return "CuPy finds no NVIDIA driver or no GPU: install the driver, or run on a machine with a GPU"
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # the type of CuPy's error depends on what is broken
        return f"CuPy cannot reach the GPU: {error}"
    return None


def device_names(device: str = "auto", gpus: Gpus = 1) -> list[str]:
    """Return the names of the devices that work together: cuda:N for each GPU if `device` is cuda or auto and one
    is present, else `device` itself.

    Raises BackendError if a GPU is missing, UsageError if several devices are requested of one that is no GPU.
    """
    if device not in ("auto", "cuda"):
        if gpus not in (1, ALL):
            raise UsageError(f"--gpus {_as_option(gpus)}: not with --device {device}, which is one device")
        return [device]
    if (reason := cuda_available()) is not None:
        if gpus in (1, ALL):
            return [device]  # the CPU, or an error
        raise unavailable("cuda", reason)
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    indices = range(gpus if isinstance(gpus, int) else count) if isinstance(gpus, str | int) else gpus
    if max(indices) >= count:
        raise unavailable(f"cuda:{max(indices)}", f"this machine has {count} GPU(s), numbered from 0")
    return [f"cuda:{index}" for index in indices]


def parse_gpus(text: str) -> Gpus:
    """Parse --gpus: a count, `all`, or a list of indices with a comma (`0,` for one). Raises UsageError if invalid."""
    text = text.strip()
    if text == ALL:
        return ALL
    if re.fullmatch(r"0*[1-9]\d{0,3}", text):
        return int(text)
    listed = re.fullmatch(r"(\d+(?:,\d+)*),?", text) if "," in text else None
    numbers = [int(number) for number in listed[1].split(",")] if listed else []
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(f"--gpus {text}: expected a number of GPUs, all, or different GPUs with a comma, as 0,3 or 0,")
    return numbers


def _as_option(gpus: Gpus) -> str:
    return str(gpus) if isinstance(gpus, str | int) else ",".join(map(str, gpus)) + ("," if len(gpus) == 1 else "")


def open_backend(device: str = "auto", threads: int | None = None, memory_limit: int | None = None) -> Backend:
    """Open the device `auto`, `cpu`, `cuda` or `cuda:N`; `auto` is the first GPU if any, else the CPU.

    threads: host threads; default, all processors that this process may use. memory_limit: bytes of GPU memory that may
    be used; default, all. Raises BackendError if the device cannot be used, UsageError if the name is invalid.
    """
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
        raise UsageError(f"--device {device}: expected auto, cpu, cuda or cuda:N")
    if kind == "cpu" or (kind == "auto" and cuda_available() is not None):
        return CpuBackend(threads)
    if (reason := cuda_available()) is not None:
        raise unavailable(device, reason)
    from readmap.backend.cuda import CudaBackend

    return CudaBackend(int(number or 0), threads, memory_limit)


def open_backends(
    device: str = "auto", gpus: Gpus = 1, threads: int | None = None, memory_limit: int | None = None
) -> list[Backend]:
    """Open the devices chosen by device_names; the first device becomes the calling thread's current device."""
    opened = [open_backend(name, threads, memory_limit) for name in reversed(device_names(device, gpus))]
    return opened[::-1]
