"""Compare MAPQ with the errors found, by bins of MAPQ and classes of reads.

A read is of the first class that fits it:

split            the record has the tag SA
rescued          the position depends on the mate: the record scores less than a single read needs, 30 matches, or at
                 most the score of its best alternative (XS, which minibwa does not write)
tandem repeat    24 consecutive bases of the read equal the bases at a distance of 1 to 60 before them
family           bwa scores an alternative at 80 % of its best score or more (bwa's AS and XS, for all mappers)
unique           all other reads
"""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pysam
from numpy.typing import NDArray

from evaluation.figures import Row

BIN_EDGES = (0, 1, 10, 20, 30, 40, 50, 61)
MAX_MAPQ = BIN_EDGES[-1] - 1  # higher MAPQs count as this MAPQ
LOWEST_ERROR_RATE = 1e-5  # expected share of wrong reads in the last bin
CLASSES = ("split", "rescued", "tandem repeat", "family", "unique")
MIN_SCORE = 30  # -T of bwa and readmap, in matches
MATCHES = {"minibwa": 2}  # the score of a match, if not 1
PERIODS, RUN = range(1, 61), 24
NEAR = 0.8
MIN_READS, ERRORS = 1_000, 3  # minimum reads of a bin with a target, and the tolerance in standard errors
CHUNK = 1 << 15


def in_tandem(reads: Path) -> set[str]:
    """Return the names of the reads of a file that contain a tandem repeat."""
    found = set[str]()
    with pysam.FastxFile(str(reads)) as file:
        records = iter(file)
        while chunk := list(islice(records, CHUNK)):
            repeating = _repeating([str(one.sequence) for one in chunk])
            found.update(str(chunk[i].name) for i in np.flatnonzero(repeating))
    return found


def _repeating(sequences: list[str]) -> NDArray[np.bool_]:
    length = max(map(len, sequences), default=0)
    # Short reads are padded with bytes that match no base.
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
    """Return the mapped and wrong reads of each bin, and the maximum number of wrong reads within tolerance.

    counts: mapped reads, and wrong reads, by MAPQ: int64 [2, MAX_MAPQ + 1].
    """
    rows = []
    for low, end in pairwise(BIN_EDGES):
        reads, wrong = counts[:, low:end].sum(axis=1).tolist()
        share = LOWEST_ERROR_RATE if end > MAX_MAPQ else 10 ** (-low / 10)
        # The 1 is added as for single sets: without it one error among 5,000 reads would exceed 1e-5.
        most = int(reads * share + ERRORS * (reads * share * (1 - share) + 1) ** 0.5)
        short = reads >= MIN_READS and wrong > most
        name = f"{low}-{end - 1}" if low else "0"
        rows.append({"mapq": name, "reads": reads, "wrong": wrong, "promised": share, "most": most, "short": short})
    return rows


def calibration(counts: NDArray[np.int64]) -> list[Row]:
    """Return the bins of all reads and of each class. counts: int64 [len(CLASSES), 2, MAX_MAPQ + 1]."""
    classes: list[tuple[str, NDArray[np.int64]]] = [("all", counts.sum(axis=0)), *zip(CLASSES, counts, strict=True)]
    return [{"class": name} | row for name, one in classes for row in bins(one)]
