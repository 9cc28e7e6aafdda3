"""The index of a search: found, opened, checked and copied to the devices."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from readmap.backend import Backend
from readmap.errors import IndexFolderError
from readmap.formats.path_checks import refuse_inside
from readmap.formats.wording import format_bytes, pluralize, printable
from readmap.index import folder
from readmap.index.device import DeviceIndex, IndexStructure
from readmap.index.folder import find_alternates_file
from readmap.index.index import Index
from readmap.run.chunk_plan import ChunkPlan, plan_chunks
from readmap.run.config import SearchConfig
from readmap.run.file_checks import NO_OUTPUTS, is_older_than_source, output_paths
from readmap.version import __version__

Say = Callable[[str], None]


@dataclass(frozen=True)
class LoadedIndex:
    """A copy of the index on each device. plan: of chunks, or None to plan by the free memory. seconds: to load it."""

    indexes: Sequence[DeviceIndex]
    backends: Sequence[Backend]
    plan: ChunkPlan | None = None
    structure: IndexStructure = IndexStructure.ARRAY
    seconds: float = 0.0


def open_index(config: SearchConfig, more_outputs: Mapping[str, str | None] = NO_OUTPUTS) -> tuple[Path, Index]:
    """Return the index and its folder; raises UsageError if an output is inside it, and the errors of Index.open."""
    path = folder.find(config.index)
    refuse_inside(path, output_paths(config, more_outputs))
    return path, Index.open(path, config.check, config.alternates)


def describe_setup(path: Path, config: SearchConfig, backends: Sequence[Backend] = ()) -> list[str]:
    """Return the first lines of a log: version and command; index, devices and threads."""
    parts = [f"index {printable(str(path))}"]
    if backends:
        names = ", ".join(backend.name for backend in backends)
        parts += [f"device{'s' if len(backends) > 1 else ''} {names}", pluralize(backends[0].threads, "thread")]
    return [f"readmap {__version__}: {config.command_line}", "; ".join(parts)]


def warn_index(path: Path, index: Index, config: SearchConfig, say: Say) -> None:
    """Say whether the index is older than its FASTA file, and which ALT contigs it has."""
    if is_older_than_source(path, config.index):
        say(f"warning: {config.index} is newer than {path}: readmap index --force {config.index} rebuilds it")
    if alternates := find_alternates_file(path, index.source):
        count = int(index.reference.alternates.sum())
        if not config.alternates:
            say(f"{alternates} is ignored (-j)")
        elif count:
            say(f"{pluralize(count, 'ALT contig')} of {len(index.reference.contigs):,} ({alternates})")
        else:
            say(f"warning: {alternates} names no contig of the index: none is an ALT contig")


def load_index(
    config: SearchConfig, path: Path, index: Index, structure: IndexStructure, backends: Sequence[Backend], say: Say
) -> LoadedIndex:
    """Copy the searched part of an index to each device, after messages to `say` about the memory that it needs."""
    start = time.perf_counter()
    try:
        needed = index.host_index(backends[0], structure, config.prefix_table).nbytes
    except IndexFolderError as error:
        raise IndexFolderError(f"{path}: {error}") from error
    plan = plan_chunks(backends, needed, config.sort)
    for backend in backends:
        if (memory := backend.memory()) is not None:
            free, total = memory
            say(
                f"{backend.name} needs {format_bytes(needed)} of its memory for the index and up to "
                f"{format_bytes(plan.working_bytes)} for reads; {format_bytes(free)} of {format_bytes(total)} are free"
            )
    indexes = [index.to_device(backends[0], structure, config.prefix_table)]
    backends[0].synchronize()
    for backend in backends[1:]:
        with backend.thread_stream():
            indexes.append(indexes[0].copy_to(backend))
    return LoadedIndex(indexes, backends, plan, structure, time.perf_counter() - start)
