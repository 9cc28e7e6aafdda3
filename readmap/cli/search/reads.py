"""The files of reads, open, and what of them goes into the header and the tags."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from readmap.cli.search.options import Options
from readmap.errors import UsageError
from readmap.formats.compression import ByteSource
from readmap.reads.alignment_reads import ALL_TAGS, AlignmentReads, open_reads
from readmap.reads.chunks import Layout

#: Lines of a header of the reads that are kept: what has been done to them, and what is known of them.
KEPT_LINES = ("@PG", "@CO")


@dataclass
class OpenReads:
    """The files of reads, and what they bring along; not frozen: each file of alignments adds to it.

    layout: how mates lie in them.
    header: lines to add to the output's: what is kept of theirs, and those of the options.
    comments: whether the comments of the reads are tags to write.
    """

    layout: Layout
    header: list[str]
    comments: bool
    _sources: list[ByteSource] = field(default_factory=list)
    _unread: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def take(self) -> list[ByteSource]:
        """One source a file. Those that are no alignments are closed by whoever reads them, in a thread of its own."""
        self._unread.pop_all()
        return self._sources


@contextlib.contextmanager
def open_all(options: Options, layout: Layout, header: list[str]) -> Iterator[OpenReads]:
    """The files of reads, open. In the end those of alignments are closed, and the others that have not been taken.

    layout: that of the options; a file of alignments shows itself whether it holds pairs.
    header: lines of the options.
    Raises UsageError where the options do not suit the files, and what open_reads raises.
    """
    reads, tags = OpenReads(layout, [], options.tags.comments), options.tags.keep_tags
    with contextlib.ExitStack() as alignments, reads._unread:
        for path in options.reads:
            source = open_reads(path, options.resources.workers)
            if isinstance(source, AlignmentReads):
                _begin(alignments.enter_context(source), reads, options)
            else:
                reads._unread.enter_context(source)
                if tags is not None:
                    raise UsageError(f"--keep-tags: {source.name} is no BAM or CRAM; -C takes tags of FASTQ comments")
            reads._sources.append(source)
        reads.header += header
        yield reads


def _begin(source: AlignmentReads, reads: OpenReads, options: Options) -> None:
    """Keep what is to be kept of alignments, and have their reads made.

    Where reads are aligned, mates belong together, and tags are kept.
    """
    is_exact, has_group = options.exact.is_exact, options.output.read_group is not None
    if source.is_paired and not is_exact:
        if reads.layout is Layout.TWO_FILES:
            raise UsageError(f"{source.name} holds pairs, and another file of reads is given: name {source.name} alone")
        reads.layout = Layout.INTERLEAVED
    groups = [line for line in source.header if line.startswith("@RG")]
    if groups and has_group and not options.tags.replace_rg:
        raise UsageError(f"-R: {source.name} has read groups of its own, which --replace-rg drops")
    if has_group or is_exact:
        groups = []
    reads.header += [*groups, *(line for line in source.header if line.startswith(KEPT_LINES))]
    tags = () if is_exact else _named_tags(options.tags.keep_tags, ("RG",) if groups else ())
    reads.comments |= bool(tags)
    source.start(tags)


def _named_tags(names: str | None, always: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of an option's value, and those that are kept without it."""
    if names == "all":
        return ALL_TAGS
    tags = tuple(dict.fromkeys([*always, *(names.split(",") if names is not None else ())]))
    if wrong := [tag for tag in tags if not (len(tag) == 2 and tag.isascii() and tag.isalnum() and tag[0].isalpha())]:
        raise UsageError(f"--keep-tags {names}: expected all, or names of tags, as RX,BC, found {wrong[0]!r}")
    return tags
