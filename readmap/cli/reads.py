"""The files of reads, open, and what of them goes into the header and the tags: the options that say so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from readmap.cli.options import FLAG
from readmap.errors import UsageError
from readmap.formats.compression import ByteSource
from readmap.reads.alignment_reads import ALL_TAGS, AlignmentReads, open_reads
from readmap.reads.chunks import Layout

PANEL = "Tags"

#: Of a header of the reads: what has been done to them, and what is known of them.
KEPT_LINES = ("@PG", "@CO")


def _option(*names: str, what: str, metavar: str = FLAG) -> Any:
    return typer.Option(*names, metavar=metavar, help=what, show_default=False, rich_help_panel=PANEL)


Comments = Annotated[
    bool,
    _option("-C", "--comments", what="Append FASTQ comments, which must be tags such as RX:Z:ACGT, to the records."),
]
KeepTags = Annotated[
    str | None,
    _option(
        "--keep-tags", what="Tags of BAM or CRAM reads to keep, as RX,BC, or all (default: RG alone).", metavar="TAGS"
    ),
]
ReplaceReadGroup = Annotated[bool, _option("--replace-rg", what="Let -R replace the read groups of BAM or CRAM reads.")]


@dataclass(frozen=True)
class Additions:
    """What the options ask for beside alignments.

    header: lines. comments: whether those of FASTQ are tags. keep_tags: as the option has it. read_group: whether -R
    gives one, which replaces others only where replace_read_group says so.
    """

    header: Sequence[str]
    comments: bool
    keep_tags: str | None
    read_group: bool
    replace_read_group: bool


@dataclass
class OpenReads:
    """The files of reads, and what they bring along.

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
def open_all(
    paths: Sequence[str], layout: Layout, additions: Additions, aligns: bool, threads: int
) -> Iterator[OpenReads]:
    """The files of reads, open. In the end those of alignments are closed, and the others that have not been taken.

    layout: that of the options; a file of alignments tells itself whether it holds pairs.
    aligns: whether the reads are to be aligned: then mates belong together, and tags are kept.
    Raises UsageError where the options do not suit the files, and what open_reads raises.
    """
    reads = OpenReads(layout, [], additions.comments)
    with contextlib.ExitStack() as alignments, reads._unread:
        for path in paths:
            source = open_reads(path, threads)
            if isinstance(source, AlignmentReads):
                _begin(alignments.enter_context(source), reads, additions, aligns)
            else:
                reads._unread.enter_context(source)
                if additions.keep_tags is not None:
                    raise UsageError(f"--keep-tags: {source.name} is no BAM or CRAM; -C takes tags of FASTQ comments")
            reads._sources.append(source)
        reads.header += additions.header
        yield reads


def _begin(source: AlignmentReads, reads: OpenReads, additions: Additions, aligns: bool) -> None:
    """Keep what is to be kept of alignments, and have their reads made."""
    if source.is_paired and aligns:
        if reads.layout is Layout.TWO_FILES:
            raise UsageError(f"{source.name} holds pairs, and another file of reads is given: name {source.name} alone")
        reads.layout = Layout.INTERLEAVED
    groups = [line for line in source.header if line.startswith("@RG")]
    if groups and additions.read_group and not additions.replace_read_group:
        raise UsageError(f"-R: {source.name} has read groups of its own, which --replace-rg drops")
    if additions.read_group or not aligns:
        groups = []
    reads.header += [*groups, *(line for line in source.header if line.startswith(KEPT_LINES))]
    tags = _named_tags(additions.keep_tags, ("RG",) if groups else ()) if aligns else ()
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
