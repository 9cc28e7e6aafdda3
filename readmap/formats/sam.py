"""The headers of SAM and BAM. Records are formatted by kernels/search/records.cuh."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from readmap.errors import DataError, UsageError
from readmap.formats.fasta import CONTIG_NAME, Contig
from readmap.formats.sam_header import header_lines
from readmap.formats.wording import decode_name

#: Of the names of queries.
LONGEST_NAME = 254
QUERY_NAME = re.compile(rb"[!-?A-~]+")


class SamEncoding(Enum):
    """How records are written, by the name that kernels/mapping/records.cuh has for it."""

    TEXT = "SAM_TEXT"
    BINARY = "BAM_BINARY"


def header(
    contigs: Sequence[Contig],
    version: str,
    command_line: str,
    read_group: bytes = b"",
    form: SamEncoding = SamEncoding.TEXT,
    lines: Sequence[str] = (),
    order: str | None = None,
) -> bytes:
    """The header's lines, see `header_lines`; in BAM then the contigs.

    read_group: the line of the option -R. lines: further ones, of the user and of the reads' file.
    """
    given = [read_group.decode(), *lines] if read_group else lines
    text = (
        "\n".join(header_lines(contigs, given, version, command_line, order)).encode("utf-8", "surrogateescape") + b"\n"
    )
    return text if form is SamEncoding.TEXT else binary_header(text, [(contig.name, contig.length) for contig in contigs])


def check_contig_names(names: Iterable[bytes], what: str) -> None:
    """Raise DataError that names the first record of `what` whose name SAM's header does not hold, or not again."""
    numbers: dict[bytes, int] = {}
    for number, name in enumerate(names, 1):
        record, way_out = f"record {number} of the {what} ({decode_name(name)})", "choose another --format"
        if not CONTIG_NAME.fullmatch(name):
            raise DataError(f"{record}: SAM's header cannot hold a contig of that name: {way_out}")
        if (earlier := numbers.setdefault(name, number)) != number:
            raise DataError(f"{record}: record {earlier} has the same name, which SAM's header cannot hold: {way_out}")


def query_name(name: bytes) -> bytes:
    """The name of a query as SAM has it, of 254 characters at most. Raises DataError where one is none of SAM's."""
    if not QUERY_NAME.fullmatch(name):
        raise DataError(f"query {decode_name(name)}: SAM has names of '!' to '~', without '@': choose another --format")
    return name[:LONGEST_NAME]


def binary_header(text: bytes, contigs: Iterable[tuple[str, int]]) -> bytes:
    """The bytes in front of BAM's records: the text header, and names and lengths of the contigs once more."""
    listed = [(name.encode("utf-8", "surrogateescape") + b"\0", length) for name, length in contigs]
    parts = [b"BAM\1", struct.pack("<i", len(text)), text, struct.pack("<i", len(listed))]
    for name, length in listed:
        parts += [struct.pack("<i", len(name)), name, struct.pack("<i", length)]
    return b"".join(parts)


@dataclass(frozen=True)
class ReadGroup:
    """A read group: its line of the header, and its name; both empty where there is none."""

    line: bytes = b""
    name: bytes = b""

    def field(self, tag: str) -> str | None:
        """What the line says of SM, LB or another field; None where it says nothing."""
        fields = self.line.decode().split("\t")[1:]
        return next((field[3:] for field in fields if field.startswith(f"{tag}:")), None)


NO_READ_GROUP = ReadGroup()


def common_tags(read_group: ReadGroup, program: str, form: SamEncoding) -> bytes:
    """The tags of every record of that form: RG, if there is a read group, and PG, readmap's ID in the header."""
    tag = b"\t%b:Z:%b" if form is SamEncoding.TEXT else b"%bZ%b\0"
    group = tag % (b"RG", read_group.name) if read_group != NO_READ_GROUP else b""
    return group + tag % (b"PG", program.encode())


def parse_read_group(option: str, name: str = "-R") -> ReadGroup:
    r"""The read group of an option such as '@RG\tID:x\tSM:y', with \t or tabs.

    name: what messages call the option. Raises UsageError where it is no @RG line or has no ID.
    """
    line = option.replace("\\t", "\t")
    if not line.startswith("@RG\t") or "\n" in line:
        raise UsageError(f"{name} {option}: expected a line that begins with '@RG\\t'")
    fields = line.split("\t")[1:]
    wrong = [field for field in fields if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]:[ -~]+", field)]
    if wrong:
        raise UsageError(f"{name} {option}: expected fields such as ID:x, found {wrong[0]!r}")
    names = [field[3:] for field in fields if field.startswith("ID:")]
    if len(names) != 1:
        raise UsageError(f"{name} {option}: expected one ID field, found {len(names)}")
    return ReadGroup(line.encode(), names[0].encode())
