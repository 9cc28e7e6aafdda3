"""The options that say what a command may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from readmap.backend import Backend, open_backend
from readmap.backend.cpu import available_processors
from readmap.cli.common.options import number, option, parse_size, size

PANEL = "Resources"


def device_option(automatic: str) -> Any:
    """--device; automatic: what auto takes."""
    return option("--device", f"cpu, cuda, cuda:N or auto, {automatic} (default: auto).", "NAME", PANEL)


Device = Annotated[str, device_option("a GPU where there is one")]
Threads = Annotated[
    int | None,
    number("-t --threads", "CPU threads (default: the processors that this process may use).", 1, 1024, PANEL),
]
GpuMemory = Annotated[
    str | None, size("--gpu-memory", "Most GPU memory to take, as 8G or 500M (default: all that is free).", PANEL)
]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The device, the threads and the memory of a command that computes on one device."""

    panel: ClassVar = PANEL

    device: Device = "auto"
    threads: Threads = None
    gpu_memory: GpuMemory = None

    @property
    def workers(self) -> int:
        """The number of CPU threads."""
        return self.threads or available_processors()

    def open_backend(self) -> Backend:
        """The device; raises what readmap.backend.open_backend does."""
        return open_backend(self.device, self.threads, parse_size("--gpu-memory", self.gpu_memory))
