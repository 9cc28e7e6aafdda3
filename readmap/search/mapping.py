"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from readmap.bam.order import sort_records
from readmap.reads.parsing import Reads
from readmap.search import stream
from readmap.search.alignments import Alignments, count_alignments
from readmap.search.batch import Batch
from readmap.search.context import Context
from readmap.search.counters import Counters, Work
from readmap.search.inserts import InsertSize
from readmap.search.pipeline import align_reads, search_reads
from readmap.search.records import Style, format_records
from readmap.search.sample import Observed, enough, have_pairs, learn, observe
from readmap.search.turns import Turn, only_turn
from readmap.search.unmapped import format_unmapped
from readmap.search.windows import count_windows

#: The outputs of the blocks: records, and reads without a place.
RECORDS, UNMAPPED_READS = range(2)


@dataclass
class MappingSummary(stream.RunSummary, Counters):
    """What a search counted, and what it learnt of the sample.

    Attributes:
        bases_per_variant: in which the sample is expected to differ once from the reference; None where no reads came.
        insert_sizes: of the library, one a direction; None where there are no pairs.
        work: what was done for the reads.
        lost: of BAM and CRAM, reads that are single since their mates were not found; None of other files.
    """

    bases_per_variant: int | None = None
    insert_sizes: tuple[InsertSize, ...] | None = None
    lost: int | None = None
    work: Work = field(default_factory=Work)

    @property
    def written(self) -> int:
        """Reads whose primary records have been written."""
        return self.primary


@dataclass
class _Held:
    """Reads that wait to be aligned; batch: as they were searched, None where they are to be; work: what it took."""

    reads: Reads
    batch: Batch | None
    work: Work = field(default_factory=Work)


@dataclass
class _Learning:
    """What the first reads showed, and the reads themselves.

    is_for_pairs: whether all is known but the insert sizes, which single reads do not need.
    """

    observed: list[Observed] = field(default_factory=list)
    held: list[_Held] = field(default_factory=list)
    is_for_pairs: bool = False

    def concerns(self, reads: Reads) -> bool:
        """Whether the reads show more, or come behind such reads."""
        return reads.paired or bool(self.held) or not self.is_for_pairs


class Mapping:
    """Maps batches of reads and counts them in `summary`.

    What is expected of the reads is what the first ones show, however they come in batches: until enough of them have
    been searched, batches are held, and aligned afterwards. Where the first reads are single, pairs may still come.
    """

    def __init__(self, context: Context, style: Style | None = None, pairs_may_come: bool = True) -> None:
        """context.sample: what is known before any read. pairs_may_come: even where the first reads are single."""
        self.summary = MappingSummary()
        self._context = context
        self._style = style or Style()
        self._pairs_may_come = pairs_may_come
        self._learning: _Learning | None = _Learning()

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self._style.comments

    def blocks(self, reads: Reads, turn: Turn) -> Iterator[stream.Block]:
        """The blocks of a batch, behind those of all that are held; none yet where it is held itself."""
        if self._learning:
            turn()
        if not (self._learning and self._learning.concerns(reads)):
            yield from self._try(_Held(reads, None), turn)
            return
        batch = search_reads(reads, self._context)
        observed = observe(batch, self._context)
        # The bytes are a view of a buffer that goes round.
        reads = replace(reads, bytes=reads.bytes.copy())
        self._learning.observed.append(observed)
        self._learning.held.append(_Held(reads, replace(batch, reads=reads)))
        if enough(self._learning.observed, self._context.pairing.insert_size):
            yield from self._learn(self._learning, turn)

    def rest(self) -> Iterator[stream.Block]:
        """The blocks of the batches that are held."""
        if self._learning and self._learning.held:
            yield from self._learn(self._learning, only_turn())

    def _learn(self, learning: _Learning, turn: Turn) -> Iterator[stream.Block]:
        """From now on the sample is known: the blocks of the batches that are held."""
        sample, held = learn(learning.observed, self._context.pairing.insert_size), learning.held
        self._context = replace(self._context, sample=sample)
        self._learning = _Learning(learning.observed, is_for_pairs=True) if self._pairs_may_come else None
        self.summary.bases_per_variant = sample.bases_per_variant
        if have_pairs(learning.observed):
            self._learning = None
            self.summary.insert_sizes = sample.insert_sizes
        while held:
            yield from self._try(held.pop(0), turn)

    def _try(self, held: _Held, turn: Turn) -> Iterator[stream.Block]:
        """The blocks of a batch. Where memory ends, the reads that have none yet are mapped in halves."""
        backend, reads, done = self._context.backend, held.reads, 0
        rests: Sequence[Reads] = ()
        try:
            for part, blocks in self._parts(held):
                turn()
                self.summary.add(part.counters)
                done += part.reads.count
                yield from blocks
            turn()
            self.summary.work.add(held.work)
        except backend.memory_error as error:
            backend.synchronize()  # a batch that was held goes back to the thread that searched it
            were_others, rest = turn.alone(), reads.part(done, reads.count)
            if were_others or rest.count == rest.together < reads.count:
                rests = [rest]
            elif rest.count > rest.together:
                rests = rest.halves()
            else:
                raise stream.DoesNotFit from error
        if rests:
            backend.release_memory()
        for rest in rests:
            yield from self._try(_Held(rest, None), turn)

    def _parts(self, held: _Held) -> Iterator[tuple[Batch, list[stream.Block]]]:
        """The parts of a batch and their blocks; the batch is not held any more."""
        batch = held.batch or search_reads(held.reads, self._context)
        held.batch, held.work = None, batch.work
        for part, alignments in align_reads(batch, self._context):
            blocks = self._format(part, alignments)
            count_alignments(alignments, part.counters, self._context)
            batch.work.windows = batch.work.windows or count_windows(batch, self._context)
            yield part, blocks

    def _format(self, batch: Batch, alignments: Alignments) -> list[stream.Block]:
        """The records of a batch, and its reads without a place where those are wanted."""
        records = format_records(alignments, batch, self._style, self._context)
        if self._style.in_order:
            contigs, backend = len(self._context.index.contig_names.offsets) - 1, self._context.backend
            run = sort_records(records.bytes, records.lengths, records.ends, contigs, backend)
            blocks = [stream.Block(run.bytes, RECORDS, run)]
        else:
            blocks = [stream.Block(records.bytes, RECORDS)]
        if self._style.unmapped:
            unmapped = format_unmapped(alignments, batch.reads, self._context.backend)
            if len(unmapped):
                blocks.append(stream.Block(unmapped, UNMAPPED_READS))
        return blocks
