"""How results are written: a module a format, each with `record`, the bytes of one result, or `records`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from readmap.pairwise.formats import json_array, paf, sam, summary, text, tsv
from readmap.pairwise.results import Result, Results
from readmap.reads.sequences import Sequences


class ComparisonFormat(StrEnum):
    """What is written of a comparison."""

    SUMMARY = "summary"
    PAF = "paf"
    SAM = "sam"
    TSV = "tsv"
    JSON = "json"
    TEXT = "text"

    @property
    def needs_operations(self) -> bool:
        """Whether it has no place for a score alone."""
        return self in (ComparisonFormat.PAF, ComparisonFormat.SAM, ComparisonFormat.TEXT)


ENDINGS = {
    ".paf": ComparisonFormat.PAF,
    ".sam": ComparisonFormat.SAM,
    ".tsv": ComparisonFormat.TSV,
    ".json": ComparisonFormat.JSON,
    ".txt": ComparisonFormat.TEXT,
}


def format_by_ending(path: str | None) -> ComparisonFormat | None:
    """The format by which an output's name ends."""
    plain = (path or "").removesuffix(".gz").removesuffix(".bgz")
    return ENDINGS.get(os.path.splitext(plain)[1])


@dataclass(frozen=True)
class Writer:
    """What stands before, between and behind the records, and what makes those of some pairs."""

    records: Callable[[Results], Iterable[bytes]]
    begin: bytes = b""
    between: bytes = b""
    end: bytes = b""

    def write(self, results: Results, is_first: bool, write: Callable[[bytes], object]) -> None:
        """Write the records of some pairs. There is one at least. is_first: whether none have been written before."""
        write((b"" if is_first else self.between) + self.between.join(self.records(results)))


def writer(format: ComparisonFormat, targets: Sequences, version: str, command_line: str) -> Writer:
    """The writer of a format. Raises DataError where it cannot hold the targets."""
    if format is ComparisonFormat.SAM:
        return Writer(_each(sam.record), sam.header(targets, version, command_line))
    if format is ComparisonFormat.JSON:
        return Writer(_each(json_array.record), json_array.BEGIN, json_array.BETWEEN, json_array.END)
    if format is ComparisonFormat.TSV:
        return Writer(_each(tsv.record), tsv.HEADER)
    if format is ComparisonFormat.TEXT:
        return Writer(text.records)
    return Writer(_each(paf.record if format is ComparisonFormat.PAF else summary.record))


def _each(record: Callable[[Result], bytes]) -> Callable[[Results], Iterable[bytes]]:
    """What makes the records of some pairs one by one."""
    return functools.partial(map, record)
