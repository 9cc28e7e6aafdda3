"""One contract, two devices: the CPU's threads and a CUDA GPU run the same kernels."""

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.devices import Gpus, cuda_available, device_names, open_backend, open_backends, parse_gpus

__all__ = [
    "Array",
    "Backend",
    "Gpus",
    "Kernel",
    "cuda_available",
    "device_names",
    "open_backend",
    "open_backends",
    "parse_gpus",
]
