"""readmap maps short DNA reads, on a GPU where there is one and on the CPU where there is none.

>>> import readmap
>>> index = readmap.build_index("data/demo.fa.gz")
>>> aligner = readmap.Aligner(index, device="cpu")
>>> for hit in aligner.map(["TATGCTCTAAAAGAAGTCTTTAGGTCCGCTATCTGGAGCATTTAGAACCCGAAATTAAGA"]):
...     print(hit.contig, hit.ref_start, hit.ref_end, hit.strand, hit.mapq, hit.cigar)
chr2 12345 12405 1 60 60M
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from readmap.version import __version__

if TYPE_CHECKING:
    from readmap.database.api import scan
    from readmap.database.database import Database, build_database
    from readmap.errors import (
        BackendError,
        DatabaseFolderError,
        DataError,
        IndexFolderError,
        ReadmapError,
        UsageError,
    )
    from readmap.index.index import Index, build_index
    from readmap.index.occurrences import Location, Locations
    from readmap.pairwise.alignments import PairAlignments
    from readmap.pairwise.api import Comparison, compare
    from readmap.pairwise.api_pairs import align_pairs
    from readmap.search.aligner import Aligner
    from readmap.search.hits import Hit, Hits, Pairs
    from readmap.search.inserts import InsertSize
    from readmap.search.parameters import Pairing, Reporting, Scoring

__all__ = [
    "Aligner",
    "BackendError",
    "Comparison",
    "DataError",
    "Database",
    "DatabaseFolderError",
    "Hit",
    "Hits",
    "Index",
    "IndexFolderError",
    "InsertSize",
    "Location",
    "Locations",
    "PairAlignments",
    "Pairing",
    "Pairs",
    "ReadmapError",
    "Reporting",
    "Scoring",
    "UsageError",
    "__version__",
    "align_pairs",
    "build_database",
    "build_index",
    "compare",
    "scan",
]

_HOMES = {
    "readmap.pairwise.alignments": ("PairAlignments",),
    "readmap.pairwise.api": ("Comparison", "compare"),
    "readmap.pairwise.api_pairs": ("align_pairs",),
    "readmap.errors": (
        "BackendError",
        "DataError",
        "DatabaseFolderError",
        "IndexFolderError",
        "ReadmapError",
        "UsageError",
    ),
    "readmap.index.index": ("Index", "build_index"),
    "readmap.index.occurrences": ("Location", "Locations"),
    "readmap.database.database": ("Database", "build_database"),
    "readmap.database.api": ("scan",),
    "readmap.search.aligner": ("Aligner",),
    "readmap.search.hits": ("Hit", "Hits", "Pairs"),
    "readmap.search.inserts": ("InsertSize",),
    "readmap.search.parameters": ("Pairing", "Reporting", "Scoring"),
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the command has something to say before NumPy is (cli/common/numerics.py).
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
