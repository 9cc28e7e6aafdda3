"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from readmap.duplicates.marker import DuplicateMarker
from readmap.mapping.alignments import count_alignments
from readmap.mapping.batch import Batch
from readmap.mapping.context import Context, Sample
from readmap.mapping.counters import Counters, Work
from readmap.mapping.inserts import InsertSize
from readmap.mapping.device_counters import CapacityExceeded, CapacityEstimates
from readmap.mapping.pipeline import align_reads, search_again, search_reads
from readmap.mapping.records import Style
from readmap.mapping.windows import count_windows
from readmap.reads.parsing import Reads
from readmap.run.device_reads import DeviceReads
from readmap.run.replay_filter import ReplayFilter
from readmap.run.sample_model import SampleModel
from readmap.run.record_blocks import Made, RecordBlocks
from readmap.run.sample import Observed, enough, have_pairs, learn, observe
from readmap.run.chunk_turns import Turn, only_turn
from readmap.run.batch_processor import DoesNotFit, RunSummary
from readmap.run.writer import Block


@dataclass
class MappingSummary(RunSummary, Counters):
    """What a search counted, and what it learnt of the sample.

    Attributes:
        bases_per_difference: in which the sample is expected to differ once from the reference; None where no reads came.
        libraries: by name, the insert sizes of each that has pairs, one a direction.
        work: what was done for the reads.
        lost: of BAM and CRAM, reads that are single since their mates were not found; None of other files.
    """

    bases_per_difference: int | None = None
    libraries: dict[str, tuple[InsertSize, ...]] = field(default_factory=dict)
    lost: int | None = None
    work: Work = field(default_factory=Work)

    @property
    def insert_sizes(self) -> tuple[InsertSize, ...] | None:
        """Of the only library; None where there are no pairs, or several libraries."""
        return next(iter(self.libraries.values())) if len(self.libraries) == 1 else None

    @property
    def written(self) -> int:
        """Reads whose primary records have been written."""
        return self.primary


@dataclass
class PendingBatch:
    """Reads that wait to be aligned.

    batch: as they were searched, None where they are to be; work: what it took. overflowed: whether there was no room
    for what was found of them. is_counted: whether their records are, though not copied; handed: what outputs have.
    """

    arrival: DeviceReads
    batch: Batch | None = None
    overflowed: bool = False
    work: Work = field(default_factory=Work)
    is_counted: bool = False
    handed: ReplayFilter = field(default_factory=ReplayFilter)

    def of(self, arrival: DeviceReads) -> PendingBatch:
        """The same of some of the reads, or of these on another device, before anything is done with them."""
        return PendingBatch(arrival, is_counted=self.is_counted, handed=self.handed)


@dataclass
class _Learning:
    """What the first reads of a library showed, and the reads themselves.

    is_for_pairs: whether all is known but the insert sizes, which single reads do not need.
    """

    library: str
    observed: list[Observed] = field(default_factory=list)
    held: list[PendingBatch] = field(default_factory=list)
    is_for_pairs: bool = False

    def concerns(self, reads: Reads) -> bool:
        """Whether the reads show more, or come behind such reads."""
        return reads.paired or bool(self.held) or not self.is_for_pairs


class ReadMapper:
    """Maps batches of reads and counts them in `summary`.

    What is expected of the reads is what the first ones show, however they come in batches: until enough of them have
    been searched, batches are held, and aligned afterwards. Where the first reads are single, pairs may still come. The
    first reads of all tell of the sample, those of each library of its insert sizes: as many as lie in front of another
    library's.
    """

    def __init__(
        self,
        contexts: Sequence[Context],
        style: Style | None = None,
        pairs_may_come: bool = True,
        duplicates: DuplicateMarker | None = None,
        learnt: SampleModel | None = None,
    ) -> None:
        """contexts: one for each device, with the index there. pairs_may_come: even where the first reads are single.

        duplicates: is told of all fragments, where duplicates of sorted records are to be marked. learnt: what is known
        before any read; of libraries that it does not know more is learnt.
        """
        self.summary = MappingSummary()
        # With all places of a read, what one batch needs says little of the next.
        rates = [None if context.reporting.most_secondary else CapacityEstimates() for context in contexts]
        self._contexts = [replace(context, rates=own) for context, own in zip(contexts, rates, strict=True)]
        self._pairing = contexts[0].pairing
        self._errors = tuple({error for context in contexts for error in context.backend.device_errors})
        self._style = style or Style()
        self._pairs_may_come = pairs_may_come
        self._blocks = RecordBlocks(contexts[0], self._style, duplicates)
        self._libraries = [group.field("LB") or "" for group in self._style.read_groups]  # by lane
        self._given = learnt or SampleModel()
        self._known = self._given.samples
        self._learning: _Learning | None = None
        self.summary.bases_per_difference = self._given.bases_per_difference
        sizes = {name: self._given.libraries.get(name) for name in self._libraries}
        self.summary.libraries = {name: own for name, own in sizes.items() if own is not None}

    @property
    def learnt(self) -> SampleModel:
        """What the reads have shown, once no more is learnt."""
        own = {name: self.summary.libraries.get(name) for name in self._libraries}
        return SampleModel(self.summary.bases_per_difference, {**self._given.libraries, **own})

    @property
    def is_learning(self) -> bool:
        """Whether more reads may show more."""
        return self._learning is not None or any(name not in self._known for name in self._libraries)

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self._style.comments

    def blocks(self, arrival: DeviceReads, turn: Turn) -> Iterator[Block]:
        """The blocks of a batch, behind those of all that are held; none yet where it is held itself."""
        library = self._libraries[arrival.reads.lane]
        if library not in self._known or self._learning:  # in this order, see _begin
            turn()
        place = arrival.place
        if self._learning and self._learning.library != library:
            place = yield from self._learn(self._learning, place, turn)
            self._learning = None
        if library not in self._known:
            self._begin(library)
        learning = self._learning
        if not (learning and learning.concerns(arrival.reads)):
            yield from self._try(PendingBatch(arrival), place, turn)
            return
        held, observed = self._observe(arrival, self._known[library])
        held.arrival.keep()
        learning.observed.append(observed)
        learning.held.append(held)
        if enough(learning.observed, self._pairing.insert_size):
            yield from self._learn(learning, held.arrival.place, turn)

    def rest(self, place: int = 0) -> Iterator[Block]:
        """The blocks of the batches that are held."""
        if self._learning:
            yield from self._learn(self._learning, place, only_turn())

    def _begin(self, library: str) -> None:
        """What comes next is of another library."""
        variants = self.summary.bases_per_difference
        # Another thread that finds the library known is to find, too, that more is being learnt.
        self._learning = _Learning(library, is_for_pairs=variants is not None)
        self._known[library] = Sample() if variants is None else Sample(variants)

    def _observe(self, arrival: DeviceReads, sample: Sample) -> tuple[PendingBatch, Observed]:
        """A batch that is searched, to be held, and what it shows."""
        context = _learning_rates(replace(self._contexts[arrival.place], sample=sample))
        try:
            batch = search_reads(arrival.reads, context)
            return PendingBatch(arrival, batch), observe(batch, context)
        except self._errors as error:
            return self._observe(arrival.elsewhere(error), sample)

    def _learn(self, learning: _Learning, place: int, turn: Turn) -> Generator[Block, None, int]:
        """From now on the library is known, and the sample: the blocks of the batches that are held. Returns the place
        of the device that the thread uses then."""
        if not learning.held:
            return place
        sample, held = learn(learning.observed, self._pairing.insert_size), learning.held
        if self.summary.bases_per_difference is None:
            self.summary.bases_per_difference = sample.bases_per_difference
        self._known[learning.library] = replace(sample, bases_per_difference=self.summary.bases_per_difference)
        self._learning = None
        if have_pairs(learning.observed):
            self.summary.libraries[learning.library] = sample.insert_sizes
        elif self._pairs_may_come:
            self._learning = _Learning(learning.library, learning.observed, is_for_pairs=True)
        while held:
            one = held.pop(0)
            place = yield from self._try(one, place, turn)
            one.arrival.release()
        return place

    def _try(self, held: PendingBatch, place: int, turn: Turn) -> Generator[Block, None, int]:
        """The blocks of a batch. Where memory ends, the reads that have none yet are mapped in halves, where the device
        fails, on another, and where there was no room for what was found, once more; place: of the device that this
        thread uses. Returns that which it uses then."""
        arrival, backend, is_counted = held.arrival, self._contexts[place].backend, held.is_counted
        count, together, done, counted = arrival.reads.count, arrival.reads.records_per_fragment, 0, 0
        rests: Sequence[PendingBatch] = ()
        try:
            if arrival.place != place:  # what was held is searched again, rather than fetched
                arrival = arrival.on(place)
                place, backend = arrival.place, self._contexts[arrival.place].backend
                held = replace(held.of(arrival), overflowed=held.overflowed)
            for part, made in self._parts(held):
                turn()
                if not is_counted:
                    self._blocks.tell_duplicates(made, backend)
                    self.summary.add(part.counters)
                counted = done + part.reads.count
                yield from held.handed.missing(made.blocks)
                done = counted
            turn()
            self.summary.work.add(held.work)
        except backend.memory_error as error:
            backend.synchronize()  # a batch that was held goes back to the thread that searched it
            were_others, rest = turn.alone(), arrival.part(done, count)
            if were_others or rest.reads.count == together < count:
                rests = [held.of(rest)]
            elif rest.reads.count > together:
                rests = [*map(held.of, rest.halves())]
            else:
                raise DoesNotFit from error
            backend.release_memory()
        except self._errors as error:
            place = arrival.leave(error)
            again, rest = arrival.part(done, counted), arrival.part(counted, count)
            rests = [
                one for one in (replace(held.of(again), is_counted=True), held.of(rest)) if one.arrival.reads.count
            ]
        except CapacityExceeded:
            rests = [replace(held.of(arrival), overflowed=True)]
        for one in rests:
            place = yield from self._try(one, place, turn)
        return place

    def _parts(self, held: PendingBatch) -> Iterator[tuple[Batch, Made]]:
        """The parts of a batch and what is made of them; the batch is not held any more."""
        reads = held.arrival.reads
        context = replace(self._contexts[held.arrival.place], sample=self._known[self._libraries[reads.lane]])
        if held.overflowed:
            context = _learning_rates(context)
        batch = search_again(held.batch, context) if held.batch else search_reads(reads, context)
        held.batch, held.work = None, batch.work
        batch.work.repeated = reads.count if held.overflowed else 0
        for part, alignments in align_reads(batch, context):
            count_windows(part, context)
            count_alignments(alignments, part, context)
            made = self._blocks.of(part, alignments, context)
            if part is not batch:
                batch.work.add(part.work)
            # A device that has failed says so here, where another does its work. And what was held goes back to the
            # thread that searched it, which does not wait for this one's launches.
            context.backend.synchronize()
            yield part, made


def _learning_rates(context: Context) -> Context:
    """The same, where the host hears of all sizes at once, by which the rates are learnt."""
    return replace(context, rates=context.rates and replace(context.rates, are_used=False))
