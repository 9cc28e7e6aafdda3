"""FASTA -> Index: read the reference, sort its suffixes on one or several devices, and build the tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readmap.backend import Array, Gpus
from readmap.backend.array_reader import DeviceArrayReader
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.formats.array_files import ArraySink
from readmap.formats.array_folder import PendingFolder
from readmap.formats.byte_source import open_bytes
from readmap.formats.wording import format_bytes
from readmap.index import folder
from readmap.index.device import IndexStructure
from readmap.index.fasta import WAITING_BYTES, read_reference
from readmap.index.index import Index
from readmap.index.reference import DeviceReference, Reference
from readmap.index.suffix_array import (
    SuffixPlan,
    build_prefix_table,
    build_suffix_array,
    plan_suffix_array,
    table_bases,
)
from readmap.index.suffix_tree import EDGE_BYTES, TREE_BYTES, build_suffix_tree, refuse_large
from readmap.reads.inflaters import HOST_INFLATERS

#: Called with the name of a stage, the work done and the total work: bytes read (total 0, unknown), or suffixes sorted.
#: Other stages are reported once, at their start, with 0 and 0.
Progress = Callable[[str, int, int], None]

#: Memory of Python, its libraries and buffers.
FIXED_BYTES = 96 << 20


def build_index(
    fasta: str | Path,
    *,
    structure: IndexStructure | str = IndexStructure.ARRAY,
    device: str = "auto",
    gpus: Gpus = 1,
    threads: int | None = None,
    gpu_memory: int | None = None,
    force_64_bits: bool = False,
    output: PendingFolder | None = None,
    progress: Progress | None = None,
    report_memory: Callable[[int], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Index:
    """Build the index of a FASTA file.

    Parameters
    ----------
    fasta : str or Path
        FASTA file, plain, gzip or bgzip; `-` for standard input.
    structure : {"array", "tree", "both"}
        What to build in addition to the suffix array: its prefix table, the suffix tree, or both.
    device : str
        "cpu", "gpu", "gpu:1" and so on; "auto" takes a GPU if there is one with enough memory, else the CPU.
    gpus : int, sequence of int or "all"
        Number or indices of the GPUs that sort the suffixes. If a GPU has too little memory for its part, the first GPU
        sorts alone. The index does not depend on it.
    threads : int, optional
        Host threads; by default all processors that this process may use.
    gpu_memory : int, optional
        Maximum bytes of GPU memory to use; by default all that is free.
    force_64_bits : bool
        Store 64-bit positions for a reference of any size.
    output : PendingFolder, optional
        Folder to write the index to while it is built, from `folder.KIND.writing`. The returned index then maps the
        suffix array from this folder.
    progress : callable, optional
        Called with (stage, done, total); see Progress.
    report_memory : callable, optional
        Called once, after the file has been read, with the maximum bytes of host memory that building will take.
    warn : callable, optional
        Called with a message if the GPU cannot be used.

    Returns
    -------
    Index

    Raises
    ------
    DataError
        The file is not FASTA, or a contig is empty, duplicated, too long or not a nucleotide sequence.
    UsageError
        A suffix tree is requested for 2^32 bases or more.
    BackendError
        The device cannot be used or has too little memory.
    """
    wanted, report = IndexStructure(structure), progress or (lambda stage, done, whole: None)
    with Team.open(device, gpus, threads, gpu_memory) as team:
        with open_bytes(str(fasta), team.first.threads, HOST_INFLATERS) as source:
            reference = read_reference(source, team.first, lambda done: report("read", done, 0))
        if wanted.has_tree:
            refuse_large(reference.length)
        try:
            plan = _plan(reference, wanted, force_64_bits, team, output is None)
        except BackendError as error:
            if device != "auto":
                raise
            if warn:
                warn(f"{error}: the CPU builds the index")
            team = Team.open("cpu", threads=threads)
            plan = _plan(reference, wanted, force_64_bits, team, output is None)
        if report_memory:
            report_memory(plan.host_bytes)
        return _build(reference, str(fasta), wanted, plan, team, output, report)


@dataclass(frozen=True)
class _Plan:
    """The reference on each device, the sorting plan, and the maximum bytes of host memory."""

    references: list[DeviceReference]
    suffixes: SuffixPlan
    host_bytes: int


def _plan(reference: Reference, wanted: IndexStructure, force_64_bits: bool, team: Team, keeps_suffixes: bool) -> _Plan:
    """Copy the reference to all devices, plan the sort of its suffixes, and compute the host memory of the build.

    keeps_suffixes: the suffix array stays in host memory, not in a folder. Raises BackendError if memory is too small.
    """
    length, memories = reference.length, team.map(lambda backend: backend.memory(), team.backends)
    on_device = reference.nbytes + (TREE_BYTES * length if wanted.has_tree else 0)
    for backend, memory in zip(team.backends, memories, strict=True):
        needed = on_device if backend is team.first else reference.nbytes
        if memory and memory[0] < needed:
            sizes = f"{format_bytes(memory[0])} are free, {format_bytes(needed)} are needed"
            raise BackendError(f"{backend.name} has too little memory to index {reference.bases:,} bases: {sizes}")
    references = team.map(reference.to_device, team.backends)
    plan = plan_suffix_array(reference, references[0], team, force_64_bits)
    building = max(plan.nbytes, on_device)
    if memories[0] is not None:
        building = plan.dtype.itemsize * plan.suffixes * keeps_suffixes + EDGE_BYTES * length * wanted.has_tree
        building += plan.sort.host_bytes if plan.sort else 0
    table = plan.dtype.itemsize * 4 ** table_bases(plan.suffixes) if wanted.has_array else 0
    # The memory used for reading may not have been returned to the system.
    fixed = FIXED_BYTES + sum(backend.driver_host_bytes for backend in team.backends) + min(WAITING_BYTES, length)
    return _Plan(references, plan, fixed + reference.nbytes + table + building)


def _build(
    reference: Reference,
    source: str,
    wanted: IndexStructure,
    plan: _Plan,
    team: Team,
    output: PendingFolder | None,
    report: Progress,
) -> Index:
    """Sort the suffixes by `plan` and build the `wanted` tables; start writing each array to `output`, if given."""
    device_reference, count, table, edges = plan.references[0], plan.suffixes.suffixes, None, None
    bases, sink = table_bases(count), None
    if output:
        folder.write_reference(output, reference, source, bases)
        # Reserve disk space before the suffixes are sorted.
        sink = output.array("suffix_array", plan.suffixes.dtype, (count,))
    report("sort suffixes", 0, count)
    parts = build_suffix_array(
        plan.references, plan.suffixes, team, lambda share: report("sort suffixes", int(share * count), count)
    )
    report("gather suffixes", 0, 0)
    team.release_memory()
    order, backend = team.gather(parts), team.first
    written = _write_parts(parts, sink, team) if sink else None
    suffixes = sink.mapped() if sink else team.to_host(parts)
    del parts
    if wanted.has_array:
        report("prefix table", 0, 0)
        table = backend.to_host(build_prefix_table(device_reference, order, bases, backend))
        if output:
            output.add("prefix_table", table)
    if wanted.has_tree:
        report("suffix tree", 0, 0)
        if written:
            written()  # the tree needs the memory of these arrays
        edges = backend.to_host(build_suffix_tree(device_reference, reference.length, order, backend))
        if output:
            output.add("edges", edges)
    return Index(reference, suffixes, table, bases, edges, source)


def _write_parts(parts: Sequence[Array], sink: ArraySink, team: Team) -> Callable[[], None]:
    """Start writing an array whose parts are on the devices; return a function that waits for the end of the writes."""
    team.first.synchronize()  # the writing threads use other streams
    waits, end = list[Callable[[], None]](), 0
    for part, backend in zip(parts, team.backends, strict=False):
        is_here = isinstance(part, np.ndarray)
        waits.append(sink.write(end, part if is_here else DeviceArrayReader(part, sink.block_bytes, backend)))
        end += len(part)

    def wait() -> None:
        for one in waits:
            one()

    return wait
