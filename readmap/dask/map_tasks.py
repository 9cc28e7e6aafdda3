"""The tasks that map: what the first reads show, and the records of a shard."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.backend.machine import available_memory
from readmap.bam.codecs import choose_codec
from readmap.bam.sorted_output import SortedOutput
from readmap.dask.job import RECORDS, Job
from readmap.dask.run_files import RunSidecar
from readmap.dask.scratch import make_once
from readmap.dask.task_turns import Turn
from readmap.dask.worker import AT_ONCE, address, worker_index, read_ahead, take_turn, return_errors
from readmap.duplicates.shards import FRAGMENTS_SUFFIX, FragmentRecorder
from readmap.errors import DataError
from readmap.formats.byte_source import ByteSource
from readmap.formats.output import ByteSink, commit_together, open_output
from readmap.mapping.context import Context
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.reads.chunks import PairLayout
from readmap.reads.record_ranges import RecordRange
from readmap.reads.inflaters import inflaters_for
from readmap.run import stream
from readmap.run.chunk_plan import plan_chunks
from readmap.run.estimation import first_lanes, learn_from
from readmap.run.sample_model import SampleModel
from readmap.run.read_mapper import ReadMapper, MappingSummary

#: Of the memory that is available, the part in which records are sorted; bytes where the system does not say.
SORT_SHARE, SORT_MEMORY = 4, 2 << 30


@dataclass(frozen=True)
class Mapped:
    """What there is of a shard.

    Attributes:
        summary: what was counted.
        fragments: of the numbers of all shards' fragments, which are in order but may leave some out, the first one
            that is its own, and the first one behind these.
        samples: uint64, keys of its sorted records, as RunSidecar has them.
    """

    summary: MappingSummary
    fragments: tuple[int, int]
    samples: NDArray[np.uint64]


@return_errors
def learn(job: Job) -> SampleModel:
    """What the first reads show, library by library."""
    with take_turn() as turn:
        return _learn(job, turn)


def _learn(job: Job, turn: Turn) -> SampleModel:
    learnt = SampleModel()
    index, backend = worker_index(job.index, job.resources, turn)
    context = Context(index, backend, job.scoring, job.pairing)
    with backend.thread_stream():
        for numbers in first_lanes([lane.group for lane in job.lanes]):
            lanes = [job.lanes[number] for number in numbers]
            groups, layouts = tuple(lane.group for lane in lanes), [lane.layout for lane in lanes]
            paired = any(layout.paired for layout in layouts)
            mapping = ReadMapper([context], replace(job.style, read_groups=groups, order=None), paired, learnt=learnt)
            learn_from(
                _whole(job, [file for lane in lanes for file in lane.files], backend), layouts, mapping, [backend]
            )
            learnt = mapping.learnt
    return learnt


def _whole(job: Job, files: Sequence[str], backend: Backend) -> list[ByteSource]:
    sources = list[ByteSource]()
    with contextlib.ExitStack() as opened:
        for file in files:
            source = open_reads(file, backend.threads, False, inflaters_for(backend))
            if isinstance(source, AlignmentReads):
                source.close()
                source.drop()
                raise DataError(f"{source.name} is BAM or CRAM: expected FASTQ or FASTA")
            sources.append(opened.enter_context(source))
        opened.pop_all()
    return sources


@return_errors
def map_shard(job: Job, number: int, parts: Sequence[RecordRange], learnt: SampleModel) -> Mapped:
    """The records of a shard, in its folder; parts: what it has of each file."""
    with read_ahead() as turn:
        return make_once(job.shard(number), functools.partial(_map, job, parts, learnt, turn))


def _map(job: Job, parts: Sequence[RecordRange], learnt: SampleModel, turn: Turn, folder: Path) -> Mapped:
    index, backend = worker_index(job.index, job.resources, turn)
    if plan_chunks([backend]).nbytes < backend.chunk_bytes:  # memory is short
        turn.wait_alone()
    first = _fragments_before([part.first_record for part in parts], job.layouts)
    last = _fragments_before([part.end_record for part in parts], job.layouts)
    context = Context(index, backend, job.scoring, job.pairing, job.reporting)
    with backend.thread_stream(), contextlib.ExitStack() as opened:
        kept = None
        if job.rules:
            kept = FragmentRecorder(job.rules, backend, first)
            kept.begin(job.groups, job.contig_lengths)
        sides = RunSidecar(len(job.contig_lengths))
        sinks = [opened.enter_context(_sink(job, name, folder, backend, sides)) for name in job.outputs]
        paired = any(layout.paired for layout in job.layouts)
        work = ReadMapper([context], job.style, paired, kept, learnt)
        most = job.resources.batch_reads
        reads = _opened(parts, backend)
        stream.run(reads, sinks, work, [backend], layout=job.layouts, batch_reads=most, succession=turn)
        if kept:
            sinks.append(opened.enter_context(open_output(str(folder / f"{RECORDS}{FRAGMENTS_SUFFIX}"))))
            kept.write(sinks[-1])
        commit_together(sinks)
        if job.is_sorted:
            sides.write(folder)
    summary = work.summary
    summary.devices = {f"{backend.name} of {address()}": counts for counts in summary.devices.values()}
    return Mapped(summary, (first, last), sides.samples())


def _opened(parts: Sequence[RecordRange], backend: Backend) -> list[ByteSource]:
    sources, inflaters = list[ByteSource](), inflaters_for(backend)
    with contextlib.ExitStack() as opened:
        for part in parts:
            part.check_unchanged()
            sources.append(opened.enter_context(part.open(backend.threads, inflaters)))
        opened.pop_all()
    return sources


def _fragments_before(records: Sequence[int], layouts: Sequence[PairLayout]) -> int:
    """Fragments in front of a place in each file, at most."""
    begins = np.cumsum([0, *(layout.files for layout in layouts)])[:-1].tolist()
    return sum(-(-records[begin] // layout.records_per_fragment) for begin, layout in zip(begins, layouts, strict=True))


def _sink(job: Job, name: str, folder: Path, backend: Backend, sides: RunSidecar) -> ByteSink:
    """The output of that name of a shard; records that are sorted have no header, and are not compressed."""
    path, packing = str(folder / name), job.packing
    if name == RECORDS and job.is_sorted:
        available = available_memory()
        memory = SORT_MEMORY if available is None else available // SORT_SHARE
        if job.resources.sort_memory:
            memory = job.resources.sort_memory // AT_ONCE  # beside what the shard before has not written yet
        return SortedOutput(open_output(path), memory, None, CpuBackend(backend.threads), observers=[sides])
    if not packing.blocked[name]:
        return open_output(path, backend.threads)
    codec = choose_codec(packing.codec, packing.level, [backend])
    return codec.open(open_output(path), backend.threads, packing.level)
