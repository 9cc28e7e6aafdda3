"""The SAM header. Records are formatted by kernels/sam.cu; both write 1-based positions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from readmap.errors import UsageError
from readmap.formats.fasta import Contig


def header(contigs: Sequence[Contig], version: str, command_line: str, read_group: bytes = b"") -> bytes:
    """The header's lines: @HD, an @SQ with M5 for each contig, @RG where one is given, @PG."""
    lines = ["@HD\tVN:1.6\tSO:unsorted\tGO:query"]
    lines += [f"@SQ\tSN:{contig.name}\tLN:{contig.length}\tM5:{contig.md5}" for contig in contigs]
    if read_group:
        lines.append(read_group.decode())
    # A command line may hold file names that are no UTF-8; a contig's name is the same bytes here and in the records.
    call = re.sub(r"\s", " ", command_line).encode("utf-8", "backslashreplace").decode()
    lines.append(f"@PG\tID:readmap\tPN:readmap\tVN:{version}\tCL:{call}")
    return "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"


def parse_read_group(option: str) -> tuple[bytes, bytes]:
    r"""The @RG line of an option such as '@RG\tID:x\tSM:y', with \t or tabs, and the tag that its reads carry.

    Raises UsageError where it is no @RG line or has no ID.
    """
    line = option.replace("\\t", "\t")
    if not line.startswith("@RG\t") or "\n" in line:
        raise UsageError(f"-R {option}: expected a line that begins with '@RG\\t'")
    fields = line.split("\t")[1:]
    wrong = [field for field in fields if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]:[ -~]+", field)]
    if wrong:
        raise UsageError(f"-R {option}: expected fields such as ID:x, found {wrong[0]!r}")
    names = [field[3:] for field in fields if field.startswith("ID:")]
    if len(names) != 1:
        raise UsageError(f"-R {option}: expected one ID field, found {len(names)}")
    return line.encode(), f"\tRG:Z:{names[0]}".encode()
