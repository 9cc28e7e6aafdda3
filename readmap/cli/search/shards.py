"""A part of the reads, by the table that readmap split makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from readmap.cli.common.options import option
from readmap.errors import UsageError
from readmap.reads.chunks import PairLayout
from readmap.reads.record_ranges import RecordRange
from readmap.reads.record_ranges import RecordLocator
from readmap.reads.shards import Shard, SplitLanes
from readmap.reads.split_table import read_table


def _parse(text: str) -> Shard:
    """The shard of an option's value; raises UsageError where it is none."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text}: expected I/N, with I from 1 to N, as 1/8")
    return Shard(int(found[1]), int(found[2]))


def _checked(text: str | None) -> str | None:
    """The same value; raises as _parse does."""
    if text is not None:
        _parse(text)
    return text


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """The part of the reads that is mapped."""

    panel: ClassVar = "Shards"

    table: str | None = option("--split", "The table of the files of reads, which readmap split makes.", "TABLE")
    given_shard: str | None = option(
        "--shard",
        "Map the I-th of N parts of the reads alone, by --split, without reading the rest; all parts in turn are the "
        "whole.",
        "I/N",
        check=_checked,
    )

    learnt: str | None = option(
        "--learnt", "What readmap learn wrote of all reads: nothing is learnt of those that are mapped.", "FILE"
    )

    @property
    def shard(self) -> Shard | None:
        """The part; None for all."""
        return None if self.given_shard is None else _parse(self.given_shard)

    def parts(self, files: Sequence[str], layouts: Sequence[PairLayout], threads: int) -> list[RecordRange]:
        """What the shard has of each file; none at all where there is no shard.

        layouts: of the lanes. threads: that look for its begin. Raises UsageError for standard input, and what
        read_table and SplitLanes.shard raise.
        """
        if not (shard := self.shard) or self.table is None:
            return []
        if "-" in files:
            raise UsageError("--shard: a part of standard input cannot be read by itself: name files")
        table = read_table(self.table)
        return SplitLanes([RecordLocator(file, table.find(file), threads) for file in files], layouts).shard(shard)

    def for_programs(self, parts: Sequence[RecordRange]) -> dict[str, dict[str, int]]:
        """The part, for the record; nothing where there is no shard."""
        if not (shard := self.shard):
            return {}
        taken, whole = _records(parts)
        return {"shard": {"number": shard.number, "of": shard.count, "records": taken, "of_records": whole}}

    def decode_name(self, parts: Sequence[RecordRange]) -> list[str]:
        """The part in a line; none where there is no shard."""
        if not (shard := self.shard):
            return []
        taken, whole = _records(parts)
        return [f"shard {shard.number:,} of {shard.count:,}: {taken:,} of {whole:,} records"]


def _records(parts: Sequence[RecordRange]) -> tuple[int, int]:
    """Of the parts, and of their files."""
    return sum(part.end_record - part.first_record for part in parts), sum(part.file_records for part in parts)
