"""Headers of SAM and BAM, and parts of their records. Kernels format the records (kernels/mapping/records.cuh)."""

import itertools
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from readmap.errors import DataError, UsageError
from readmap.formats.fasta import CONTIG_NAME, Contig
from readmap.formats.file_errors import file_name_context
from readmap.formats.wording import decode_name

#: The default @HD line: records are in the order of the reads.
FIRST_LINE = "@HD\tVN:1.6\tSO:unsorted\tGO:query"
#: The ID of readmap's @PG line, unless another line has it.
PROGRAM = "readmap"
#: A comment, or fields with names of two characters, without control characters, which would end the line or the text.
LINE = re.compile(r"@CO\t[^\x00-\x08\x0a-\x1f\x7f]*|@[A-Z]{2}(\t[A-Za-z][A-Za-z0-9]:[^\x00-\x1f\x7f]+)+")
#: Characters of a file of header lines; guards against a device that never ends.
MAX_LETTERS = 1 << 26


@dataclass(frozen=True)
class ReadGroupInfo:
    """A read group of a header: its ID, and its LB and SM, None if missing."""

    name: str
    library: str | None = None
    sample: str | None = None


def header_lines(
    contigs: Sequence[Contig], given: Sequence[str], version: str, command_line: str, order: str | None = None
) -> list[str]:
    """Return the header: @HD, an @SQ with M5 for each contig, the given lines, and readmap's @PG.

    order: sort order for SO of @HD; None keeps @HD unchanged. Given @HD and @SQ lines replace readmap's. readmap's @PG
    follows the last given @PG (PP), has a unique ID, and CL unless the command line is empty. Raises UsageError if
    given @SQ lines do not match the contigs, or a line that must be unique is repeated.
    """
    hd_lines = [line for line in given if line.startswith("@HD")]
    sequences = [line for line in given if line.startswith("@SQ")]
    others = [line for line in given if not line.startswith(("@HD", "@SQ"))]
    _refuse_repeated(hd_lines, others)
    hd = hd_lines[0] if hd_lines else FIRST_LINE
    return [
        _set_sort_order(hd, order) if order else hd,
        *_contig_lines(contigs, sequences),
        *others,
        _program_line(others, version, command_line),
    ]


def sorted_header(given: Sequence[str], version: str, command_line: str, order: str) -> list[str]:
    """Return the header of a file that has been sorted: @HD with the new order, and readmap's @PG appended."""
    hd_lines = [line for line in given if line.startswith("@HD")]
    others = [line for line in given if not line.startswith("@HD")]
    return [
        _set_sort_order(hd_lines[0] if hd_lines else FIRST_LINE, order),
        *others,
        _program_line(others, version, command_line),
    ]


def read_groups(lines: Sequence[str]) -> list[ReadGroupInfo]:
    found = [_fields(line) for line in lines if line.startswith("@RG\t")]
    return [ReadGroupInfo(fields["ID"], *(fields.get(name) for name in ("LB", "SM"))) for fields in found]


def program_name(given: Sequence[str]) -> str:
    """Return an ID for readmap's @PG that no given line has; the PG tag of every record refers to it."""
    names = itertools.chain([PROGRAM], (f"{PROGRAM}.{number}" for number in itertools.count(1)))
    earlier = _program_names(given)
    return next(name for name in names if name not in earlier)


def parse_header_lines(option: str) -> list[str]:
    r"""Parse option -H: a line such as '@CO\tmade by hand', with \t or tabs, or the name of a file of lines.

    Raises UsageError if a line is invalid or sets a sort order, OSError if the file cannot be read.
    """
    if option.startswith("@"):
        lines = [option.replace("\\t", "\t")]
    else:
        with file_name_context(option), open(option, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(MAX_LETTERS + 1)
        if len(text) > MAX_LETTERS:
            raise UsageError(f"-H {option}: expected header lines, found more than {MAX_LETTERS:,} characters")
        lines = [line for line in text.split("\n") if line.strip()]
    for line in lines:
        if not LINE.fullmatch(line):
            raise UsageError(rf"-H {option}: expected a line such as '@CO\ttext' or '@PG\tID:x', found {line!r}")
        if line.startswith("@HD") and _fields(line).get("SO", "unsorted") not in ("unsorted", "unknown"):
            raise UsageError(f"-H {option}: readmap sets the order of the records (--sort), found {line!r}")
    return lines


def _set_sort_order(line: str, order: str) -> str:
    """Return an @HD line with SO:order; queryname also has SS, for the natural order of `samtools sort -n`."""
    fields = [f"SO:{order}" if field.startswith("SO:") else field for field in line.split("\t")]
    fields = [field for field in fields if not field.startswith(("GO:", "SS:"))]
    fields = fields if f"SO:{order}" in fields else [*fields, f"SO:{order}"]
    return "\t".join([*fields, "SS:queryname:natural"] if order == "queryname" else fields)


def _contig_lines(contigs: Sequence[Contig], given: Sequence[str]) -> list[str]:
    """Return an @SQ line for each contig, completing the given lines. Raises UsageError if these contradict."""
    if given and len(given) != len(contigs):
        raise UsageError(f"-H: found {len(given)} @SQ lines, and the index has {len(contigs)} contigs")
    lines = []
    for line, contig in zip(given or ["@SQ"] * len(contigs), contigs, strict=True):
        known = {"SN": contig.name, "LN": str(contig.length), "M5": contig.md5} | (
            {"AH": "*"} if contig.alternate else {}
        )
        given_fields = _fields(line)
        for name, value in known.items():
            if given_fields.get(name, value) != value:
                raise UsageError(f"-H: expected {name}:{value} as in the index, found {line!r}")
        lines.append("\t".join([line, *(f"{name}:{known[name]}" for name in known if name not in given_fields)]))
    return lines


def _program_line(others: Sequence[str], version: str, command_line: str) -> str:
    """Return readmap's @PG line, with PP if `others` have an @PG, and CL unless the command line is empty."""
    follows = "".join(f"\tPP:{last}" for last in _program_names(others)[-1:])
    # File names in the command line may not be UTF-8.
    call = re.sub(r"\s", " ", command_line).encode("utf-8", "backslashreplace").decode()
    return f"@PG\tID:{program_name(others)}\tPN:readmap{follows}\tVN:{version}" + (f"\tCL:{call}" if call else "")


def _program_names(lines: Sequence[str]) -> list[str]:
    return [_fields(line).get("ID", "") for line in lines if line.startswith("@PG")]


def _refuse_repeated(hd_lines: Sequence[str], others: Sequence[str]) -> None:
    """Raise UsageError for several @HD lines, or several @RG or @PG lines with the same ID."""
    claims = Counter("@HD" for _ in hd_lines)
    claims.update(f"{line[:3]} ID:{_fields(line).get('ID', '')}" for line in others if line[:3] in ("@RG", "@PG"))
    if repeated := [claim for claim, count in claims.items() if count > 1]:
        raise UsageError(f"the header has two lines {repeated[0]}, from -H, -R and the file of reads")


def _fields(line: str) -> dict[str, str]:
    return {field[:2]: field[3:] for field in line.split("\t")[1:]}


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
    """Return a file's header as bytes of SAM or BAM. lines: given lines, as for `header_lines`; order: SO of @HD."""
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
    r"""Parse an option such as '@RG\tID:x\tSM:y', with \t or tabs; name: the option. Raises UsageError."""
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


def hash_text(text: bytes) -> int:
    """Return the FNV-1a hash of a text, 1 instead of 0, as hash_tag_text of kernels/bam/cigar_and_tags.cuh does."""
    value = 0xCBF29CE484222325
    for letter in text:
        value = (value ^ letter) * 0x100000001B3 % (1 << 64)
    return max(value, 1)
