"""The options that say what a command may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from readmap.backend import Backend, Gpus, open_backend, open_backends, parse_gpus
from readmap.backend.machine import available_processors
from readmap.backend.team import Team
from readmap.cli.common.options import number, option, parse_size, size

PANEL = "Resources"


def device_option() -> Any:
    """--device."""
    help = "cpu, cuda, cuda:N or auto, a GPU where there is one (default: auto)."
    return option("--device", help, "NAME", PANEL, default="auto")


def gpus_option(default: str = "1") -> Any:
    """--gpus."""

    def check(value: str) -> str:
        parse_gpus(value)
        return value

    help = f"GPUs that share the work: a number, all, or a list, as 0,3 or 0, (default: {default}). Same output."
    return option("--gpus", help, "N", PANEL, check, default)


def threads_option() -> Any:
    """--threads."""
    help = "CPU threads (default: the processors that this process may use)."
    return number("-t --threads", help, 1, 1024, PANEL)


def gpu_memory_option() -> Any:
    """--gpu-memory."""
    return size("--gpu-memory", "Most GPU memory to take, as 8G or 500M (default: all that is free).", PANEL)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The device, the threads and the memory of a command that computes on one device."""

    panel: ClassVar = PANEL

    device: str = device_option()
    threads: int | None = threads_option()
    gpu_memory: str | None = gpu_memory_option()

    @property
    def workers(self) -> int:
        """The number of CPU threads."""
        return self.threads or available_processors()

    @property
    def most_gpu_memory(self) -> int | None:
        """Bytes of a GPU's memory; None where all that is free may be taken."""
        return parse_size("--gpu-memory", self.gpu_memory)

    def open_backend(self) -> Backend:
        """The device; raises what readmap.backend.open_backend does."""
        return open_backend(self.device, self.threads, self.most_gpu_memory)


@dataclass(frozen=True, kw_only=True)
class SharedResources(Resources):
    """Those of a command whose work several GPUs share."""

    gpus: str = gpus_option()

    @property
    def chosen_gpus(self) -> Gpus:
        """As readmap.backend.device_names takes them."""
        return parse_gpus(self.gpus)

    def open_backends(self) -> list[Backend]:
        """The devices; raises what readmap.backend.open_backends does."""
        return open_backends(self.device, self.chosen_gpus, self.threads, self.most_gpu_memory)

    def open_team(self) -> Team:
        """The devices as a team, for its threads to use; raises the same."""
        return Team.open(self.device, self.chosen_gpus, self.threads, self.most_gpu_memory)
