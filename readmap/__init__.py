"""readmap maps short DNA reads, on a GPU where there is one and on the CPU where there is none.

>>> import readmap
>>> index = readmap.build_index("data/demo.fa.gz")
>>> aligner = readmap.Aligner(index, device="cpu")
>>> for hit in aligner.map(["TATGCTCTAAAAGAAGTCTTTAGGTCCGCTATCTGGAGCATTTAGAACCCGAAATTAAGA"]):
...     print(hit.contig, hit.ref_start, hit.ref_end, hit.strand, hit.mapq, hit.cigar)
chr2 12345 12405 1 60 60M
"""

from readmap.errors import BackendError, DataError, IndexFolderError, ReadmapError, UsageError
from readmap.index.index import Index, build_index
from readmap.index.occurrences import Place, Places
from readmap.search.aligner import Aligner, Hit, Hits
from readmap.search.parameters import Scoring

__version__ = "0.1.0"

__all__ = [
    "Aligner",
    "BackendError",
    "DataError",
    "Hit",
    "Hits",
    "Index",
    "IndexFolderError",
    "Place",
    "Places",
    "ReadmapError",
    "Scoring",
    "UsageError",
    "__version__",
    "build_index",
]
