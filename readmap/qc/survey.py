"""Counts by read group and coverage, measured while records are written."""

import threading
from collections.abc import Sequence

from readmap.backend import Array, Backend
from readmap.backend.cpu import CpuBackend
from readmap.errors import UsageError
from readmap.formats.sam import ReadGroupInfo
from readmap.qc.counts import RecordCounts
from readmap.qc.coverage import Coverage, CoverageEvents
from readmap.qc.tally import Depths, LaneTally, SampleTally, Tally

#: Maximum number of read groups; each takes two megabytes.
MAX_READ_GROUPS = 256


class Survey:
    """An observer of written records: `set_header`, then `measure` on several threads and `accumulate` in order."""

    def __init__(self, backend: Backend, are_sorted: bool = True) -> None:
        """backend: measures the records. are_sorted: by coordinate; otherwise coverage is not computed."""
        # On the host, each measuring thread has a backend with one thread.
        self._backend = CpuBackend(1) if backend.memory() is None else backend
        self._are_sorted = are_sorted
        self._threads = threading.local()
        self._groups: Sequence[ReadGroupInfo] = ()
        self._samples: list[str | None] = [None]  # of each read group, and of records without one
        self._contigs: Sequence[tuple[str, int]] = ()
        self._counts: RecordCounts | None = None
        self._coverage: Coverage | None = None
        self._lock = threading.Lock()

    def set_header(self, groups: Sequence[ReadGroupInfo], contigs: Sequence[tuple[str, int]]) -> None:
        """Set the read groups and contigs (name, length); raise UsageError if there are too many read groups."""
        if len(groups) > MAX_READ_GROUPS:
            raise UsageError(f"--report: {len(groups):,} read groups, the maximum is {MAX_READ_GROUPS}")
        self._groups, self._contigs, self._samples = groups, contigs, [*(group.sample for group in groups), None]

    def measure(
        self, records: Array, ends: Array, origin: int = 0, backend: Backend | None = None
    ) -> CoverageEvents | None:
        """Count records and return their events; ends: relative to `origin`; backend: device of records, None: host."""
        counts, coverage = self._tables
        if backend is None:
            if not hasattr(self._threads, "has_stream"):
                self._backend.use_thread_stream()
                self._threads.has_stream = True
            records, ends = self._backend.upload([records]), self._backend.to_device(ends)
        counts.measure(records, ends, origin)
        events = coverage.measure(records, ends, origin) if self._are_sorted else None
        if backend is None:
            self._backend.synchronize()  # the caller reuses the bytes, and another thread reads the events
        return events

    def accumulate(self, events: CoverageEvents | None) -> None:
        """Add the coverage events of the next records."""
        if self._coverage is not None and events is not None:
            self._coverage.accumulate(events)

    @property
    def _tables(self) -> tuple[RecordCounts, Coverage]:
        """The counters, created at the first call."""
        backend = self._backend
        with self._lock:
            if self._counts is None or self._coverage is None:
                self._counts = RecordCounts(self._groups, backend)
                names = [*dict.fromkeys(self._samples)]
                numbers = [names.index(name) for name in self._samples]
                lengths = [length for _, length in self._contigs]
                self._coverage = Coverage(self._groups, numbers, lengths, backend)
                backend.synchronize()  # other threads use other streams
            return self._counts, self._coverage

    def samples(self, unnamed: str) -> list[SampleTally]:
        """Return the counts of each sample, after the last record; unnamed: name of a sample without SM."""
        counts, coverage = self._tables
        coverage.finish()
        tables, (histogram, covered, missing_mc) = counts.to_host(), coverage.to_host()
        groups = [*self._groups, ReadGroupInfo("")]
        tallies = [Tally(**{name: table[number] for name, table in tables.items()}) for number in range(len(groups))]
        found = []
        for number, name in enumerate(dict.fromkeys(self._samples)):
            lanes = [
                LaneTally(group.name, group.library or "", tally)
                for group, sample, tally in zip(groups, self._samples, tallies, strict=True)
                if sample == name and (group.name or tally.all_records)
            ]
            if not lanes:
                continue
            depths = Depths(self._contigs, histogram[number], covered[number], int(missing_mc[number]))
            found.append(SampleTally(name or unnamed, lanes, depths if self._are_sorted else None))
        return found
