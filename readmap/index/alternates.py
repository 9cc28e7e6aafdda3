"""ALT contigs: other versions of parts of the primary assembly, as a file beside the index names them for bwa."""

from __future__ import annotations

import os
from pathlib import Path

from readmap.formats.file_errors import file_name_context


def find_alternates_file(folder: Path, source: str) -> str | None:
    """The file that names ALT contigs: PREFIX.alt beside PREFIX.readmap, or beside the FASTA file of the index."""
    names = (str(folder).removesuffix(".readmap"), source, source.removesuffix(".gz"))
    return next((f"{name}.alt" for name in names if os.path.isfile(f"{name}.alt")), None)


def read_alternates(path: str) -> frozenset[str]:
    """The names in the first column of a file, but for header lines; OSError, naming it, where it cannot be read."""
    with file_name_context(path), open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        names = (line.rstrip("\r\n").split("\t", 1)[0] for line in file)
        return frozenset(name for name in names if name and not name.startswith("@"))
