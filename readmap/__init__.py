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

if TYPE_CHECKING:
    from readmap.compare.alignments import Alignments
    from readmap.compare.api import Comparison, compare
    from readmap.compare.api_pairs import align_pairs
    from readmap.errors import (
        BackendError,
        DatabaseFolderError,
        DataError,
        IndexFolderError,
        ReadmapError,
        UsageError,
    )
    from readmap.index.index import Index, build_index
    from readmap.index.occurrences import Place, Places
    from readmap.scan.api import scan
    from readmap.scan.database import Database, build_database
    from readmap.search.aligner import Aligner
    from readmap.search.hits import Hit, Hits, Pairs
    from readmap.search.inserts import InsertSize
    from readmap.search.parameters import Pairing, Reporting, Scoring

__version__ = "0.1.0"

__all__ = [
    "Aligner",
    "Alignments",
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
    "Pairing",
    "Pairs",
    "Place",
    "Places",
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
    "readmap.compare.alignments": ("Alignments",),
    "readmap.compare.api": ("Comparison",),
    "readmap.compare.api_pairs": ("align_pairs",),
    "readmap.errors": (
        "BackendError",
        "DataError",
        "DatabaseFolderError",
        "IndexFolderError",
        "ReadmapError",
        "UsageError",
    ),
    "readmap.index.index": ("Index", "build_index"),
    "readmap.index.occurrences": ("Place", "Places"),
    "readmap.scan.database": ("Database", "build_database"),
    "readmap.search.aligner": ("Aligner",),
    "readmap.search.hits": ("Hit", "Hits", "Pairs"),
    "readmap.search.inserts": ("InsertSize",),
    "readmap.search.parameters": ("Pairing", "Reporting", "Scoring"),
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the command has something to say before NumPy is (cli/numerics.py).
    if name in ("compare", "scan"):
        return importlib.import_module(f"readmap.{name}")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
