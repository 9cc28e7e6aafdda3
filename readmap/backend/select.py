"""Which device a name stands for."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from readmap.backend.base import Backend, unavailable
from readmap.backend.cpu import CpuBackend
from readmap.errors import UsageError

#: Of `Gpus`: as many as there are.
ALL = "all"

#: Which GPUs work together: so many, or those of these numbers, or ALL.
Gpus = int | str | Sequence[int]


@functools.cache
def cuda_available() -> str | None:
    """None where a CUDA GPU can be used, else the reason why not, with what to install."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed: pip install 'readmap[cuda13]' (or cuda12, after your driver's CUDA)"
    try:
        if not cupy.cuda.is_available():
            return "CuPy finds no NVIDIA driver or no GPU: install the driver, or run where there is a GPU"
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own errors differ by what is broken below it
        return f"CuPy cannot reach the GPU: {error}"
    return None


def device_names(device: str = "auto", gpus: Gpus = 1) -> list[str]:
    """The devices that work together, the GPUs among them where `auto` finds some, or `cuda` is named.

    gpus: how many, the first ones; the numbers of some; ALL.

    Raises BackendError where there are not so many, UsageError where several are wanted of another device.
    """
    if device not in ("auto", "cuda"):
        if gpus not in (1, ALL):
            raise UsageError(f"--gpus {_shown(gpus)}: not with --device {device}, which is one device")
        return [device]
    if (reason := cuda_available()) is not None:
        if gpus in (1, ALL):
            return [device]  # the CPU, or an error
        raise unavailable("cuda", reason)
    import cupy

    found = cupy.cuda.runtime.getDeviceCount()
    numbers = range(gpus if isinstance(gpus, int) else found) if isinstance(gpus, str | int) else gpus
    if max(numbers) >= found:
        raise unavailable(f"cuda:{max(numbers)}", f"this machine has {found} GPU(s), numbered from 0")
    return [f"cuda:{number}" for number in numbers]


def parse_gpus(text: str) -> Gpus:
    """What --gpus says: a number of GPUs, `all`, or with a comma a list of their numbers; raises UsageError else."""
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


def _shown(gpus: Gpus) -> str:
    return str(gpus) if isinstance(gpus, str | int) else ",".join(map(str, gpus)) + ("," if len(gpus) == 1 else "")


def open_backend(device: str = "auto", threads: int | None = None, memory_limit: int | None = None) -> Backend:
    """The backend of `auto`, `cpu`, `cuda` or `cuda:N`; auto takes the GPU where there is one.

    memory_limit: bytes of a GPU's memory that may be used.

    Raises BackendError where the device cannot be used, UsageError where the name is none of these.
    """
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
        raise UsageError(f"--device {device}: expected auto, cpu, cuda or cuda:N")
    if kind == "cpu" or (kind == "auto" and cuda_available() is not None):
        return CpuBackend(threads)
    reason = cuda_available()
    if reason is not None:
        raise unavailable(device, reason)
    from readmap.backend.cuda import CudaBackend

    return CudaBackend(int(number or 0), threads, memory_limit)


def open_backends(
    device: str = "auto", gpus: Gpus = 1, threads: int | None = None, memory_limit: int | None = None
) -> list[Backend]:
    """The backends of device_names, as open_backend opens each; the thread uses the first one."""
    # It uses whichever is opened last.
    opened = [open_backend(name, threads, memory_limit) for name in reversed(device_names(device, gpus))]
    return opened[::-1]
