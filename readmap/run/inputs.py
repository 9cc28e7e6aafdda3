"""The files of reads, open, and what of them goes into the header and the tags."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from readmap.run.lanes import Lane, files_of
from readmap.cli.search.options import Options
from readmap.errors import DataError, UsageError
from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import Inflaters
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.reads.bam_records import ALL_TAGS
from readmap.reads.chunks import PairLayout
from readmap.reads.file_part import RecordRange
from readmap.run.read_mapper import MappingSummary
from readmap.run.batch_processor import RunSummary

#: Lines of a header of the reads that are kept: what has been done to them, and what is known of them.
KEPT_LINES = ("@PG", "@CO")


@dataclass
class OpenReads:
    """The files of reads, and what they bring along; not frozen: a file of alignments adds to it.

    layouts: how mates lie in them, by lane; those of alignments may lie anywhere.
    header: lines to add to the output's: what is kept of theirs, and those of the options.
    comments: whether the comments of the reads are tags to write.
    alignments: the file, where it is BAM or CRAM.
    parts: of each file, where a shard is mapped.
    """

    layouts: list[PairLayout]
    header: list[str]
    comments: bool
    alignments: AlignmentReads | None = None
    parts: Sequence[RecordRange] = ()
    _sources: list[ByteSource] = field(default_factory=list)
    _unread: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def paired(self) -> bool:
        """Whether some reads may have mates."""
        return any(layout.paired for layout in self.layouts)

    def share(self) -> float | None:
        """The part of the files' bytes that has been read; None where not all of them have a size."""
        taken = [source.read_progress() for source in ([self.alignments] if self.alignments else self._sources)]
        known = [one for one in taken if one]
        whole = sum(size for _, size in known)
        return sum(read for read, _ in known) / whole if whole and all(taken) else None

    def take(self) -> list[ByteSource] | AlignmentReads:
        """The alignments, or one source a file; closed by whoever reads them, in a thread of its own."""
        self._unread.pop_all()
        return self.alignments or self._sources

    def account(self, summary: RunSummary) -> None:
        """Tell what the search could not see; raises DataError where not all that was read has been written."""
        if self.alignments is None:
            return
        if isinstance(summary, MappingSummary):
            summary.lost = self.alignments.lost
        if summary.written != self.alignments.reads:
            raise DataError(
                f"{self.alignments.name}: {self.alignments.reads:,} reads came in, and {summary.written:,} were "
                "written: this is a bug of readmap"
            )


@contextlib.contextmanager
def open_all(
    options: Options, lanes: Sequence[Lane], layouts: list[PairLayout], header: list[str], inflaters: Inflaters
) -> Iterator[OpenReads]:
    """The files of reads, open. In the end what runs for alignments is ended, and what has not been taken is closed.

    layouts: those of the lanes, or of the options. header: lines of the options. inflaters: what inflates the files.
    Raises UsageError where the options do not suit the files, and what open_reads raises.
    """
    files, threads, tags = files_of(lanes, options.reads), options.resources.workers, options.tags.keep_tags
    parts, collate = options.shards.parts(files, layouts, threads), options.pairs.collate
    reads = OpenReads(layouts, [], options.tags.comments, parts=parts)
    with contextlib.ExitStack() as alignments, reads._unread:
        for number, path in enumerate(files):
            part = parts[number] if parts else None
            source = part.open(threads, inflaters) if part else open_reads(path, threads, collate, inflaters)
            if isinstance(source, AlignmentReads):
                reads._unread.callback(source.drop)
                reads.alignments = alignments.enter_context(source)
                if lanes:
                    raise UsageError(f"{source.name} is BAM or CRAM, and a lane has FASTQ or FASTA")
                if len(options.reads) > 1:
                    raise UsageError(
                        f"{source.name} is BAM or CRAM, which holds both mates of pairs, and another file of reads is "
                        f"given: name {source.name} alone"
                    )
                _begin(source, reads, options)
                continue
            reads._unread.enter_context(source)
            for option, is_given, advice in (
                ("--keep-tags", tags is not None, "-C takes tags of FASTQ comments"),
                ("--collate", options.pairs.collate, "two files of reads, or -p, say where its mates are"),
            ):
                if is_given:
                    raise UsageError(f"{option}: {source.name} is no BAM or CRAM; {advice}")
            reads._sources.append(source)
        reads.header += header
        yield reads


def _begin(source: AlignmentReads, reads: OpenReads, options: Options) -> None:
    """Keep what is to be kept of alignments, and have their reads made.

    Where reads are aligned, mates belong together, and tags are kept.
    """
    is_exact, has_group = options.exact.is_exact, options.output.read_group is not None
    reads.layouts = [PairLayout.SINGLE if is_exact else PairLayout.INTERLEAVED]
    groups = [line for line in source.header if line.startswith("@RG")]
    if groups and has_group and not options.tags.replace_rg:
        raise UsageError(f"-R: {source.name} has read groups of its own, which --replace-rg drops")
    if has_group or is_exact:
        groups = []
    reads.header += [*groups, *(line for line in source.header if line.startswith(KEPT_LINES))]
    tags = () if is_exact else _named_tags(options.tags.keep_tags, ("RG",) if groups else ())
    reads.comments |= bool(tags)
    source.start(tags, paired=not is_exact)


def _named_tags(names: str | None, always: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of an option's value, and those that are kept without it."""
    if names == "all":
        return ALL_TAGS
    tags = tuple(dict.fromkeys([*always, *(names.split(",") if names is not None else ())]))
    if wrong := [tag for tag in tags if not (len(tag) == 2 and tag.isascii() and tag.isalnum() and tag[0].isalpha())]:
        raise UsageError(f"--keep-tags {names}: expected all, or names of tags, as RX,BC, found {wrong[0]!r}")
    return tags
