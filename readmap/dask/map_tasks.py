"""The tasks that read: the sample model from the first reads, and the records of a shard."""

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readmap.backend import Backend
from readmap.backend.cpu import CpuBackend
from readmap.bam.codecs import choose_codec
from readmap.bam.memory import sort_memory_bytes
from readmap.bam.sorted_output import SortedOutput
from readmap.dask.job import RECORDS, Job, make_once
from readmap.dask.run_files import RunSidecar
from readmap.dask.task_turns import TaskTurn
from readmap.dask.worker import CONCURRENT_TASKS, address, read_ahead, return_errors, take_turn, worker_index
from readmap.duplicates.shards import FRAGMENTS_SUFFIX, FragmentRecorder
from readmap.formats.output import ByteSink, commit_together, open_output
from readmap.reads.chunks import PairLayout
from readmap.reads.inflaters import inflaters_for
from readmap.reads.shards import RecordRange
from readmap.run.chunk_plan import plan_chunks
from readmap.run.estimation import estimate_from_lanes
from readmap.run.index_loading import LoadedIndex
from readmap.run.inputs import open_parts
from readmap.run.monitor import Silent
from readmap.run.read_mapper import MappingSummary
from readmap.run.sample_model import SampleModel
from readmap.run.search import make_processor, run_batches


@dataclass(frozen=True)
class MappedShard:
    """What a task returns about its shard. fragments: [first, end) of the shard's fragment numbers; the numbers of all
    shards ascend, with gaps. samples: uint64, sampled sort keys of its records, see RunSidecar."""

    summary: MappingSummary
    fragments: tuple[int, int]
    samples: NDArray[np.uint64]


@return_errors
def estimate(job: Job) -> SampleModel:
    """Estimate divergence and insert sizes from the first reads of all files, on this worker's device."""
    with take_turn() as turn:
        index, backend = worker_index(job.config, turn)
        config = replace(job.config, threads=backend.threads)
        with backend.thread_stream():
            return estimate_from_lanes(config, job.files, LoadedIndex([index], [backend]), Silent())


@return_errors
def map_shard(job: Job, shard: int, parts: Sequence[RecordRange], model: SampleModel) -> MappedShard:
    """Map a shard and write its outputs to its folder; shard: its index; parts: its range of records in each file."""
    with read_ahead() as turn:
        return make_once(job.shard(shard), functools.partial(_map, job, parts, model, turn))


def _map(job: Job, parts: Sequence[RecordRange], model: SampleModel, turn: TaskTurn, folder: Path) -> MappedShard:
    """Map a shard and write its outputs to `folder`, also keys if sorted and fragments if duplicates are marked."""
    index, backend = worker_index(job.config, turn)
    if plan_chunks([backend]).nbytes < backend.chunk_bytes:  # memory is short
        turn.wait_alone()
    layouts = job.files.layouts
    first = _fragments_before([part.first_record for part in parts], layouts)
    last = _fragments_before([part.end_record for part in parts], layouts)
    with backend.thread_stream(), contextlib.ExitStack() as opened:
        recorder = None
        if job.rules:
            recorder = FragmentRecorder(job.rules, backend, first)
            recorder.set_header(job.groups, job.contig_lengths)
        sidecar = RunSidecar(len(job.contig_lengths))
        sinks = [opened.enter_context(_open_output(job, name, folder, backend, sidecar)) for name in job.outputs]
        reads = open_parts(parts, layouts, job.config.comments, backend.threads, inflaters_for(backend))
        loaded = LoadedIndex([index], [backend])
        processor = make_processor(job.config, job.files.lanes, loaded, reads, job.program, recorder, model)
        run_batches(job.config, processor, reads, sinks, loaded, lease=turn)
        if recorder:
            sinks.append(opened.enter_context(open_output(str(folder / f"{RECORDS}{FRAGMENTS_SUFFIX}"))))
            recorder.write(sinks[-1])
        commit_together(sinks)
        if job.is_sorted:
            sidecar.write(folder)
    summary = processor.summary
    assert isinstance(summary, MappingSummary)
    summary.devices = {f"{backend.name} of {address()}": counts for counts in summary.devices.values()}
    return MappedShard(summary, (first, last), sidecar.samples())


def _fragments_before(records: Sequence[int], layouts: Sequence[PairLayout]) -> int:
    """Return an upper bound of the reads or pairs before `records`, which has the index of a record in each file."""
    files = np.cumsum([0, *(layout.files for layout in layouts)])[:-1].tolist()
    return sum(-(-records[file] // layout.records_per_fragment) for file, layout in zip(files, layouts, strict=True))


def _open_output(job: Job, name: str, folder: Path, backend: Backend, sidecar: RunSidecar) -> ByteSink:
    """Open output `name` (RECORDS, UNMAPPED) of a shard in `folder`. Sorted records have no header and compression;
    `sidecar` collects their keys. backend: compresses, and limits the threads."""
    path, config = str(folder / name), job.config
    if name == RECORDS and job.is_sorted:
        limit = config.sort_memory_limit
        # Divided, since the task before may not have written its records yet.
        memory = sort_memory_bytes(limit and limit // CONCURRENT_TASKS)
        return SortedOutput(open_output(path), memory, None, CpuBackend(backend.threads), observers=[sidecar])
    if not job.is_compressed(name):
        return open_output(path, backend.threads)
    codec = choose_codec(config.codec, job.level, [backend])
    return codec.open(open_output(path), backend.threads, job.level)
