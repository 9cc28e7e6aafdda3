"""A FASTA parser that reads line by line and raises the expected error messages."""

from __future__ import annotations

import re

from readmap.errors import DataError

LETTERS = b"ACGTURYSWKMBDHVN"
NAME = re.compile(rb"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")


def read(path: str, data: bytes) -> dict[str, str]:
    """Return the upper-case letters by contig name, T for U. Raises DataError as readmap.index.fasta does."""
    contigs: dict[bytes, bytearray] = {}
    last = b""

    def record() -> str:
        return f"{path}, record {len(contigs)} ({last.decode(errors='backslashreplace')})"

    def expect_letters() -> None:
        if contigs and not contigs[last]:
            raise DataError(f"{record()}: expected a sequence, found an empty contig")

    for line in data.split(b"\n"):
        if line.startswith(b">"):
            expect_letters()
            name = re.split(rb"\s", line[1:])[0]
            if not name:
                raise DataError(f"{path}, record {len(contigs) + 1}: expected a name after '>', found none")
            if name in contigs:
                number = len(contigs) + 1
                earlier = [*contigs].index(name) + 1
                raise DataError(f"{path}, record {number} ({name.decode()}): record {earlier} has the same name")
            last, contigs[name] = name, bytearray()
            valid = len((NAME.match(name) or re.match(b"", b""))[0])  # type: ignore[index]
            if valid < len(name):
                found = name[valid : valid + 1].decode(errors="backslashreplace")
                text = f"expected a contig name allowed in SAM, found {found!r} at character {valid + 1}"
                raise DataError(f"{record()}: {text}")
        for byte in line.replace(b"\r", b"") if not line.startswith(b">") else b"":
            found = f"'{chr(byte)}'" if 32 <= byte < 127 else f"byte 0x{byte:02x}"
            if not contigs:
                hint = "; this looks like FASTQ, which holds reads" if byte == ord("@") else ""
                raise DataError(f"{path}: expected FASTA, which starts with '>', found {found}{hint}")
            letter = bytes([byte]).upper()
            if letter not in LETTERS:
                place = len(contigs[last]) + 1
                raise DataError(f"{record()}, position {place}: expected a nucleotide (IUPAC), found {found}")
            contigs[last] += b"T" if letter == b"U" else letter
    if not contigs:
        raise DataError(f"{path}: expected FASTA, found no sequence: the file is empty")
    expect_letters()
    return {name.decode(): letters.decode() for name, letters in contigs.items()}
