"""The options of readmap search that say what it may use, and what it tells of a device's memory."""

from __future__ import annotations

from typing import Annotated

import typer

from readmap.backend import Backend
from readmap.cli.options import RESOURCES, device_option, in_range
from readmap.cli.report import Report, in_bytes
from readmap.search import stream

Device = Annotated[str, device_option("a GPU where there is one")]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        "--gpu-memory",
        metavar="SIZE",
        help="Most GPU memory to take, as 8G or 500M (default: all that is free).",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]
BatchReads = Annotated[
    int | None,
    typer.Option(
        "--batch-reads",
        metavar="N",
        callback=in_range(1, 1 << 31),
        help="Most reads to search together (default: by their bytes). The output is the same.",
        show_default=False,
        rich_help_panel=RESOURCES,
    ),
]


def say_memory(needed: int, backend: Backend, report: Report) -> None:
    """Tell what a device's memory has to hold, where the device has its own; needed: by the index."""
    memory = backend.memory()
    if memory is not None:
        free, total = memory
        batch = stream.fitting_chunk(backend) * stream.WORKING_BYTES
        report.say(
            f"{backend.name} needs {in_bytes(needed)} of its memory for the index and up to {in_bytes(batch)} "
            f"for a batch of reads; {in_bytes(free)} of {in_bytes(total)} are free"
        )
