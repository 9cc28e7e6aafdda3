"""Which device a name stands for."""

from __future__ import annotations

import functools

from readmap.backend.base import Backend, unavailable
from readmap.backend.cpu import CpuBackend
from readmap.errors import UsageError


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


def device_names(device: str = "auto", gpus: int | None = None) -> list[str]:
    """The devices that work together: all GPUs where `auto` or `cuda` finds some, or the first `gpus` of them.

    Raises BackendError where there are not so many, UsageError where a number of GPUs is wanted of another device.
    """
    if device not in ("auto", "cuda"):
        if gpus is not None:
            raise UsageError(f"--gpus {gpus}: not with --device {device}, which is one device")
        return [device]
    if (reason := cuda_available()) is not None:
        if gpus is None:
            return [device]  # the CPU, or an error
        raise unavailable("cuda", reason)
    import cupy

    found = cupy.cuda.runtime.getDeviceCount()
    if gpus is not None and gpus > found:
        raise unavailable(f"cuda:{gpus - 1}", f"this machine has {found} GPU(s), numbered from 0")
    return [f"cuda:{number}" for number in range(gpus or found)]


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
