"""Headers of SAM and BAM. Kernels format the records (kernels/mapping/records.cuh)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from readmap.errors import DataError, UsageError
from readmap.formats.fasta import CONTIG_NAME, Contig
from readmap.formats.sam import header_lines
from readmap.formats.wording import decode_name

#: Characters of a query name.
MAX_NAME_LENGTH = 254
QUERY_NAME = re.compile(rb"[!-?A-~]+")


class SamEncoding(Enum):
    """The encoding of records; the values are constants of kernels/mapping/records.cuh."""

    TEXT = "SAM_TEXT"
    BINARY = "BAM_BINARY"


def header(
    contigs: Sequence[Contig],
    version: str,
    command_line: str,
    read_group: bytes = b"",
    encoding: SamEncoding = SamEncoding.TEXT,
    lines: Sequence[str] = (),
    order: str | None = None,
) -> bytes:
    """Return the header of a file, encoded; see `header_lines`.

    read_group: the line of option -R. lines: header lines from options and from the file of reads.
    """
    given = [read_group.decode(), *lines] if read_group else lines
    all_lines = header_lines(contigs, given, version, command_line, order)
    text = "".join(f"{line}\n" for line in all_lines).encode("utf-8", "surrogateescape")
    if encoding is SamEncoding.TEXT:
        return text
    return binary_header(text, [(contig.name, contig.length) for contig in contigs])


def check_contig_names(names: Iterable[bytes], what: str) -> None:
    """Raise DataError for the first name that an @SQ line cannot have, or a repetition; what: noun for the records."""
    seen: dict[bytes, int] = {}
    for number, name in enumerate(names, 1):
        record, advice = f"record {number} of the {what} ({decode_name(name)})", "choose another --format"
        if not CONTIG_NAME.fullmatch(name):
            raise DataError(f"{record}: its name is not valid in a SAM header: {advice}")
        if (earlier := seen.setdefault(name, number)) != number:
            unique = "and names must be unique in a SAM header"
            raise DataError(f"{record}: record {earlier} has the same name, {unique}: {advice}")


def query_name(name: bytes) -> bytes:
    """Return a query name for SAM, truncated to 254 characters. Raises DataError if it is not valid."""
    if not QUERY_NAME.fullmatch(name):
        expected = "names in SAM have characters from '!' to '~' except '@'"
        raise DataError(f"query {decode_name(name)}: {expected}: choose another --format")
    return name[:MAX_NAME_LENGTH]


def binary_header(text: bytes, contigs: Iterable[tuple[str, int]]) -> bytes:
    """Return the header of a BAM file: the text, then names and lengths of the contigs."""
    listed = [(name.encode("utf-8", "surrogateescape") + b"\0", length) for name, length in contigs]
    parts = [b"BAM\1", struct.pack("<i", len(text)), text, struct.pack("<i", len(listed))]
    for name, length in listed:
        parts += [struct.pack("<i", len(name)), name, struct.pack("<i", length)]
    return b"".join(parts)


@dataclass(frozen=True)
class ReadGroup:
    """A read group: its @RG line and its ID, both empty for no read group."""

    line: bytes = b""
    name: bytes = b""

    def field(self, tag: str) -> str | None:
        """Return the value of SM, LB or another field of the line, or None."""
        fields = self.line.decode().split("\t")[1:]
        return next((field[3:] for field in fields if field.startswith(f"{tag}:")), None)


NO_READ_GROUP = ReadGroup()


def common_tags(read_group: ReadGroup, program: str, encoding: SamEncoding) -> bytes:
    """Return the encoded tags of every record: RG, if there is a read group, and PG, the ID of readmap's @PG line."""
    tag = b"\t%b:Z:%b" if encoding is SamEncoding.TEXT else b"%bZ%b\0"
    group = tag % (b"RG", read_group.name) if read_group != NO_READ_GROUP else b""
    return group + tag % (b"PG", program.encode())


def parse_read_group(option: str, name: str = "-R") -> ReadGroup:
    r"""Parse an option such as '@RG\tID:x\tSM:y', with \t or tabs.

    name: option name for messages. Raises UsageError if it is not an @RG line with one ID.
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
