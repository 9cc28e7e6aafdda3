"""The lanes of a search: the files of each, which are mapped one lane behind the other, and its read group."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from readmap.cli.search.options import LaneOptions
from readmap.errors import DataError, UsageError
from readmap.formats.byte_source import open_bytes
from readmap.formats.sam import ReadGroup, parse_read_group
from readmap.formats.wording import printable
from readmap.reads.chunks import PairLayout

#: Columns of a sheet; names of fields of a read group are columns too, and others say nothing here.
FIRST, SECOND, SAMPLE, LANE, PATIENT = "fastq_1", "fastq_2", "sample", "lane", "patient"
GROUP_FIELD = re.compile(r"[A-Z][A-Z0-9]")
BEYOND = ""  # what a row has beyond the columns
NO_READS = ("bam", "bai", "cram", "crai", "spring_1", "spring_2")

#: Enough for the first line of a FASTQ file.
START_BYTES = 1 << 12


@dataclass(frozen=True)
class Lane:
    """One file of single reads, or two of pairs, and the read group of all of them."""

    files: tuple[str, ...]
    group: ReadGroup

    @property
    def layout(self) -> PairLayout:
        """How mates lie in the files."""
        return PairLayout.TWO_FILES if len(self.files) > 1 else PairLayout.SINGLE


def lanes_of(given: LaneOptions) -> list[Lane]:
    """The lanes that --lane or --sheet name, in their order; none where neither is given.

    Raises UsageError where one is wrong, or two do not go together; DataError and OSError where a sheet cannot be read.
    """
    lanes = [_parse(text) for text in given.lane or ()]
    if given.sheet is not None:
        lanes += read_sheet(given.sheet, given.sample)
    _expect_one_sample(lanes)
    _expect_one_meaning(lanes)
    return lanes


def files_of(lanes: Sequence[Lane], named: Sequence[str] | None) -> list[str]:
    """The files of all lanes; without lanes, those that are named."""
    return [file for lane in lanes for file in lane.files] or [*(named or ())]


def _parse(text: str) -> Lane:
    parts = text.split(",", 2)
    if len(parts) != 3 or not parts[0]:
        raise UsageError(f"--lane {text}: expected R1,R2,RG, or R1,,RG of single reads")
    return Lane(tuple(filter(None, parts[:2])), parse_read_group(parts[2], f"--lane {text}:"))


def read_sheet(path: str, sample: str | None) -> list[Lane]:
    """The lanes of a sample in a sheet; sample: its name, None where the sheet has only one.

    Raises UsageError where the sheet has several samples and none is named, or not that one; DataError that names the
    line of what is wrong.
    """
    name = printable(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first, *others = file.read().splitlines(keepends=True) or [""]
        table = csv.DictReader([first, *others], delimiter="\t" if "\t" in first else ",", restkey=BEYOND)
        rows = [(table.line_num, row) for row in table]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{name}: expected a table in UTF-8, CSV or TSV: {error}") from None
    missing = [column for column in (SAMPLE, LANE, FIRST) if not rows or column not in rows[0][1]]
    if missing:
        raise DataError(f"{name}: expected a header line with {SAMPLE}, {LANE} and {FIRST}, found no {missing[0]}")
    lanes: list[tuple[str, Lane]] = []
    for number, row in rows:
        if BEYOND in row:
            columns = len(table.fieldnames or ())
            raise DataError(f"{name}, line {number}: expected {columns} values, found {columns + len(row[BEYOND])}")
        cells = {key: (value or "").strip() for key, value in row.items()}
        try:
            lanes.append((cells[SAMPLE], _row(cells, "patient" in cells and "status" in cells)))
        except UsageError as error:
            raise DataError(f"{name}, line {number}: {error}") from None
    names = [*dict.fromkeys(one for one, _ in lanes)]
    if sample is None and len(names) > 1:
        raise UsageError(f"{name} has several samples: name one by --sample: {', '.join(names)}")
    if sample is not None and sample not in names:
        raise UsageError(f"--sample {sample}: {name} has {', '.join(names)}")
    return [lane for one, lane in lanes if sample is None or one == sample]


def _row(cells: Mapping[str, str], is_sarek: bool) -> Lane:
    """The lane of a row; raises UsageError where it is none."""
    for column in NO_READS:
        if cells.get(column):
            raise UsageError(f"{column} is {cells[column]}: expected files of FASTQ in {FIRST} and {SECOND}")
    empty = [column for column in (SAMPLE, LANE, FIRST, *[PATIENT] * is_sarek) if not cells[column]]
    if empty:
        raise UsageError(f"expected a value in each of {SAMPLE}, {LANE} and {FIRST}, found no {empty[0]}")
    files = tuple(filter(None, (cells[FIRST], cells.get(SECOND, ""))))
    fields = _sarek_fields(cells, files) if is_sarek else _own_fields(cells)
    return Lane(files, parse_read_group("\t".join(["@RG", *(f"{tag}:{value}" for tag, value in fields)]), "read group"))


def _own_fields(cells: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The fields that columns name, and ID and SM, which sample and lane tell where no column does."""
    fields = {"ID": f"{cells[SAMPLE]}.{cells[LANE]}", "SM": cells[SAMPLE]}
    fields |= {tag: value for tag, value in cells.items() if GROUP_FIELD.fullmatch(tag) and value}
    return fields.items()


def _sarek_fields(cells: Mapping[str, str], files: Sequence[str]) -> Iterable[tuple[str, str]]:
    """As nf-core/sarek has them: of its FASTQ the flow cell is told, where the names of reads have it."""
    sample, lane = cells[SAMPLE], cells[LANE]
    cell, *others = map(_flow_cell, files)
    if any(other != cell for other in others):
        raise UsageError(f"{files[0]} is of the flow cell {cell}, and {files[1]} of {others[0]}")
    yield "ID", ".".join([*filter(None, [cell]), sample, lane])
    yield "PU", lane
    yield "SM", f"{cells[PATIENT]}_{sample}"
    yield "LB", sample
    yield "PL", "ILLUMINA"


def _flow_cell(path: str) -> str | None:
    """The third field of a first line with seven or more, the first one of five; None of others, and of a pipe."""
    if not os.path.isfile(path):  # what is read of a pipe is gone
        return None
    target = bytearray(START_BYTES)
    with open_bytes(path) as source:
        start = bytes(target[: source.readinto(memoryview(target))])
    fields = start.partition(b"\n")[0].removeprefix(b"@").decode("ascii", "replace").split(":")
    return fields[2] if len(fields) >= 7 else fields[0] if len(fields) == 5 else None


def _expect_one_sample(lanes: Sequence[Lane]) -> None:
    samples = [*dict.fromkeys(lane.group.field("SM") for lane in lanes)]
    if len(samples) > 1:
        named = ", ".join(name or "none" for name in samples)
        raise UsageError(f"the lanes are of several samples (SM: {named}): an output holds one")


def _expect_one_meaning(lanes: Sequence[Lane]) -> None:
    """A name of a read group has the same fields wherever it stands, and no file is in two lanes."""
    groups: dict[bytes, bytes] = {}
    files: set[str] = set()
    for lane in lanes:
        if groups.setdefault(lane.group.name, lane.group.line) != lane.group.line:
            raise UsageError(f"the read group {lane.group.name.decode()} has different fields in two lanes")
        for file in lane.files:
            real = os.path.realpath(file)
            if real in files:
                raise UsageError(f"{file} is named twice among the lanes")
            files.add(real)
