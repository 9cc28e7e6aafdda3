"""The lines of a SAM header: readmap's own, those of the options -R and -H, and those that the reads' file brought."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.formats.file_errors import file_name_context

#: What is written where -H names no other: records in the order of the reads.
FIRST_LINE = "@HD\tVN:1.6\tSO:unsorted\tGO:query"

#: The ID of readmap's @PG where no other has it.
PROGRAM = "readmap"

#: A comment, or fields whose names have two characters; a control character would end a line, or all of the text.
LINE = re.compile(r"@CO\t[^\x00-\x08\x0a-\x1f\x7f]*|@[A-Z]{2}(\t[A-Za-z][A-Za-z0-9]:[^\x00-\x1f\x7f]+)+")

#: Of a file of header lines. What is longer, as a device that never ends, is none.
MAX_LETTERS = 1 << 26


@dataclass(frozen=True)
class ReadGroupInfo:
    """A read group of a header: its ID, and its library, LB, and its sample, SM, where it names them."""

    name: str
    library: str | None = None
    sample: str | None = None


def header_lines(
    contigs: Sequence[Contig], given: Sequence[str], version: str, command_line: str, order: str | None = None
) -> list[str]:
    """The header: @HD, an @SQ with M5 for each contig, the lines that are given, and the @PG of readmap.

    order: in which the records are sorted, as SO names it; None where @HD says it as it is.

    An @HD and @SQ lines that are given stand in the place of readmap's. readmap follows the last @PG among them, under
    another ID where one of them has its own; it has the command line where there is one.
    Raises UsageError where @SQ lines are not those of the contigs, or two lines say what only one may.
    """
    firsts = [line for line in given if line.startswith("@HD")]
    sequences = [line for line in given if line.startswith("@SQ")]
    others = [line for line in given if not line.startswith(("@HD", "@SQ"))]
    _refuse_repeated(firsts, others)
    first = firsts[0] if firsts else FIRST_LINE
    return [
        _in_order(first, order) if order else first,
        *_contig_lines(contigs, sequences),
        *others,
        _program_line(others, version, command_line),
    ]


def sorted_header(given: Sequence[str], version: str, command_line: str, order: str) -> list[str]:
    """The lines of a file's header, whose records are now in another order; readmap's @PG follows the last one."""
    firsts = [line for line in given if line.startswith("@HD")]
    others = [line for line in given if not line.startswith("@HD")]
    return [
        _in_order(firsts[0] if firsts else FIRST_LINE, order),
        *others,
        _program_line(others, version, command_line),
    ]


def read_groups(lines: Sequence[str]) -> list[ReadGroupInfo]:
    """The read groups of a header's lines."""
    found = [_fields(line) for line in lines if line.startswith("@RG\t")]
    return [ReadGroupInfo(fields["ID"], *(fields.get(name) for name in ("LB", "SM"))) for fields in found]


def program_name(given: Sequence[str]) -> str:
    """The ID of readmap's @PG, which PG of every record names: one that none of the given lines has."""
    names = itertools.chain([PROGRAM], (f"{PROGRAM}.{number}" for number in itertools.count(1)))
    earlier = _program_names(given)
    return next(name for name in names if name not in earlier)


def parse_header_lines(option: str) -> list[str]:
    r"""The lines of an option -H: one such as '@CO\tmade by hand', with \t or tabs, or those of the file of that name.

    Raises UsageError where one is no line of a header or names an order, OSError where the file cannot be read.
    """
    if option.startswith("@"):
        lines = [option.replace("\\t", "\t")]
    else:
        with file_name_context(option), open(option, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(MAX_LETTERS + 1)
        if len(text) > MAX_LETTERS:
            raise UsageError(f"-H {option}: expected the lines of a header, found more than {MAX_LETTERS:,} letters")
        lines = [line for line in text.split("\n") if line.strip()]
    for line in lines:
        if not LINE.fullmatch(line):
            raise UsageError(rf"-H {option}: expected a line such as '@CO\ttext' or '@PG\tID:x', found {line!r}")
        if line.startswith("@HD") and _fields(line).get("SO", "unsorted") not in ("unsorted", "unknown"):
            raise UsageError(f"-H {option}: the order of the records is what readmap says (--sort), found {line!r}")
    return lines


def _in_order(line: str, order: str) -> str:
    """An @HD line that says in which order the records are; names are in that of `samtools sort -n`."""
    fields = [f"SO:{order}" if field.startswith("SO:") else field for field in line.split("\t")]
    fields = [field for field in fields if not field.startswith(("GO:", "SS:"))]
    fields = fields if f"SO:{order}" in fields else [*fields, f"SO:{order}"]
    return "\t".join([*fields, "SS:queryname:natural"] if order == "queryname" else fields)


def _contig_lines(contigs: Sequence[Contig], given: Sequence[str]) -> list[str]:
    """Every contig's @SQ: the given one, if any, with what it lacks."""
    if given and len(given) != len(contigs):
        raise UsageError(f"-H: {len(given)} @SQ lines are given, and the index has {len(contigs)} contigs")
    lines = []
    for line, contig in zip(given or ["@SQ"] * len(contigs), contigs, strict=True):
        known = {"SN": contig.name, "LN": str(contig.length), "M5": contig.md5} | (
            {"AH": "*"} if contig.alternate else {}
        )
        given_fields = _fields(line)
        for name, value in known.items():
            if given_fields.get(name, value) != value:
                raise UsageError(f"-H: the index has {name}:{value} where {line!r} is given")
        lines.append("\t".join([line, *(f"{name}:{known[name]}" for name in known if name not in given_fields)]))
    return lines


def _program_line(others: Sequence[str], version: str, command_line: str) -> str:
    follows = "".join(f"\tPP:{last}" for last in _program_names(others)[-1:])
    # A command line may hold file names that are no UTF-8; a contig's name is the same bytes here and in the records.
    call = re.sub(r"\s", " ", command_line).encode("utf-8", "backslashreplace").decode()
    return f"@PG\tID:{program_name(others)}\tPN:readmap{follows}\tVN:{version}" + (f"\tCL:{call}" if call else "")


def _program_names(lines: Sequence[str]) -> list[str]:
    return [_fields(line).get("ID", "") for line in lines if line.startswith("@PG")]


def _refuse_repeated(firsts: Sequence[str], others: Sequence[str]) -> None:
    """Raise UsageError where there are several @HD, or two @RG or two @PG of one ID."""
    claims = Counter("@HD" for _ in firsts)
    claims.update(f"{line[:3]} ID:{_fields(line).get('ID', '')}" for line in others if line[:3] in ("@RG", "@PG"))
    if repeated := [claim for claim, count in claims.items() if count > 1]:
        raise UsageError(f"two header lines are {repeated[0]}, of those of -H, -R and the reads' file")


def _fields(line: str) -> dict[str, str]:
    """The fields of a line by their names."""
    return {field[:2]: field[3:] for field in line.split("\t")[1:]}
