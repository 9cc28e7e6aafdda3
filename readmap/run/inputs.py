"""The open files of reads of a search, with what they contribute to the header and to the tags of records."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from readmap.errors import DataError, UsageError, option
from readmap.formats.byte_source import ByteSource
from readmap.formats.gzip_reader import Inflaters
from readmap.reads.alignment_reads import AlignmentReads, open_reads
from readmap.reads.bam_records import ALL_TAGS
from readmap.reads.chunks import PairLayout
from readmap.reads.shards import RecordLocator, RecordRange, Shard, SplitLanes
from readmap.reads.split_table import read_table
from readmap.run.batch_processor import RunSummary
from readmap.run.config import SearchConfig
from readmap.run.file_checks import InputFiles
from readmap.run.read_mapper import MappingSummary

#: Header lines of BAM and CRAM reads that the output keeps: programs and comments.
KEPT_LINES = ("@PG", "@CO")


@dataclass
class OpenReads:
    """The open files of reads. header: lines to add to the output's header. comments: the comments of the reads are
    tags to write. alignments: the file if it is BAM or CRAM, else None. parts: the records of each file that belong to
    a shard; empty if whole files are mapped."""

    layouts: list[PairLayout]
    header: list[str]
    comments: bool
    alignments: AlignmentReads | None = None
    parts: Sequence[RecordRange] = ()
    _sources: list[ByteSource] = field(default_factory=list)
    _unread: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def is_paired(self) -> bool:
        return any(layout.paired for layout in self.layouts)

    def share(self) -> float | None:
        """Return the share of the files' bytes that has been read, or None if the size of a file is unknown."""
        progress = [source.read_progress() for source in ([self.alignments] if self.alignments else self._sources)]
        known = [one for one in progress if one]
        whole = sum(size for _, size in known)
        return sum(read for read, _ in known) / whole if whole and all(progress) else None

    def take(self) -> list[ByteSource] | AlignmentReads:
        """Return the alignments, or a source for each file; the caller must close them."""
        self._unread.pop_all()
        return self.alignments or self._sources

    def check_complete(self, summary: RunSummary) -> None:
        """Add the count of lost mates to `summary`; raise DataError if not every BAM or CRAM read has been written."""
        if self.alignments is None:
            return
        if isinstance(summary, MappingSummary):
            summary.lost = self.alignments.lost
        if summary.written != self.alignments.reads:
            counts = f"{self.alignments.reads:,} reads came in, and {summary.written:,} were written"
            raise DataError(f"{self.alignments.name}: {counts}: this is a bug in readmap")


@contextlib.contextmanager
def open_inputs(
    config: SearchConfig, files: InputFiles, header: Sequence[str], inflaters: Inflaters
) -> Iterator[OpenReads]:
    """Open the files of reads; on exit close those that nobody has taken, and end what reads alignments. header: lines
    of the user for the output's header. inflaters: decompress the files. Raises UsageError if options do not suit the
    files, and the errors of open_reads."""
    threads, parts = config.worker_threads, _parts_of_shard(config, files)
    reads = OpenReads(files.layouts, [], config.comments, parts=parts)
    with contextlib.ExitStack() as alignments, reads._unread:
        for index, path in enumerate(files.paths):
            part = parts[index] if parts else None
            source = part.open(threads, inflaters) if part else open_reads(path, threads, config.collate, inflaters)
            if isinstance(source, AlignmentReads):
                reads._unread.callback(source.drop)
                reads.alignments = alignments.enter_context(source)
                _check_only_file(source, files)
                _start_alignments(source, reads, config)
            else:
                reads._unread.enter_context(source)
                _check_text_options(source, config)
                reads._sources.append(source)
        reads.header += header
        yield reads


def open_parts(
    parts: Sequence[RecordRange], layouts: Sequence[PairLayout], comments: bool, threads: int, inflaters: Inflaters
) -> OpenReads:
    """Open a range of records of each file; comments: write comments as tags. Raises DataError if a file changed."""
    sources = list[ByteSource]()
    with contextlib.ExitStack() as opened:
        for part in parts:
            part.check_unchanged()
            sources.append(opened.enter_context(part.open(threads, inflaters)))
        opened.pop_all()
    return OpenReads(list(layouts), [], comments, parts=parts, _sources=sources)


def _parts_of_shard(config: SearchConfig, files: InputFiles) -> list[RecordRange]:
    """Return the range of records of each file that belongs to the shard; an empty list without a shard."""
    if not isinstance(config.shard, Shard) or config.split is None:
        return []
    if "-" in files.paths:
        raise UsageError(f"{option('shard')}: standard input has no shards: name files")
    table = read_table(config.split)
    locators = [RecordLocator(file, table.find(file), config.worker_threads) for file in files.paths]
    return SplitLanes(locators, files.layouts).shard(config.shard)


def _check_only_file(source: AlignmentReads, files: InputFiles) -> None:
    """Raise UsageError if a BAM or CRAM file is in a lane, or is not the only file of reads."""
    if files.are_lanes_named:
        raise UsageError(f"{source.name} is BAM or CRAM, and a lane has FASTQ or FASTA")
    if len(files.paths) > 1:
        found = "which contains both mates of pairs, and another file of reads is given"
        raise UsageError(f"{source.name} is BAM or CRAM, {found}: name {source.name} alone")


def _check_text_options(source: ByteSource, config: SearchConfig) -> None:
    """Raise UsageError if options for BAM or CRAM are given with a FASTQ or FASTA file."""
    for name, is_given, advice in (
        ("keep_tags", config.keep_tags is not None, f"{option('comments')} takes tags of FASTQ comments"),
        ("collate", config.collate, f"two files of reads, or {option('interleaved')}, say where its mates are"),
    ):
        if is_given:
            raise UsageError(f"{option(name)}: {source.name} is no BAM or CRAM; {advice}")


def _start_alignments(source: AlignmentReads, reads: OpenReads, config: SearchConfig) -> None:
    """Start reading BAM or CRAM: choose tags to keep; set the layout, header lines and comments of `reads`."""
    has_group = config.read_group is not None
    reads.layouts = [PairLayout.SINGLE if config.exact else PairLayout.INTERLEAVED]
    groups = [line for line in source.header if line.startswith("@RG")]
    if groups and has_group and not config.replace_rg:
        own = f"{source.name} has read groups of its own, which {option('replace_rg')} drops"
        raise UsageError(f"{option('read_group')}: {own}")
    if has_group or config.exact:
        groups = []
    reads.header += [*groups, *(line for line in source.header if line.startswith(KEPT_LINES))]
    tags = () if config.exact else _kept_tags(config.keep_tags, ("RG",) if groups else ())
    reads.comments |= bool(tags)
    source.start(tags, paired=not config.exact)


def _kept_tags(names: str | None, always: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags `always`, then those in `names` ("RX,BC", "all", None); raise UsageError if one is invalid."""
    if names == "all":
        return ALL_TAGS
    tags = tuple(dict.fromkeys([*always, *(names.split(",") if names is not None else ())]))
    if wrong := [tag for tag in tags if not (len(tag) == 2 and tag.isascii() and tag.isalnum() and tag[0].isalpha())]:
        expected = f"expected all, or names of tags, as RX,BC, found {wrong[0]!r}"
        raise UsageError(f"{option('keep_tags')} {names}: {expected}")
    return tags
