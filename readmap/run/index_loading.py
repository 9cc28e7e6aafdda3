"""The index of a search on its devices, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from readmap.backend import Backend
from readmap.cli.common.report import Report
from readmap.run.file_checks import is_older_than_source
from readmap.errors import IndexFolderError
from readmap.formats.wording import format_bytes, pluralize
from readmap.index.folder import find_alternates_file
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.index import Index
from readmap.run.chunk_plan import ChunkPlan, plan_chunks


class Searched(Protocol):
    """What of an index is searched: the structure, and whether with the array's prefix table."""

    structure: IndexStructure
    prefix_table: bool


def tell(path: Path, index: Index, named: str | None, ignores_alternates: bool, report: Report) -> None:
    """Say what the index may be that the user does not take it for; named: as the user names it."""
    if is_older_than_source(path, named):
        report.say(f"warning: {named} is newer than {path}: readmap index --force {named} makes it anew")
    if alternates := find_alternates_file(path, index.source):
        found = int(index.reference.alternates.sum())
        if ignores_alternates:
            report.say(f"{alternates} is ignored (-j)")
        elif found:
            report.say(f"{pluralize(found, 'ALT contig')} of {len(index.reference.contigs):,} ({alternates})")
        else:
            report.say(f"warning: {alternates} names no contig of the index: none is an ALT contig")


def load(
    path: Path, index: Index, searched: Searched, backends: Sequence[Backend], is_sorted: bool, report: Report
) -> tuple[list[DeviceIndex], ChunkPlan]:
    """The part of an index that is searched, on each device, to the others from the first; and what is mapped there.

    path: the index's, for errors. is_sorted: whether records are.
    """
    try:
        needed = index.host_index(backends[0], searched.structure, searched.prefix_table).nbytes
    except IndexFolderError as error:
        raise IndexFolderError(f"{path}: {error}") from error
    plan = plan_chunks(backends, needed, is_sorted)
    for backend in backends:
        report_memory(needed, plan, backend, report)
    indexes = [index.to_device(backends[0], searched.structure, searched.prefix_table)]
    backends[0].synchronize()
    for backend in backends[1:]:
        with backend.thread_stream():
            indexes.append(indexes[0].copy_to(backend))
    return indexes, plan


def report_memory(needed: int, plan: ChunkPlan, backend: Backend, report: Report) -> None:
    """Say what a device's memory has to hold, where the device has its own; needed: by the index."""
    memory = backend.memory()
    if memory is not None:
        free, total = memory
        report.say(
            f"{backend.name} needs {format_bytes(needed)} of its memory for the index and up to "
            f"{format_bytes(plan.working_bytes)} for reads; {format_bytes(free)} of {format_bytes(total)} are free"
        )
