"""Options that several commands have: devices, threads, memory, duplicates and quality reports."""

from typing import Any

from readmap.backend import Backend, Gpus, open_backend, parse_gpus
from readmap.backend.machine import available_processors
from readmap.backend.team import Team
from readmap.cli.common.options import flag, number, option, option_group, parse_size, size
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateRules

RESOURCES = "Resources"


def gpus_option(default: str = "1") -> Any:
    """Declare --gpus."""

    def check(value: str) -> str:
        parse_gpus(value)
        return value

    help = f"Number of GPUs, all, or a list of them, such as 0,3 or 0, (default: {default}). Same output."
    return option("--gpus", help, "N", panel=RESOURCES, check=check, default=default)


def threads_option() -> Any:
    """Declare --threads."""
    return number("-t --threads", "CPU threads (default: available processors).", 1, 1024, panel=RESOURCES)


def sort_memory_option() -> Any:
    """Declare --sort-memory."""
    help = (
        "Memory for sorting, such as 8G (default: a quarter of the available memory, and the free memory of a GPU). "
        "The rest goes to $TMPDIR or the folder of the output."
    )
    return size("--sort-memory", help, advanced=True)


@option_group(RESOURCES)
class Resources:
    """The device, the threads and the memory of a command that computes on one device."""

    threads: int | None = threads_option()
    device: str = option("--device", "cpu, cuda, cuda:N or auto: a GPU if available (default).", "NAME", default="auto")
    gpu_memory: str | None = size("--gpu-memory", "Maximum GPU memory, such as 8G (default: all free).", advanced=True)

    @property
    def workers(self) -> int:
        """The number of CPU threads."""
        return self.threads or available_processors()

    @property
    def max_gpu_memory(self) -> int | None:
        """The maximum GPU memory in bytes, or None for all free memory."""
        return parse_size("--gpu-memory", self.gpu_memory)

    def open_backend(self) -> Backend:
        """Open the device; raises the errors of readmap.backend.open_backend."""
        return open_backend(self.device, self.threads, self.max_gpu_memory)


@option_group()
class MultiGpuResources(Resources):
    """The devices, the threads and the memory of a command that can use several GPUs."""

    gpus: str = gpus_option()

    @property
    def chosen_gpus(self) -> Gpus:
        """The GPUs, as readmap.backend.device_names accepts them."""
        return parse_gpus(self.gpus)

    def open_team(self) -> Team:
        """Open the devices as a team of threads; raises the errors of readmap.backend.open_backends."""
        return Team.open(self.device, self.chosen_gpus, self.threads, self.max_gpu_memory)


@option_group("Duplicates, as in Picard MarkDuplicates")
class DuplicateOptions:
    """What counts as a duplicate, and what is done with it."""

    remove_duplicates: bool = flag("--remove-duplicates", "Remove duplicates instead of marking them.")
    optical_distance: int = number(
        "--optical-distance",
        f"Maximum pixels between optical duplicates; 2500 for patterned flow cells (default: {OPTICAL_DISTANCE}).",
        0,
        1 << 30,
        default=OPTICAL_DISTANCE,
        advanced=True,
    )
    duplicate_type: bool = flag(
        "--duplicate-type", "Tag optical and library duplicates: DT:Z:SQ, DT:Z:LB.", advanced=True
    )
    barcode_tag: str | None = option("--barcode-tag", "Tag of the UMI, which duplicates share.", "TAG", advanced=True)
    metrics: str | None = option("--metrics", "Write metrics in the format of Picard's DuplicationMetrics.", "FILE")

    def rules(self) -> DuplicateRules:
        """Return the rules of duplicate marking; raises UsageError if the tag is invalid."""
        return DuplicateRules(self.optical_distance, self.barcode_tag, self.remove_duplicates, self.duplicate_type)


@option_group("Quality reports, for records in coordinate order")
class QualityOptions:
    """Reports about the written records."""

    report: str | None = option(
        "--report", "Write a page about qualities, insert sizes and coverage (also in --json).", "FILE.html"
    )
    multiqc: str | None = option(
        "--multiqc", "Write files for MultiQC: samtools stats, flagstat.", "FOLDER", advanced=True
    )
