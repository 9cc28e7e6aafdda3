"""A search on a cluster: its shards are mapped by tasks, whatever worker takes them, and joined in their order."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from readmap.backend.machine import available_processors
from readmap.bam.file_index import FileIndex, IndexFormat
from readmap.dask.cluster import Tasks
from readmap.dask.job import RECORDS, UNMAPPED, Job
from readmap.dask.joining import Joined, open_index
from readmap.duplicates.metrics import LibraryMetrics
from readmap.formats.output import ByteSink, Pending, open_output
from readmap.formats.replacing import folder_beside
from readmap.reads.split_table import SplitTable, expect_as_many, read_table
from readmap.reads.splitting import MARKED_RECORDS, split_files
from readmap.search.learnt import Learnt
from readmap.search.mapping import MappingSummary

#: Marks of the table in a shard, where it begins at one: its begin has not to be looked for then.
LEAST_MARKS = 16


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
    learnt: Learnt | None = None
    tasks: int | None = None


@dataclass
class Found:
    """What was found: the outputs, which are to be committed, what was counted, in how many tasks, how many workers
    there are, and the duplicates of each library."""

    outputs: list[Pending]
    summary: MappingSummary
    tasks: int
    workers: int
    libraries: list[LibraryMetrics] | None = None


class _Outputs:
    """The files of a search, by their names."""

    def __init__(self, job: Job, wanted: Wanted, opened: contextlib.ExitStack) -> None:
        self.joined: dict[str, Joined] = {}
        self.others: dict[str, ByteSink] = {}
        paths = {RECORDS: wanted.output, UNMAPPED: wanted.unmapped}
        for name in job.outputs:
            level = job.packing.level if job.packing.blocked[name] else None
            joined = Joined(open_output(paths[name], available_processors()), level)
            opened.callback(joined.abort)
            self.joined[name] = joined
        if wanted.form:
            self.others["index"] = opened.enter_context(open_index(wanted.output, wanted.form))
        if wanted.metrics:
            self.others["metrics"] = opened.enter_context(open_output(wanted.metrics))

    @property
    def all(self) -> list[Pending]:
        """In the order in which they are committed."""
        return [*self.joined.values(), *self.others.values()]


@contextlib.contextmanager
def searched(client: Any, job: Job, wanted: Wanted, show: Progress) -> Iterator[Found]:
    """What a search has found, whose outputs the caller commits; else they are aborted.

    job: without its folder, table and tasks. Raises the errors of a search, and BackendError where the cluster fails.
    """
    tasks = Tasks(client)
    with contextlib.ExitStack() as opened:
        outputs = _Outputs(job, wanted, opened)
        folder = opened.enter_context(folder_beside(Path(wanted.output).absolute()))
        run = _Run(tasks, replace(job, folder=str(folder)), wanted, outputs, show)
        yield run()


class _Run:
    """One search."""

    def __init__(self, tasks: Tasks, job: Job, wanted: Wanted, outputs: _Outputs, show: Progress) -> None:
        self._tasks, self._job, self._wanted, self._outputs, self._show = tasks, job, wanted, outputs, show
        self._summary, self._reads, self._began = MappingSummary(), 0, 0.0

    def __call__(self) -> Found:
        from readmap.dask.mapping import learn, map_shard
        from readmap.dask.worker import task_reads

        learnt = self._wanted.learnt
        sizing = None if self._wanted.tasks else self._tasks.submit("size", 0, task_reads, self._job.resources)
        learning = None if learnt else self._tasks.submit("learn", 0, learn, self._job)
        self._split()
        self._divide(sizing)
        if learning:
            self._show("learning from the first reads")
            (learnt,) = self._tasks.results([learning])
        job, records = self._job, self._outputs.joined[RECORDS]
        records.begin(self._wanted.header)
        self._began = time.perf_counter()
        shards = [self._tasks.submit("map", number, map_shard, job, number, learnt) for number in range(job.tasks)]
        mapped = []
        for number, shard in enumerate(self._tasks.results(shards, self._count)):
            for name in job.outputs:
                if name != RECORDS or not job.is_sorted:
                    self._outputs.joined[name].add(job.shard(number) / name)
            mapped.append(shard)
        assert learnt is not None
        self._summary.bases_per_variant = learnt.bases_per_variant
        self._summary.libraries = {name: sizes for name, sizes in learnt.libraries.items() if sizes is not None}
        libraries = self._merge(mapped) if job.is_sorted else None
        return Found(self._outputs.all, self._summary, job.tasks, self._tasks.workers, libraries)

    def _split(self) -> None:
        """Have a table, and know how many reads there are."""
        job, path = self._job, self._wanted.table
        if path is None:

            def progress(records: int, read: int, size: int) -> None:
                self._show(f"finding where reads begin: {records:,} reads", read / size if size else None)

            table = SplitTable(
                "the table", split_files(job.files, available_processors(), progress, self._summary.warnings.append)
            )
            path = f"{job.folder}/reads.split"
            Path(path).write_bytes(table.to_bytes())
        else:
            table = read_table(path)
        files = iter([table.find(file) for file in job.files])
        for lane in job.lanes:
            own = [next(files) for _ in lane.files]
            if len(own) > 1:
                expect_as_many(lane.files, own)
            self._reads += sum(file.records for file in own)
        self._job = replace(job, table=str(Path(path).absolute()))

    def _divide(self, sizing: Any) -> None:
        """Have as many tasks as are wanted, or as reads make that suit a worker's device; sizing: tells of these."""
        tasks = self._wanted.tasks
        if tasks is None:
            (reads,) = self._tasks.results([sizing])
            tasks = max(-(-self._reads // reads), 1)
        multiple = MARKED_RECORDS if self._reads // tasks >= LEAST_MARKS * MARKED_RECORDS else 1
        self._job = replace(self._job, tasks=tasks, multiple=multiple)

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
        done = f"{summary.reads:,} of {self._reads:,} reads, {self._tasks.workers} workers"
        self._show(done, summary.reads / max(self._reads, 1))

    def _merge(self, mapped: list[Any]) -> list[LibraryMetrics] | None:
        """Merge the sorted shards, range by range; the metrics of each library where duplicates are marked."""
        from readmap.dask.merging import mark, merge_range
        from readmap.dask.runs import borders_of, ranges

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
                index.add(seen)
            self._show(f"merging: {number + 1} of {len(parts)} ranges")
        if self._wanted.form:
            self._outputs.others["index"].write(joined.index(index))
        return libraries
