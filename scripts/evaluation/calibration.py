"""Whether MAPQ holds what it promises: bins of MAPQ, and classes of reads.

A read is of the first class that fits it:

split            its record tells of other parts (SA)
rescued          only its mate vouches for the place: the record scores less than a read alone needs, 30 matches, or no
                 more than its best other place (XS, which minibwa does not write)
tandem repeat    24 bases in a row equal those that lie 1 to 60 before them, in the read as it is
family           bwa scores another place at 80 % of its best or more (bwa's AS and XS, for all mappers)
unique           the others
"""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pysam
from numpy.typing import NDArray

from evaluation.figures import Row

BIN_EDGES = (0, 1, 10, 20, 30, 40, 50, 61)
HIGHEST = BIN_EDGES[-1] - 1  # what is above it counts as it
SAFEST = 1e-5  # the share of wrong reads that the last bin promises
CLASSES = ("split", "rescued", "tandem repeat", "family", "unique")
LEAST_SCORE = 30  # of bwa's and of readmap's -T, in matches
MATCHES = {"minibwa": 2}  # the score of a match, where it is not 1
PERIODS, RUN = range(1, 61), 24
NEAR = 0.8
FEWEST, ERRORS = 1_000, 3  # a bin's reads from which on it has a bar, and its width in standard errors
CHUNK = 1 << 15


def in_tandem(reads: Path) -> set[str]:
    """The names of the file's reads that lie in a tandem repeat."""
    found = set[str]()
    with pysam.FastxFile(str(reads)) as file:
        records = iter(file)
        while chunk := list(islice(records, CHUNK)):
            repeating = _repeating([str(one.sequence) for one in chunk])
            found.update(str(chunk[i].name) for i in np.flatnonzero(repeating))
    return found


def _repeating(sequences: list[str]) -> NDArray[np.bool_]:
    length = max(map(len, sequences), default=0)
    # Behind a short read are bytes that equal none.
    bases = np.frombuffer("".join(one.ljust(length, "-") for one in sequences).encode(), np.uint8).reshape(-1, length)
    repeating = np.zeros(len(bases), np.bool_)
    for period in PERIODS[: max(length - RUN, 0)]:
        equal = (bases[:, period:] == bases[:, :-period]) & (bases[:, period:] != ord("-"))
        done = 1
        while done < RUN and equal.shape[1]:
            step = min(done, RUN - done)
            equal = equal[:, step:] & equal[:, :-step]
            done += step
        repeating |= equal.any(axis=1)
    return repeating


def bins(counts: NDArray[np.int64]) -> list[Row]:
    """Mapped reads and wrong ones of each bin, and the most that its promise and luck allow.

    counts: mapped reads, and wrong ones, by MAPQ: shape (2, HIGHEST + 1).
    """
    rows = []
    for low, end in pairwise(BIN_EDGES):
        reads, wrong = counts[:, low:end].sum(axis=1).tolist()
        share = SAFEST if end > HIGHEST else 10 ** (-low / 10)
        # The 1 is as in the bar of single sets: without it one error among 5,000 reads would be too many for 1e-5.
        most = int(reads * share + ERRORS * (reads * share * (1 - share) + 1) ** 0.5)
        short = reads >= FEWEST and wrong > most
        name = f"{low}-{end - 1}" if low else "0"
        rows.append({"mapq": name, "reads": reads, "wrong": wrong, "promised": share, "most": most, "short": short})
    return rows


def calibration(counts: NDArray[np.int64]) -> list[Row]:
    """The bins of each class and of all reads; counts have the shape (len(CLASSES), 2, HIGHEST + 1)."""
    classes: list[tuple[str, NDArray[np.int64]]] = [("all", counts.sum(axis=0)), *zip(CLASSES, counts, strict=True)]
    return [{"class": name} | row for name, one in classes for row in bins(one)]
