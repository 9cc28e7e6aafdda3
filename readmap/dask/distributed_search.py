"""A search by the workers of a cluster: tasks map shards, and the client joins them in the order of the reads."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from readmap.backend.machine import available_processors
from readmap.bam.file_index import FileIndex, IndexFormat, format_for
from readmap.dask.cluster import Tasks
from readmap.dask.concat_output import ConcatOutput, open_index
from readmap.dask.job import RECORDS, UNMAPPED, Job
from readmap.dask.shard_plan import Parts, equal_parts, sized_parts
from readmap.duplicates.metrics import LibraryMetrics
from readmap.errors import UsageError, option
from readmap.formats.atomic_files import temporary_folder
from readmap.formats.output import ByteSink, PendingOutput, open_output
from readmap.formats.sam import parse_header_lines
from readmap.formats.wording import pluralize
from readmap.index.index import Index
from readmap.reads.file_splitter import FileSplitter
from readmap.reads.shards import RecordLocator, SplitLanes
from readmap.reads.split_table import SplitFile, read_table
from readmap.run.config import SearchConfig
from readmap.run.conflicts import check_pair_options
from readmap.run.file_checks import NO_OUTPUTS, check_files
from readmap.run.index_loading import describe_setup, warn_index
from readmap.run.index_loading import open_index as open_searched_index
from readmap.run.monitor import Monitor
from readmap.run.read_mapper import MappingSummary
from readmap.run.sample_model import SampleModel
from readmap.run.search import FinishedSearch, known_sample_model, make_header
from readmap.run.summary import Origin, SearchSummary


@dataclass(frozen=True)
class DistributedSearch:
    """A search that has been checked. job: without its folder and its number of tasks. header: bytes before the
    records. model: None to estimate it."""

    job: Job
    path: Path
    index: Index
    header: bytes
    model: SampleModel | None

    @classmethod
    def of(cls, config: SearchConfig, more_outputs: Mapping[str, str | None] = NO_OUTPUTS) -> DistributedSearch:
        """Check a search and open its index; more_outputs: paths that the caller writes. Raises as open_search."""
        files = check_files(config, more_outputs)
        lines = [line for given in config.header for line in parse_header_lines(given)]
        path, index = open_searched_index(config, more_outputs)
        check_pair_options(config.given, any(layout.paired for layout in files.layouts))
        output = config.output or ""
        if os.path.exists(output) and not os.path.isfile(output):
            raise UsageError(f"{option('output')} {output}: no file, so workers cannot write next to it")
        if "-" in files.paths:
            raise UsageError(f"{option('dask')}: workers cannot read standard input: name files")
        model = known_sample_model(config, files, index)
        header = make_header(config, files.lanes, index.reference.contigs, lines)
        return cls(Job.of(config, files, path, index, lines), path, index, header, model)

    @contextlib.contextmanager
    def run(
        self, client: Any, monitor: Monitor, tasks: int | None = None, address: str | None = None
    ) -> Iterator[FinishedSearch]:
        """Run the search; on exit abort the outputs that the caller has not committed. tasks: equal shards, or None for
        shards of a size that suits the workers. address: the cluster's, for the report. Raises the errors of
        open_search, and BackendError if the cluster fails."""
        config, cluster = self.job.config, Tasks(client)
        for line in describe_setup(self.path, config):
            monitor.say(line)
        warn_index(self.path, self.index, config, monitor.say)
        with contextlib.ExitStack() as opened:
            outputs = _Outputs(self, opened)
            folder = opened.enter_context(temporary_folder(Path(config.output or "").absolute()))
            run = _Run(cluster, replace(self.job, folder=str(folder)), self, outputs, monitor, tasks)
            shards, libraries = run()
            device = f"{pluralize(cluster.workers, 'worker')} of Dask"
            origin = Origin(
                index=str(self.path),
                reads=self.job.files.paths,
                outputs=outputs.paths,
                reference=self.index,
                device=device,
                devices=device,
                cluster={"address": address, "workers": cluster.workers, "tasks": shards},
            )
            summary = SearchSummary(origin, run.summary, config.scoring, libraries)
            yield FinishedSearch(summary, outputs.pending)

    @property
    def index_format(self) -> IndexFormat | None:
        """The format of the index of the output; None if the output is not sorted."""
        if not self.job.is_sorted:
            return None
        wanted = self.job.config.index_format
        return IndexFormat(wanted) if wanted else format_for(max(self.job.contig_lengths, default=0))


class _Outputs:
    """The open outputs of a distributed search: concatenated ones, and others, by name."""

    def __init__(self, search: DistributedSearch, opened: contextlib.ExitStack) -> None:
        self.joined: dict[str, ConcatOutput] = {}
        self.others: dict[str, ByteSink] = {}
        job, config = search.job, search.job.config
        for name in job.outputs:
            path = config.unmapped if name == UNMAPPED else config.output
            output = opened.enter_context(open_output(path, available_processors()))
            self.joined[name] = ConcatOutput(output, job.level if job.is_compressed(name) else None)
        if index_format := search.index_format:
            self.others["index"] = opened.enter_context(open_index(config.output or "", index_format))
        if config.metrics:
            self.others["metrics"] = opened.enter_context(open_output(config.metrics))
        paths = {"output": config.output, "unmapped": config.unmapped, "metrics": config.metrics}
        self.paths = {name: path for name, path in paths.items() if path is not None}

    @property
    def pending(self) -> list[PendingOutput]:
        return [*self.joined.values(), *self.others.values()]


@dataclass
class _Run:
    """One run of a distributed search. job: with its folder. start: when mapping began. located, located_share: the
    number of reads that have been located, and the share of the files' bytes that they take."""

    cluster: Tasks
    job: Job
    search: DistributedSearch
    outputs: _Outputs
    monitor: Monitor
    tasks: int | None
    summary: MappingSummary = field(default_factory=MappingSummary)
    start: float = 0.0
    located: int = 0
    located_share: float = 1.0

    def __call__(self) -> tuple[int, list[LibraryMetrics] | None]:
        """Run it; return the number of shards, and the duplicates by library if they were marked."""
        from readmap.dask.map_tasks import estimate
        from readmap.dask.worker import task_reads

        model, tasks, config = self.search.model, self.tasks, self.job.config
        sizing = None if tasks else self.cluster.submit("size", 0, task_reads, config)
        estimating = None if model else self.cluster.submit("estimate", 0, estimate, self.job)
        with self._located_reads() as located:
            if sizing:
                (size,) = self.cluster.results([sizing])
            if estimating:
                self.monitor.show("estimating insert sizes and divergence")
                (model,) = self.cluster.results([estimating])
            assert model is not None
            self.start = time.perf_counter()
            shards = self._map(equal_parts(located, tasks) if tasks else sized_parts(located, size), model)
        self.job = replace(self.job, tasks=len(shards))
        self.summary.bases_per_difference = model.bases_per_difference
        self.summary.libraries = {name: sizes for name, sizes in model.libraries.items() if sizes is not None}
        return len(shards), self._merge(shards) if self.job.is_sorted else None

    @contextlib.contextmanager
    def _located_reads(self) -> Iterator[Callable[[], SplitLanes]]:
        """Yield a function that returns the reads located so far: with a split table all, else more at each call."""
        table_path = self.job.config.split
        if table_path is not None:
            table = read_table(table_path)
            whole = self._lanes([table.find(file) for file in self.job.files.paths])
            yield lambda: whole
            return
        with FileSplitter(self.job.files.paths, available_processors(), self.summary.warnings.append) as splitter:

            def located() -> SplitLanes:
                splitter.wait(0)
                lanes = self._lanes(splitter.files)
                records, read, size = splitter.progress
                self.located_share = read / max(size, 1)
                if not self.summary.reads:
                    self.monitor.show(f"finding where reads begin: {records:,} reads", self.located_share)
                return lanes

            yield located
            splitter.wait()  # for its warnings

    def _lanes(self, files: Sequence[SplitFile]) -> SplitLanes:
        """Return the located reads, given each file's table of record positions; set `located` to their number."""
        self.located, threads = sum(file.records for file in files), available_processors()
        paths, layouts = self.job.files.paths, self.job.files.layouts
        locators = [RecordLocator(path, file, threads) for path, file in zip(paths, files, strict=True)]
        return SplitLanes(locators, layouts)

    def _map(self, parts: Iterator[Parts], model: SampleModel) -> list[Any]:
        """Map all shards; append unmapped reads, and records unless sorted, in order. Return a MappedShard for each."""
        from readmap.dask.map_tasks import map_shard

        job, shards = self.job, list[Any]()
        self.outputs.joined[RECORDS].begin(self.search.header)
        # Records are copied by a thread of their own, while further shards are located and submitted.
        pool, joining = ThreadPoolExecutor(1, "readmap-join"), deque[Future[None]]()

        def futures() -> Iterator[Any]:
            index = 0
            for part in parts:
                if part is None:
                    yield None
                    continue
                yield self.cluster.submit("map", index, map_shard, job, index, part, model)
                index += 1

        try:
            for index, shard in enumerate(self.cluster.results(futures(), self._count)):
                joining.append(pool.submit(self._join, index))
                shards.append(shard)
                while joining and joining[0].done():
                    joining.popleft().result()
            for joined in joining:
                joined.result()
        finally:
            pool.shutdown(cancel_futures=True)
        return shards

    def _join(self, shard: int) -> None:
        for name in self.job.outputs:
            if name != RECORDS or not self.job.is_sorted:
                self.outputs.joined[name].add(self.job.shard(shard) / name)

    def _count(self, shard: Any) -> None:
        """Add the counts of a MappedShard to `summary`, and show the progress."""
        summary, own = self.summary, shard.summary
        summary.add(own)
        summary.work.add(own.work)
        summary.warnings += own.warnings
        summary.seconds = time.perf_counter() - self.start
        for name, counts in own.devices.items():
            known = summary.devices.setdefault(name, dict.fromkeys(counts, 0.0))
            summary.devices[name] = {what: known[what] + count for what, count in counts.items()}
        done = f"{summary.reads:,} of {self.located:,} reads, {self.cluster.workers} workers"
        self.monitor.show(done, self.located_share * summary.reads / max(self.located, 1))

    def _merge(self, shards: list[Any]) -> list[LibraryMetrics] | None:
        """Mark duplicates, merge shards by ranges, write index and metrics; return metrics by library, or None."""
        from readmap.dask.merge_tasks import mark, merge_range
        from readmap.dask.run_files import borders_of

        job, libraries = self.job, None
        if job.rules:
            self.monitor.show("marking duplicates")
            fragments = [shard.fragments for shard in shards]
            (marked,) = self.cluster.results([self.cluster.submit("mark", 0, mark, job, job.rules, fragments)])
            libraries = marked.libraries
            if "metrics" in self.outputs.others:
                self.outputs.others["metrics"].write(marked.metrics.encode())
        parts = [*pairwise([None, *borders_of([shard.samples for shard in shards]), None])]
        futures = [self.cluster.submit("merge", n, merge_range, job, n, *part) for n, part in enumerate(parts)]
        joined = self.outputs.joined[RECORDS]
        index_format = self.search.index_format or IndexFormat.CSI
        index = FileIndex(job.contig_lengths, index_format, len(self.search.header))
        for number, merged in enumerate(self.cluster.results(futures)):
            size = sum(entries.size for entries in merged.entries)
            joined.add(job.range(number) / RECORDS, merged.block_sizes, size)
            for entries in merged.entries:
                index.accumulate(entries)
            self.monitor.show(f"merging: {number + 1} of {len(parts)} ranges")
        self.outputs.others["index"].write(joined.index(index))
        return libraries
