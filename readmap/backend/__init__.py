"""One contract, two devices: the CPU's threads and a CUDA GPU run the same kernels."""

from readmap.backend.base import Array, Backend, Kernel
from readmap.backend.select import cuda_available, device_names, open_backend

__all__ = ["Array", "Backend", "Kernel", "cuda_available", "device_names", "open_backend"]
