"""A search on a cluster: its shards are mapped by tasks, whatever worker takes them, and joined in their order."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from readmap.backend.machine import available_processors
from readmap.bam.file_index import FileIndex, IndexFormat
from readmap.dask.cluster import Tasks
from readmap.dask.job import RECORDS, UNMAPPED, Job
from readmap.dask.concat_output import ConcatOutput, open_index
from readmap.dask.shard_plan import Parts, equal_parts, sized_parts
from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.output import ByteSink, PendingOutput, open_output
from readmap.formats.atomic_files import temporary_folder
from readmap.reads.shards import SplitLanes
from readmap.reads.split_table import SplitFile, read_table
from readmap.reads.record_ranges import RecordLocator
from readmap.reads.file_splitter import FileSplitter
from readmap.run.sample_model import SampleModel
from readmap.run.read_mapper import MappingSummary


class Progress(Protocol):
    """Shows where the work is, in words; share: the part of the reads that is mapped."""

    def __call__(self, text: str, share: float | None = None) -> None: ...


@dataclass(frozen=True)
class Wanted:
    """What a search is to write, and what of it is known before.

    Attributes:
        output: of the records. header: in front of them. form: of its index; None for none.
        unmapped, metrics: further files, None for none.
        table: of where the reads begin; learnt: of them; tasks: shards. What is None is found.
    """

    output: str
    header: bytes
    form: IndexFormat | None = None
    unmapped: str | None = None
    metrics: str | None = None
    table: str | None = None
    learnt: SampleModel | None = None
    tasks: int | None = None


@dataclass
class Found:
    """What was found: the outputs, which are to be committed, what was counted, in how many tasks, how many workers
    there are, and the duplicates of each library."""

    outputs: list[PendingOutput]
    summary: MappingSummary
    tasks: int
    workers: int
    libraries: list[LibraryMetrics] | None = None


class _Outputs:
    """The files of a search, by their names."""

    def __init__(self, job: Job, wanted: Wanted, opened: contextlib.ExitStack) -> None:
        self.joined: dict[str, ConcatOutput] = {}
        self.others: dict[str, ByteSink] = {}
        paths = {RECORDS: wanted.output, UNMAPPED: wanted.unmapped}
        for name in job.outputs:
            level = job.packing.level if job.packing.blocked[name] else None
            joined = ConcatOutput(open_output(paths[name], available_processors()), level)
            opened.callback(joined.abort)
            self.joined[name] = joined
        if wanted.form:
            self.others["index"] = opened.enter_context(open_index(wanted.output, wanted.form))
        if wanted.metrics:
            self.others["metrics"] = opened.enter_context(open_output(wanted.metrics))

    @property
    def all(self) -> list[PendingOutput]:
        """In the order in which they are committed."""
        return [*self.joined.values(), *self.others.values()]


@contextlib.contextmanager
def searched(client: Any, job: Job, wanted: Wanted, show: Progress) -> Iterator[Found]:
    """What a search has found, whose outputs the caller commits; else they are aborted.

    job: without its folder and its tasks. Raises the errors of a search, and BackendError where the cluster fails.
    """
    tasks = Tasks(client)
    with contextlib.ExitStack() as opened:
        outputs = _Outputs(job, wanted, opened)
        folder = opened.enter_context(temporary_folder(Path(wanted.output).absolute()))
        run = _Run(tasks, replace(job, folder=str(folder)), wanted, outputs, show)
        yield run()


class _Run:
    """One search."""

    def __init__(self, tasks: Tasks, job: Job, wanted: Wanted, outputs: _Outputs, show: Progress) -> None:
        self._tasks, self._job, self._wanted, self._outputs, self._show = tasks, job, wanted, outputs, show
        self._summary, self._began = MappingSummary(), 0.0
        # Reads that are found, and the part of the files in which they are.
        self._found, self._split = 0, 1.0

    def __call__(self) -> Found:
        from readmap.dask.map_tasks import learn
        from readmap.dask.worker import task_reads

        learnt, tasks = self._wanted.learnt, self._wanted.tasks
        sizing = None if tasks else self._tasks.submit("size", 0, task_reads, self._job.resources)
        learning = None if learnt else self._tasks.submit("learn", 0, learn, self._job)
        with self._known() as known:
            if sizing:
                (size,) = self._tasks.results([sizing])
            if learning:
                self._show("learning from the first reads")
                (learnt,) = self._tasks.results([learning])
            assert learnt is not None
            self._began = time.perf_counter()
            mapped = self._map(equal_parts(known, tasks) if tasks else sized_parts(known, size), learnt)
        self._job = replace(self._job, tasks=len(mapped))
        self._summary.bases_per_difference = learnt.bases_per_difference
        self._summary.libraries = {name: sizes for name, sizes in learnt.libraries.items() if sizes is not None}
        libraries = self._merge(mapped) if self._job.is_sorted else None
        return Found(self._outputs.all, self._summary, len(mapped), self._tasks.workers, libraries)

    @contextlib.contextmanager
    def _known(self) -> Iterator[Callable[[], SplitLanes]]:
        """Tells what is known of the reads: all, by a table, or from call to call more."""
        if self._wanted.table is not None:
            table = read_table(self._wanted.table)
            whole = self._reads([table.find(file) for file in self._job.files])
            yield lambda: whole
            return
        with FileSplitter(self._job.files, available_processors(), self._summary.warnings.append) as splitting:

            def known() -> SplitLanes:
                splitting.wait(0)
                reads = self._reads(splitting.files)
                records, read, size = splitting.progress
                self._split = read / max(size, 1)
                if not self._summary.reads:
                    self._show(f"finding where reads begin: {records:,} reads", self._split)
                return reads

            yield known
            splitting.wait()  # for what it warns of

    def _reads(self, files: Sequence[SplitFile]) -> SplitLanes:
        self._found = sum(file.records for file in files)
        texts = [
            RecordLocator(path, file, available_processors()) for path, file in zip(self._job.files, files, strict=True)
        ]
        return SplitLanes(texts, self._job.layouts)

    def _map(self, parts: Iterator[Parts], learnt: SampleModel) -> list[Any]:
        """Map shards, whose records come behind each other where they are not sorted; what there is of each."""
        from readmap.dask.map_tasks import map_shard

        job, mapped = self._job, list[Any]()
        self._outputs.joined[RECORDS].begin(self._wanted.header)
        # More shards are told while records are copied.
        pool, joining = ThreadPoolExecutor(1, "readmap-join"), deque[Future[None]]()

        def futures() -> Iterator[Any]:
            number = 0
            for part in parts:
                if part is None:
                    yield None
                    continue
                yield self._tasks.submit("map", number, map_shard, job, number, part, learnt)
                number += 1

        try:
            for number, shard in enumerate(self._tasks.results(futures(), self._count)):
                joining.append(pool.submit(self._join, number))
                mapped.append(shard)
                while joining and joining[0].done():
                    joining.popleft().result()
            for joined in joining:
                joined.result()
        finally:
            pool.shutdown(cancel_futures=True)
        return mapped

    def _join(self, number: int) -> None:
        """Copy the records of a shard behind those before, where they are not sorted."""
        for name in self._job.outputs:
            if name != RECORDS or not self._job.is_sorted:
                self._outputs.joined[name].add(self._job.shard(number) / name)

    def _count(self, shard: Any) -> None:
        """Count a shard, as it comes."""
        summary, own = self._summary, shard.summary
        summary.add(own)
        summary.work.add(own.work)
        summary.warnings += own.warnings
        summary.seconds = time.perf_counter() - self._began
        for name, counts in own.devices.items():
            known = summary.devices.setdefault(name, dict.fromkeys(counts, 0.0))
            summary.devices[name] = {what: known[what] + count for what, count in counts.items()}
        done = f"{summary.reads:,} of {self._found:,} reads, {self._tasks.workers} workers"
        self._show(done, self._split * summary.reads / max(self._found, 1))

    def _merge(self, mapped: list[Any]) -> list[LibraryMetrics] | None:
        """Merge the sorted shards, range by range; the metrics of each library where duplicates are marked."""
        from readmap.dask.merge_tasks import mark, merge_range
        from readmap.dask.run_files import borders_of, ranges

        job, libraries = self._job, None
        if job.rules:
            self._show("marking duplicates")
            fragments = [shard.fragments for shard in mapped]
            (marked,) = self._tasks.results([self._tasks.submit("mark", 0, mark, job, job.rules, fragments)])
            libraries = marked.libraries
            if "metrics" in self._outputs.others:
                self._outputs.others["metrics"].write(marked.metrics.encode())
        parts = [*ranges(borders_of([shard.samples for shard in mapped]))]
        futures = [self._tasks.submit("merge", n, merge_range, job, n, *part) for n, part in enumerate(parts)]
        joined = self._outputs.joined[RECORDS]
        form = self._wanted.form or IndexFormat.CSI
        index = FileIndex(job.contig_lengths, form, len(self._wanted.header))
        for number, merged in enumerate(self._tasks.results(futures)):
            joined.add(job.range(number) / RECORDS, merged.block_sizes, merged.size)
            for seen in merged.seen:
                index.accumulate(seen)
            self._show(f"merging: {number + 1} of {len(parts)} ranges")
        if self._wanted.form:
            self._outputs.others["index"].write(joined.index(index))
        return libraries
