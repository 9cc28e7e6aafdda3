"""Batches of reads -> blocks of alignment records (DeviceReads -> Block)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from readmap.duplicates.marker import DuplicateMarker
from readmap.formats.wording import format_ratio
from readmap.mapping.alignments import count_alignments
from readmap.mapping.batch import Batch, Context, Sample
from readmap.mapping.counters import Counters, WorkCounters
from readmap.mapping.device_counters import CapacityEstimates, CapacityExceeded
from readmap.mapping.inserts import InsertSize
from readmap.mapping.pipeline import align_reads, search_again, search_reads
from readmap.mapping.records import RecordStyle
from readmap.mapping.windows import count_windows
from readmap.run.batch_processor import DoesNotFit, RunSummary
from readmap.run.chunk_turns import ChunkTurn, exclusive_turn
from readmap.run.device_reads import DeviceReads
from readmap.run.record_blocks import RecordBatch, RecordBlocks
from readmap.run.sample import Observation, SampleEstimator, observe
from readmap.run.sample_model import SampleModel
from readmap.run.writer import Block, ReplayFilter


@dataclass
class MappingSummary(RunSummary, Counters):
    """What a search counted and estimated. bases_per_difference: bases in which one difference from the reference is
    expected; None without reads. libraries: by library with pairs, the insert sizes, one for each orientation. lost:
    reads of BAM or CRAM that are mapped as single because their mates were not found; None for other files."""

    bases_per_difference: int | None = None
    libraries: dict[str, tuple[InsertSize, ...]] = field(default_factory=dict)
    lost: int | None = None
    work: WorkCounters = field(default_factory=WorkCounters)

    @property
    def insert_sizes(self) -> tuple[InsertSize, ...] | None:
        """The insert sizes of the only library; None without pairs or with several libraries."""
        return next(iter(self.libraries.values())) if len(self.libraries) == 1 else None

    @property
    def written(self) -> int:
        return self.primary

    def describe_progress(self) -> str:
        return f"{format_ratio(self.mapped, self.reads)} mapped"


@dataclass
class PendingBatch:
    """Reads that are to be aligned. batch: the searched batch, or None if the reads still have to be searched; work:
    what searching it took. has_overflowed: a device list had too little room for what was found for these reads.
    is_counted: the records have been counted, though not all have been copied."""

    reads: DeviceReads
    batch: Batch | None = None
    has_overflowed: bool = False
    work: WorkCounters = field(default_factory=WorkCounters)
    is_counted: bool = False
    replay_filter: ReplayFilter = field(default_factory=ReplayFilter)

    def restart(self, reads: DeviceReads) -> PendingBatch:
        """Return the batch of some of the reads, or of the reads on another device, before any work on it."""
        return PendingBatch(reads, is_counted=self.is_counted, replay_filter=self.replay_filter)


class ReadMapper:
    """Maps batches of reads and counts them in `summary`. The first batches are searched and kept until the sample has
    been estimated from them (see sample.py)."""

    def __init__(
        self,
        contexts: Sequence[Context],
        style: RecordStyle | None = None,
        pairs_may_come: bool = True,
        marker: DuplicateMarker | None = None,
        model: SampleModel | None = None,
    ) -> None:
        """contexts: one for each device. pairs_may_come: even if the first reads are single. marker: is given all
        fragments. model: what is known before the first read; libraries that it does not contain are estimated."""
        self.summary = MappingSummary()
        # If all places of a read are reported, what one batch needs predicts little of the next.
        rates = [None if context.reporting.max_secondary else CapacityEstimates() for context in contexts]
        self._contexts = [
            replace(context, capacity_estimates=own) for context, own in zip(contexts, rates, strict=True)
        ]
        self._errors = tuple({error for context in contexts for error in context.backend.device_errors})
        self._style = style or RecordStyle()
        self._blocks = RecordBlocks(contexts[0], self._style, marker)
        self._libraries = [group.field("LB") or "" for group in self._style.read_groups]  # by lane
        insert_size = contexts[0].pairing.insert_size
        self._estimator = SampleEstimator[PendingBatch](
            model or SampleModel(), self._libraries, insert_size, pairs_may_come
        )
        self._count_model()

    @property
    def comments(self) -> bool:
        return self._style.comments

    def blocks(self, reads: DeviceReads, turn: ChunkTurn) -> Iterator[Block]:
        """Yield the blocks of a batch after the blocks of all pending batches, or none if the batch becomes pending."""
        estimator, library, device_index = self._estimator, self._libraries[reads.reads.lane], reads.device_index
        if estimator.is_open(library):
            turn.wait()
            device_index = yield from self._align_all(estimator.start_library(library), device_index, turn)
            if estimator.wants(reads.reads):
                sample = estimator.sample_of(library)
                pending, observation = observe_reads(reads, self._contexts, sample, self._errors)
                pending.reads.keep()
                ready = estimator.add(pending, observation)
                yield from self._align_all(ready, pending.reads.device_index, turn)
                return
        yield from self._align(PendingBatch(reads), device_index, turn)

    def remaining_blocks(self, device_index: int = 0) -> Iterator[Block]:
        """Yield the blocks of the batches that are still pending after the last batch."""
        yield from self._align_all(self._estimator.finish(), device_index, exclusive_turn())

    def _align_all(
        self, pending: list[PendingBatch], device_index: int, turn: ChunkTurn
    ) -> Generator[Block, None, int]:
        """Align batches, yield their blocks and release their reads; return the index of the device used last."""
        if pending:
            self._count_model()
        while pending:
            one = pending.pop(0)
            device_index = yield from self._align(one, device_index, turn)
            one.reads.release()
        return device_index

    def _count_model(self) -> None:
        """Copy the estimated divergence and the insert sizes of each library to `summary`."""
        model = self._estimator.model
        self.summary.bases_per_difference = model.bases_per_difference
        known = {name: model.libraries.get(name) for name in [*self._libraries, *model.libraries]}
        self.summary.libraries = {
            name: sizes for name, sizes in known.items() if sizes is not None and name in self._libraries
        }

    def _align(self, pending: PendingBatch, device_index: int, turn: ChunkTurn) -> Generator[Block, None, int]:
        """Align a batch, count it and yield its blocks; return the index of the device that the thread uses then.

        If memory runs out, the reads that have no blocks yet are mapped in halves; if the device fails, on another one;
        if a device list was too short, once more with exact sizes. device_index: the device that this thread uses."""
        reads, backend, is_counted = pending.reads, self._contexts[device_index].backend, pending.is_counted
        count, together, written, counted = reads.reads.count, reads.reads.records_per_fragment, 0, 0
        again: Sequence[PendingBatch] = ()
        try:
            if reads.device_index != device_index:  # a batch on another device is searched again rather than copied
                reads = reads.on(device_index)
                device_index, backend = reads.device_index, self._contexts[reads.device_index].backend
                pending = replace(pending.restart(reads), has_overflowed=pending.has_overflowed)
            for part, made in self._parts(pending):
                turn.wait()
                if not is_counted:
                    self._blocks.count_fragments(made, backend)
                    self.summary.add(part.counters)
                counted = written + part.reads.count
                yield from pending.replay_filter.missing(made.blocks)
                written = counted
            turn.wait()
            self.summary.work.add(pending.work)
        except backend.memory_error as error:
            backend.synchronize()  # memory of a pending batch returns to the thread that searched it
            were_others, rest = turn.wait_exclusive(), reads.part(written, count)
            if were_others or rest.reads.count == together < count:
                again = [pending.restart(rest)]
            elif rest.reads.count > together:
                again = [*map(pending.restart, rest.halves())]
            else:
                raise DoesNotFit from error
            backend.release_memory()
        except self._errors as error:
            device_index = reads.exclude_device(error)
            uncopied, rest = reads.part(written, counted), reads.part(counted, count)
            restarted = replace(pending.restart(uncopied), is_counted=True), pending.restart(rest)
            again = [one for one in restarted if one.reads.reads.count]
        except CapacityExceeded:
            again = [replace(pending.restart(reads), has_overflowed=True)]
        for one in again:
            device_index = yield from self._align(one, device_index, turn)
        return device_index

    def _parts(self, pending: PendingBatch) -> Iterator[tuple[Batch, RecordBatch]]:
        """Search and align a batch; yield its parts, each with its blocks. Clears pending.batch, sets pending.work."""
        reads = pending.reads.reads
        sample = self._estimator.sample_of(self._libraries[reads.lane])
        context = replace(self._contexts[pending.reads.device_index], sample=sample)
        if pending.has_overflowed:
            context = _with_exact_sizes(context)
        batch = search_again(pending.batch, context) if pending.batch else search_reads(reads, context)
        pending.batch, pending.work = None, batch.work
        batch.work.repeated = reads.count if pending.has_overflowed else 0
        for part, alignments in align_reads(batch, context):
            count_windows(part, context)
            count_alignments(alignments, part, context)
            made = self._blocks.of(part, alignments, context)
            if part is not batch:
                batch.work.add(part.work)
            # A device that has failed raises its error here, where another device can take over. And memory of a
            # pending batch returns to the thread that searched it, which does not wait for the launches of this thread.
            context.backend.synchronize()
            yield part, made


def observe_reads(
    reads: DeviceReads, contexts: Sequence[Context], sample: Sample, errors: tuple[type[Exception], ...]
) -> tuple[PendingBatch, Observation]:
    """Search reads; return them as a pending batch, and what they contribute to the sample model. errors: of devices;
    if one fails, another device takes over, on which the pending batch is."""
    context = _with_exact_sizes(replace(contexts[reads.device_index], sample=sample))
    try:
        batch = search_reads(reads.reads, context)
        return PendingBatch(reads, batch), observe(batch, context)
    except errors as error:
        return observe_reads(reads.on(reads.exclude_device(error)), contexts, sample, errors)


def _with_exact_sizes(context: Context) -> Context:
    """Return a context in which the host reads every size back at once; capacities are estimated from these sizes."""
    return replace(
        context, capacity_estimates=context.capacity_estimates and replace(context.capacity_estimates, is_enabled=False)
    )
