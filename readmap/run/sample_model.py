"""The sample model: divergence and insert sizes that were estimated once, for searches of all shards of the reads."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from readmap.errors import DataError, UsageError, option
from readmap.mapping.batch import Sample
from readmap.mapping.divergence import MAX_BASES_PER_DIFFERENCE, MIN_BASES_PER_DIFFERENCE
from readmap.mapping.inserts import DIRECTIONS, InsertSize
from readmap.mapping.parameters import Scoring

#: Version of the file format. Version 1 had other names for its fields.
FORMAT = 2
#: Largest insert size that a file may contain, in bases.
MAX_INSERT_SIZE = 1 << 20


@dataclass(frozen=True)
class SampleModel:
    """What the first reads of a run show of its sample.

    Attributes
    ----------
    bases_per_difference : int or None
        Bases in which one difference of the sample from the reference is expected; None if there were no reads.
    libraries : mapping of str to tuple of InsertSize or None
        By library ("" for reads without one), the insert sizes in bases; None for a library without pairs.
    scoring, reference : Scoring and str, or None
        The scores and the checksum of the reference of the estimate; None for a model that is not tied to them.
    """

    bases_per_difference: int | None = None
    libraries: Mapping[str, tuple[InsertSize, ...] | None] = field(default_factory=dict)
    scoring: Scoring | None = None
    reference: str | None = None

    @property
    def samples(self) -> dict[str, Sample]:
        """What is expected of the reads of each library."""
        usual = Sample() if self.bases_per_difference is None else Sample(self.bases_per_difference)
        return {name: Sample(usual.bases_per_difference, sizes or ()) for name, sizes in self.libraries.items()}

    def renamed(self, library: str) -> SampleModel:
        """Return the model with `library` as the name of its only library if that was "", else the same model."""
        if self.libraries.keys() != {""}:
            return self
        return replace(self, libraries={library: self.libraries[""]})

    def check_libraries(self, libraries: Iterable[str], name: str = "") -> None:
        """Raise UsageError if the model does not know one of the libraries; name: of its file, for the message."""
        for library in libraries:
            if library not in self.libraries:
                known = ", ".join(map(_shown, self.libraries)) or "none"
                raise UsageError(f"{option('sample_model')}{name}: it has {known}, and reads are of {_shown(library)}")

    def check_origin(self, scoring: Scoring, reference: str, name: str = "") -> None:
        """Raise UsageError if the model was estimated with other scores or another reference; name: of its file."""
        for what, own, given in (
            ("another reference", self.reference, reference),
            ("other scores", self.scoring and asdict(self.scoring), asdict(scoring)),
        ):
            if own is not None and own != given:
                estimated = f"it was estimated with {what}, {own}, and this one is {given}"
                raise UsageError(f"{option('sample_model')}{name}: {estimated}")

    def to_bytes(self) -> bytes:
        """Return the model as JSON, the contents of the file that `readmap estimate` writes."""
        libraries = {name: sizes and [asdict(size) for size in sizes] for name, sizes in self.libraries.items()}
        record: dict[str, Any] = {"format": FORMAT, "reference": self.reference}
        record |= {"scoring": self.scoring and asdict(self.scoring)}
        record |= {"bases_per_difference": self.bases_per_difference, "libraries": libraries}
        return (json.dumps(record, indent=2) + "\n").encode()


def read_sample_model(path: str) -> SampleModel:
    """Read a file that `readmap estimate` has written; raises DataError if it is invalid, and OSError."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        record = json.loads(text)
        version = record["format"]
        if version == FORMAT:
            return _parse(record)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: expected a file that readmap estimate has written") from None
    raise DataError(f"{path}: expected format {FORMAT} of readmap estimate, found {version}")


def _parse(record: dict[str, Any]) -> SampleModel:
    """Return the model of a parsed JSON file; raise ValueError, TypeError or KeyError if it is invalid."""
    divergence, libraries, scoring = record["bases_per_difference"], record["libraries"], record["scoring"]
    limits = MIN_BASES_PER_DIFFERENCE, MAX_BASES_PER_DIFFERENCE
    if divergence is not None and not limits[0] <= operator.index(divergence) <= limits[1]:
        raise ValueError(divergence)
    try:
        scores = scoring and Scoring(**scoring)
    except UsageError as error:
        raise ValueError(scoring) from error
    sizes = {name: _parse_sizes(own) for name, own in libraries.items()}
    return SampleModel(divergence, sizes, scores, record["reference"])


def _parse_sizes(record: list[dict[str, Any]] | None) -> tuple[InsertSize, ...] | None:
    """Return the insert sizes of a library, or None without pairs; raise ValueError or TypeError if invalid."""
    if record is None:
        return None
    sizes = tuple(InsertSize(**size) for size in record)
    for size in sizes:
        is_range = 1 <= operator.index(size.low) <= operator.index(size.high) <= MAX_INSERT_SIZE
        is_normal = 0 < size.mean <= MAX_INSERT_SIZE and 0 <= size.deviation <= MAX_INSERT_SIZE
        if size.direction not in DIRECTIONS or not (is_range and is_normal):
            raise ValueError(size)
    return sizes


def _shown(library: str) -> str:
    return f"the library {library}" if library else "reads without a library"
