"""FASTA -> Index: the reference is read, its suffixes are sorted, by several devices too, and its tables are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readmap.backend import Array, Gpus
from readmap.backend.fetching import DistantArray
from readmap.backend.team import Team
from readmap.errors import BackendError
from readmap.formats.array_files import ArraySink
from readmap.formats.array_folder import PendingFolder
from readmap.formats.byte_source import open_bytes
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

#: Called with the name of a stage, how much of it is done, and how much it is: bytes of the file, of an unknown number
#: (0), and suffixes that are sorted. Of other stages only the beginning is heard, with 0 and 0.
Progress = Callable[[str, int, int], None]

#: Whatever the reference: Python with its libraries, and buffers.
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
    """Index a FASTA file, plain, gzip or bgzip, `-` for standard input.

    Args:
        fasta: the file's path.
        structure: what is built beside the suffix array: its prefix table, the suffix tree, or both.
        device: where it is built; auto is a GPU where there is one, and the CPU where its memory is too small.
        gpus: how many sort the suffixes, or the numbers of some, or "all": the first one does the rest, and alone sorts
            too where another has too little memory for its part. The index is the same.
        threads: for the kernels; default, the processors that this process may use.
        gpu_memory: bytes of a GPU's memory that may be used; default, all that are free.
        force_64_bits: store 64-bit places whatever the size.
        output: the folder that is to hold the index, by `folder.KIND.writing`: each array is written while the next one
            is made. It is whole once it is finished, and so are the suffixes, which are mapped from there.
        progress: hears how far the work is.
        report_memory: called, once the file is read, with the most bytes of memory that building takes.
        warn: hears why a GPU is not used.

    Raises:
        DataError: the file is not FASTA, or a contig of it is empty, doubled, too long or no nucleotide sequence.
        UsageError: a suffix tree of 2^32 bases or more is wanted.
        BackendError: the device cannot be used, or its memory is too small.
    """
    wanted, tell = IndexStructure(structure), progress or (lambda stage, done, whole: None)
    with Team.open(device, gpus, threads, gpu_memory) as team:
        with open_bytes(str(fasta), team.first.threads, HOST_INFLATERS) as source:
            reference = read_reference(source, team.first, lambda done: tell("read", done, 0))
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
        return _build(reference, str(fasta), wanted, plan, team, output, tell)


@dataclass(frozen=True)
class _Plan:
    """The reference on each device, how its suffixes are sorted there, and the most bytes of the host's memory."""

    references: list[DeviceReference]
    suffixes: SuffixPlan
    host_bytes: int


def _plan(reference: Reference, wanted: IndexStructure, force_64_bits: bool, team: Team, is_held: bool) -> _Plan:
    """is_held: whether the host is to hold the suffixes. Raises BackendError where a device has too little memory."""
    length, memories = reference.length, team.each(lambda backend: backend.memory(), team.backends)
    on_device = reference.nbytes + (TREE_BYTES * length if wanted.has_tree else 0)
    for backend, memory in zip(team.backends, memories, strict=True):
        needed = on_device if backend is team.first else reference.nbytes
        if memory and memory[0] < needed:
            raise BackendError(
                f"{backend.name} has too little memory to index {reference.bases:,} bases: {memory[0]:,} bytes are "
                f"free, {needed:,} are needed"
            )
    references = team.each(reference.to_device, team.backends)
    plan = plan_suffix_array(reference, references[0], team, force_64_bits)
    building = max(plan.nbytes, on_device)
    if memories[0] is not None:
        order, edges = plan.dtype.itemsize * plan.suffixes * is_held, EDGE_BYTES * length if wanted.has_tree else 0
        building = order + edges + (plan.sort.host_bytes if plan.sort else 0)
    table = plan.dtype.itemsize * 4 ** table_bases(plan.suffixes) if wanted.has_array else 0
    # What reading took is not given back for sure.
    fixed = FIXED_BYTES + sum(backend.host_bytes for backend in team.backends) + min(WAITING_BYTES, length)
    return _Plan(references, plan, fixed + reference.nbytes + table + building)


def _build(
    reference: Reference,
    source: str,
    wanted: IndexStructure,
    plan: _Plan,
    team: Team,
    output: PendingFolder | None,
    tell: Progress,
) -> Index:
    """The index of a reference, written while it is made where there is an output."""
    held, count, table, edges = plan.references[0], plan.suffixes.suffixes, None, None
    bases, sink = table_bases(count), None
    if output:
        folder.begin(output, reference, source, bases)
        # The file has its room on the disk before the suffixes are in order.
        sink = output.array("suffix_array", plan.suffixes.dtype, (count,))
    tell("sort suffixes", 0, count)
    parts = build_suffix_array(
        plan.references, plan.suffixes, team, lambda share: tell("sort suffixes", int(share * count), count)
    )
    tell("gather suffixes", 0, 0)
    team.release_memory()
    order, backend = team.gather(parts), team.first
    if sink:
        written, suffixes = _write_parts(parts, sink, team), sink.mapped()
    else:
        written, suffixes = None, team.to_host(parts)
    del parts
    if wanted.has_array:
        tell("prefix table", 0, 0)
        table = backend.to_host(build_prefix_table(held, order, bases, backend))
        if output:
            output.add("prefix_table", table)
    if wanted.has_tree:
        tell("suffix tree", 0, 0)
        if written:
            written()  # the tree needs the memory of the parts
        edges = backend.to_host(build_suffix_tree(held, reference.length, order, backend))
        if output:
            output.add("edges", edges)
    return Index(reference, suffixes, table, bases, edges, source)


def _write_parts(parts: Sequence[Array], sink: ArraySink, team: Team) -> Callable[[], None]:
    """Begin to write the parts of an array from the devices that have them; returns what waits until that is done."""
    team.first.synchronize()  # the threads that write have streams of their own
    waits, end = list[Callable[[], None]](), 0
    for part, backend in zip(parts, team.backends, strict=False):
        is_here = isinstance(part, np.ndarray)
        waits.append(sink.write(end, part if is_here else DistantArray(part, sink.block_bytes, backend)))
        end += len(part)

    def wait() -> None:
        for one in waits:
            one()

    return wait
