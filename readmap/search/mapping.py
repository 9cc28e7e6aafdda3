"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
from readmap.search.unmapped import format_unmapped

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
    """Reads that wait to be aligned; batch: as they were searched, None where they are to be."""

    reads: Reads
    batch: Batch | None


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

    def __init__(self, context: Context, style: Style | None = None) -> None:
        """context.sample: what is known before any read."""
        self.summary = MappingSummary()
        self._context = context
        self._style = style or Style()
        self._learning: _Learning | None = _Learning()
        self._waiting: list[_Held] = []

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self._style.comments

    def blocks(self, reads: Reads) -> Iterator[stream.Block]:
        """The blocks of a batch, behind those of all that are held; none yet where it is held itself."""
        if self._learning and self._learning.concerns(reads):
            batch = search_reads(reads, self._context)
            observed = observe(batch, self._context)
            # The bytes are a view of a buffer that goes round.
            reads = replace(reads, bytes=reads.bytes.copy())
            self._learning.observed.append(observed)
            self._learning.held.append(_Held(reads, replace(batch, reads=reads)))
            if not enough(self._learning.observed, self._context.pairing.insert_size):
                return
            self._learn(self._learning)
        else:
            self._waiting.append(_Held(reads, None))
        yield from self._aligned()

    def rest(self) -> Iterator[stream.Block]:
        """The blocks of the batches that are held."""
        if self._learning and self._learning.held:
            self._learn(self._learning)
        yield from self._aligned()

    def _learn(self, learning: _Learning) -> None:
        """From now on the sample is known."""
        sample = learn(learning.observed, self._context.pairing.insert_size)
        self._context = replace(self._context, sample=sample)
        self._waiting = learning.held
        self._learning = _Learning(learning.observed, is_for_pairs=True)
        self.summary.bases_per_variant = sample.bases_per_variant
        if have_pairs(learning.observed):
            self._learning = None
            self.summary.insert_sizes = sample.insert_sizes

    def _aligned(self) -> Iterator[stream.Block]:
        """The blocks of all that waits."""
        while self._waiting:
            yield from self._try(self._waiting.pop(0))

    def _try(self, held: _Held) -> Iterator[stream.Block]:
        """The blocks of a batch. Where memory ends, the reads that have none yet wait again, in halves."""
        backend, reads, done = self._context.backend, held.reads, 0
        try:
            for blocks, count in self._parts(held):
                done += count
                yield from blocks
        except backend.memory_error as error:
            if reads.count == reads.together:
                raise stream.DoesNotFit from error
            rest = reads.part(done, reads.count)
            parts = rest.halves() if rest.count > rest.together else [rest]
            self._waiting[:0] = [_Held(part, None) for part in parts]
        else:
            return
        backend.release_memory()

    def _parts(self, held: _Held) -> Iterator[tuple[list[stream.Block], int]]:
        """The blocks of a batch in parts of so many reads."""
        batch = held.batch or search_reads(held.reads, self._context)
        held.batch = None
        for part, alignments in align_reads(batch, self._context):
            blocks = self._format(part, alignments)
            count_alignments(alignments, part.counters, self._context)
            self.summary.add(part.counters)
            yield blocks, part.reads.count
        batch.work.windows = int(self._context.backend.xp.sum(batch.windows.counts))
        self.summary.work.add(batch.work)

    def _format(self, batch: Batch, alignments: Alignments) -> list[stream.Block]:
        """The records of a batch, and its reads without a place where those are wanted."""
        blocks = [stream.Block(format_records(alignments, batch, self._style, self._context), RECORDS)]
        if self._style.unmapped:
            unmapped = format_unmapped(alignments, batch.reads, self._context.backend)
            if len(unmapped):
                blocks.append(stream.Block(unmapped, UNMAPPED_READS))
        return blocks
