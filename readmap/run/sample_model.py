"""What the first reads of a run have shown, as a value for runs on shards of its reads, which learn nothing then."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from readmap.errors import DataError, UsageError
from readmap.mapping.context import Sample
from readmap.mapping.divergence import MIN_BASES_PER_DIFFERENCE, MAX_BASES_PER_DIFFERENCE
from readmap.mapping.inserts import DIRECTIONS, InsertSize
from readmap.mapping.parameters import Scoring

#: Of the files that hold it; and the longest fragments that one may tell of.
FORMAT, LONGEST = 1, 1 << 20


@dataclass(frozen=True)
class SampleModel:
    """What is known of reads, library by library.

    Attributes:
        bases_per_difference: of all of them, in which one difference from the reference is expected; None where no reads
            were seen.
        libraries: by name, the insert sizes of each that was seen; None of one without pairs.
    """

    bases_per_difference: int | None = None
    libraries: Mapping[str, tuple[InsertSize, ...] | None] = field(default_factory=dict)

    @property
    def samples(self) -> dict[str, Sample]:
        """What is expected of the reads of each library."""
        usual = Sample() if self.bases_per_difference is None else Sample(self.bases_per_difference)
        return {name: Sample(usual.bases_per_difference, sizes or ()) for name, sizes in self.libraries.items()}

    def renamed(self, library: str) -> SampleModel:
        """The same under another name, where reads without a library are all that is known."""
        if self.libraries.keys() != {""}:
            return self
        return replace(self, libraries={library: self.libraries[""]})

    def expect(self, libraries: Iterable[str], path: str) -> None:
        """Raise UsageError where one of the libraries was not seen; path: of the file, for the message."""
        for name in libraries:
            if name not in self.libraries:
                known = ", ".join(map(_shown, self.libraries)) or "none"
                raise UsageError(f"--learnt {path}: it knows {known}, and reads are of {_shown(name)}")


def write_sample_model(learnt: SampleModel, scoring: Scoring, reference: str) -> bytes:
    """The bytes of a file; scoring, and reference, a checksum: those that it was learnt with."""
    libraries = {name: sizes and [asdict(size) for size in sizes] for name, sizes in learnt.libraries.items()}
    record = {"format": FORMAT, "reference": reference, "scoring": asdict(scoring)}
    record |= {"bases_per_difference": learnt.bases_per_difference, "libraries": libraries}
    return (json.dumps(record, indent=2) + "\n").encode()


def read_sample_model(path: str, scoring: Scoring, reference: str) -> SampleModel:
    """What a file holds.

    Raises DataError where it is none of readmap learn, UsageError where it was learnt with another reference or other
    scores, and OSError.
    """
    with open(path, "rb") as file:
        text = file.read()
    try:
        record = json.loads(text)
        known = record["format"], record["reference"], record["scoring"]
        variants, libraries = record["bases_per_difference"], record["libraries"]
        learnt = SampleModel(variants, {name: _sizes(own) for name, own in libraries.items()})
        if variants is not None and not MIN_BASES_PER_DIFFERENCE <= operator.index(variants) <= MAX_BASES_PER_DIFFERENCE:
            raise ValueError(variants)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: expected a file that readmap learn has written") from None
    if known[0] != FORMAT:
        raise DataError(f"{path}: expected format {FORMAT} of readmap learn, found {known[0]}")
    for what, own, given in (("another reference", known[1], reference), ("other scores", known[2], asdict(scoring))):
        if own != given:
            raise UsageError(f"--learnt {path}: it was learnt with {what}, {own}, and this one is {given}")
    return learnt


def _sizes(record: list[dict[str, Any]] | None) -> tuple[InsertSize, ...] | None:
    """Those of a library; raises ValueError, TypeError or KeyError where they are none."""
    if record is None:
        return None
    sizes = tuple(InsertSize(**size) for size in record)
    for size in sizes:
        numbers = 1 <= operator.index(size.low) <= operator.index(size.high) <= LONGEST
        if size.direction not in DIRECTIONS or not (
            numbers and 0 < size.mean <= LONGEST and 0 <= size.deviation <= LONGEST
        ):
            raise ValueError(size)
    return sizes


def _shown(library: str) -> str:
    return f"the library {library}" if library else "reads without a library"
