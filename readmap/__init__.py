"""Map short DNA reads to a reference, on a GPU if there is one, else on the CPU.

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

from readmap.version import __version__ as __version__

if TYPE_CHECKING:
    from readmap.database.api import scan as scan
    from readmap.database.database import Database as Database
    from readmap.database.database import build_database as build_database
    from readmap.duplicates.api import mark_duplicates as mark_duplicates
    from readmap.duplicates.metrics import LibraryMetrics as LibraryMetrics
    from readmap.errors import BackendError as BackendError
    from readmap.errors import DatabaseFolderError as DatabaseFolderError
    from readmap.errors import DataError as DataError
    from readmap.errors import IndexFolderError as IndexFolderError
    from readmap.errors import ReadmapError as ReadmapError
    from readmap.errors import UsageError as UsageError
    from readmap.index.building import build_index as build_index
    from readmap.index.index import Index as Index
    from readmap.index.occurrences import Location as Location
    from readmap.index.occurrences import Locations as Locations
    from readmap.mapping.inserts import InsertSize as InsertSize
    from readmap.mapping.parameters import Pairing as Pairing
    from readmap.mapping.parameters import Reporting as Reporting
    from readmap.mapping.parameters import Scoring as Scoring
    from readmap.pairwise.alignments import PairAlignments as PairAlignments
    from readmap.pairwise.api import Comparison as Comparison
    from readmap.pairwise.api import align_pairs as align_pairs
    from readmap.pairwise.api import compare as compare
    from readmap.run.aligner import Aligner as Aligner
    from readmap.run.api import estimate as estimate
    from readmap.run.api import search as search
    from readmap.run.hits import Hit as Hit
    from readmap.run.hits import Hits as Hits
    from readmap.run.hits import Pairs as Pairs
    from readmap.run.lanes import Lane as Lane
    from readmap.run.sample_model import SampleModel as SampleModel
    from readmap.run.summary import ExactSearchSummary as ExactSearchSummary
    from readmap.run.summary import SearchSummary as SearchSummary

_HOMES = {
    "readmap.duplicates.api": ("mark_duplicates",),
    "readmap.duplicates.metrics": ("LibraryMetrics",),
    "readmap.pairwise.alignments": ("PairAlignments",),
    "readmap.pairwise.api": ("Comparison", "align_pairs", "compare"),
    "readmap.errors": (
        "BackendError",
        "DataError",
        "DatabaseFolderError",
        "IndexFolderError",
        "ReadmapError",
        "UsageError",
    ),
    "readmap.index.building": ("build_index",),
    "readmap.index.index": ("Index",),
    "readmap.index.occurrences": ("Location", "Locations"),
    "readmap.database.database": ("Database", "build_database"),
    "readmap.database.api": ("scan",),
    "readmap.run.aligner": ("Aligner",),
    "readmap.run.api": ("estimate", "search"),
    "readmap.run.hits": ("Hit", "Hits", "Pairs"),
    "readmap.run.lanes": ("Lane",),
    "readmap.run.sample_model": ("SampleModel",),
    "readmap.run.summary": ("ExactSearchSummary", "SearchSummary"),
    "readmap.mapping.inserts": ("InsertSize",),
    "readmap.mapping.parameters": ("Pairing", "Reporting", "Scoring"),
}


__all__ = sorted(["__version__", *(name for names in _HOMES.values() for name in names)])


def __getattr__(name: str) -> Any:
    # Imported on first use: the command sets variables before NumPy is imported (cli/common/numerics.py).
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
