"""Reads -> records of their alignments: what `readmap search` does with a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from readmap.bam.name_order import sort_by_name
from readmap.bam.order import SortOrder, sort_records
from readmap.duplicates.fragments import Described
from readmap.duplicates.marker import Duplicates
from readmap.reads.parsing import Reads
from readmap.search import stream
from readmap.search.alignments import Alignments, count_alignments
from readmap.search.batch import Batch
from readmap.search.context import Context, Sample
from readmap.search.counters import Counters, Work
from readmap.search.inserts import InsertSize
from readmap.search.pipeline import align_reads, search_again, search_reads
from readmap.search.records import Style, format_records
from readmap.search.sample import Observed, enough, have_pairs, learn, observe
from readmap.search.turns import Turn, only_turn
from readmap.search.unmapped import format_unmapped
from readmap.search.windows import count_windows
from readmap.search.writer import Block

#: The outputs of the blocks: records, and reads without a place.
RECORDS, UNMAPPED_READS = range(2)


@dataclass
class MappingSummary(stream.RunSummary, Counters):
    """What a search counted, and what it learnt of the sample.

    Attributes:
        bases_per_variant: in which the sample is expected to differ once from the reference; None where no reads came.
        libraries: by name, the insert sizes of each that has pairs, one a direction.
        work: what was done for the reads.
        lost: of BAM and CRAM, reads that are single since their mates were not found; None of other files.
    """

    bases_per_variant: int | None = None
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
class _Held:
    """Reads that wait to be aligned; batch: as they were searched, None where they are to be; work: what it took."""

    reads: Reads
    batch: Batch | None
    work: Work = field(default_factory=Work)


@dataclass
class _Learning:
    """What the first reads of a library showed, and the reads themselves.

    is_for_pairs: whether all is known but the insert sizes, which single reads do not need.
    """

    library: str
    observed: list[Observed] = field(default_factory=list)
    held: list[_Held] = field(default_factory=list)
    is_for_pairs: bool = False

    def concerns(self, reads: Reads) -> bool:
        """Whether the reads show more, or come behind such reads."""
        return reads.paired or bool(self.held) or not self.is_for_pairs


class Mapping:
    """Maps batches of reads and counts them in `summary`.

    What is expected of the reads is what the first ones show, however they come in batches: until enough of them have
    been searched, batches are held, and aligned afterwards. Where the first reads are single, pairs may still come. The
    first reads of all tell of the sample, those of each library of its insert sizes: as many as lie in front of another
    library's.
    """

    def __init__(
        self,
        context: Context,
        style: Style | None = None,
        pairs_may_come: bool = True,
        duplicates: Duplicates | None = None,
    ) -> None:
        """context.sample: what is known before any read. pairs_may_come: even where the first reads are single.

        duplicates: is told of all fragments, where duplicates of sorted records are to be marked.
        """
        self.summary = MappingSummary()
        self._context = context
        self._style = style or Style()
        self._pairs_may_come = pairs_may_come
        self._duplicates = duplicates
        self._libraries = [group.field("LB") or "" for group in self._style.read_groups]  # by lane
        self._known: dict[str, Context] = {}
        self._learning: _Learning | None = None

    @property
    def comments(self) -> bool:
        """Whether the reads' comments are tags."""
        return self._style.comments

    def blocks(self, reads: Reads, turn: Turn) -> Iterator[Block]:
        """The blocks of a batch, behind those of all that are held; none yet where it is held itself."""
        library = self._libraries[reads.lane]
        if library not in self._known or self._learning:  # in this order, see _begin
            turn()
        if self._learning and self._learning.library != library:
            yield from self._learn(self._learning, turn)
            self._learning = None
        if library not in self._known:
            self._begin(library)
        learning = self._learning
        if not (learning and learning.concerns(reads)):
            yield from self._try(_Held(reads, None), turn)
            return
        context = self._known[library]
        batch = search_reads(reads, context)
        observed = observe(batch, context)
        # The bytes are a view of a buffer that goes round.
        reads = replace(reads, bytes=context.backend.copy(reads.bytes))
        learning.observed.append(observed)
        learning.held.append(_Held(reads, replace(batch, reads=reads)))
        if enough(learning.observed, context.pairing.insert_size):
            yield from self._learn(learning, turn)

    def rest(self) -> Iterator[Block]:
        """The blocks of the batches that are held."""
        if self._learning:
            yield from self._learn(self._learning, only_turn())

    def _begin(self, library: str) -> None:
        """What comes next is of another library."""
        variants = self.summary.bases_per_variant
        if variants is not None:
            self._context = replace(self._context, sample=Sample(variants))
        # Another thread that finds the library known is to find, too, that more is being learnt.
        self._learning = _Learning(library, is_for_pairs=variants is not None)
        self._known[library] = self._context

    def _learn(self, learning: _Learning, turn: Turn) -> Iterator[Block]:
        """From now on the library is known, and the sample: the blocks of the batches that are held."""
        if not learning.held:
            return
        sample, held = learn(learning.observed, self._context.pairing.insert_size), learning.held
        if self.summary.bases_per_variant is None:
            self.summary.bases_per_variant = sample.bases_per_variant
        sample = replace(sample, bases_per_variant=self.summary.bases_per_variant)
        self._known[learning.library] = replace(self._context, sample=sample)
        self._learning = None
        if have_pairs(learning.observed):
            self.summary.libraries[learning.library] = sample.insert_sizes
        elif self._pairs_may_come:
            self._learning = _Learning(learning.library, learning.observed, is_for_pairs=True)
        while held:
            yield from self._try(held.pop(0), turn)

    def _try(self, held: _Held, turn: Turn) -> Iterator[Block]:
        """The blocks of a batch. Where memory ends, the reads that have none yet are mapped in halves."""
        backend, reads, done = self._context.backend, held.reads, 0
        rests: Sequence[Reads] = ()
        try:
            for part, blocks, described in self._parts(held):
                turn()
                self.summary.add(part.counters)
                done += part.reads.count
                if self._duplicates and described and (run := blocks[RECORDS].run):
                    self._duplicates.take(described, run)
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

    def _parts(self, held: _Held) -> Iterator[tuple[Batch, list[Block], Described | None]]:
        """The parts of a batch, their blocks and their fragments; the batch is not held any more."""
        context = self._known[self._libraries[held.reads.lane]]
        batch = search_again(held.batch, context) if held.batch else search_reads(held.reads, context)
        held.batch, held.work = None, batch.work
        for part, alignments in align_reads(batch, context):
            blocks, described = self._format(part, alignments)
            count_alignments(alignments, part.counters, context)
            batch.work.windows = batch.work.windows or count_windows(batch, context)
            yield part, blocks, described

    def _format(self, batch: Batch, alignments: Alignments) -> tuple[list[Block], Described | None]:
        """The records of a batch, and its reads without a place where those are wanted; its fragments, where duplicates
        are."""
        records = format_records(alignments, batch, self._style, self._context)
        backend, described, numbers = self._context.backend, None, None
        if self._style.order:
            given = records.bytes, records.lengths, records.ends
            if self._duplicates:
                offsets, together = alignments.plan.offsets, batch.reads.together
                described = self._duplicates.table.describe(*given, offsets, together)
                numbers = described.numbers
            if self._style.order is SortOrder.QUERYNAME:
                run = sort_by_name(*given, backend, numbers)
            else:
                contigs = len(self._context.index.contig_names.offsets) - 1
                run = sort_records(*given, contigs, backend, numbers)
            blocks = [Block(run.bytes, RECORDS, run)]
        else:
            blocks = [Block(records.bytes, RECORDS)]
        if self._style.unmapped:
            unmapped = format_unmapped(alignments, batch.reads, backend)
            if len(unmapped):
                blocks.append(Block(unmapped, UNMAPPED_READS))
        return blocks, described
