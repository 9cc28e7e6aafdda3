"""Lanes of a search: files of reads with their pair layout and read group, from the command line or a sample sheet."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from readmap.errors import DataError, UsageError, option
from readmap.formats.byte_source import open_bytes
from readmap.formats.sam import NO_READ_GROUP, ReadGroup, parse_read_group
from readmap.formats.wording import printable
from readmap.reads.chunks import PairLayout

#: Columns of a sheet. Columns named like fields of a read group (ID, LB, ...) are its fields; others are ignored.
FIRST, SECOND, SAMPLE, LANE, PATIENT = "fastq_1", "fastq_2", "sample", "lane", "patient"
GROUP_FIELD = re.compile(r"[A-Z][A-Z0-9]")
BEYOND = ""  # key of the values of a row that has more values than there are columns
NO_READS = ("bam", "bai", "cram", "crai", "spring_1", "spring_2")
#: Bytes that contain the first line of a FASTQ file.
START_BYTES = 1 << 12


@dataclass(frozen=True)
class Lane:
    """One file of reads or two files of pairs, their pair layout, and the read group of all their reads."""

    files: tuple[str, ...]
    layout: PairLayout
    group: ReadGroup = NO_READ_GROUP

    @classmethod
    def of(
        cls, first: str, second: str | None = None, read_group: str | None = None, *, interleaved: bool = False
    ) -> Lane:
        r"""Return the lane of one file, or of two files of pairs.

        Parameters
        ----------
        first, second : str
            Files of reads; None or "" without a second file.
        read_group : str, optional
            A line such as "@RG\tID:a\tSM:b", with tabs or \t.
        interleaved : bool
            True if mates alternate in one file.

        Raises
        ------
        UsageError
            If the read group is invalid.
        """
        files = (first, second) if second else (first,)
        layout = PairLayout.TWO_FILES if second else PairLayout.INTERLEAVED if interleaved else PairLayout.SINGLE
        return cls(files, layout, parse_read_group(read_group, "read group") if read_group else NO_READ_GROUP)


#: A lane as users give it: a Lane, the command line's "R1,R2,RG", or the arguments of Lane.of.
LaneLike = Lane | str | Sequence[str]


def resolve_lanes(given: Sequence[LaneLike], sheet: str | None, sample: str | None) -> list[Lane]:
    """Return the lanes that were given or that a sample sheet lists, in their order. Raises UsageError if a lane is
    invalid or two lanes contradict each other, DataError and OSError if the sheet cannot be read."""
    lanes = [_parse_lane(one) for one in given]
    if sheet is not None:
        lanes += read_sheet(sheet, sample)
    _check_lanes(lanes)
    return lanes


def first_lanes(lanes: Sequence[Lane]) -> list[list[Lane]]:
    """Return, for each library, its lanes before the first lane of another library; its model comes from them."""
    libraries: dict[str | None, list[Lane]] = {}
    for library, own in groupby(lanes, lambda lane: lane.group.field("LB")):
        libraries.setdefault(library, list(own))
    return [*libraries.values()]


def _parse_lane(given: LaneLike) -> Lane:
    """Return the lane that a user gave; raise UsageError if its text or its read group is invalid."""
    if isinstance(given, Lane):
        return given
    if not isinstance(given, str):
        return Lane.of(*given)
    parts = given.split(",", 2)
    if len(parts) != 3 or not parts[0]:
        raise UsageError(f"{option('lanes')} {given}: expected R1,R2,RG, or R1,,RG for single reads")
    files, group = tuple(filter(None, parts[:2])), parse_read_group(parts[2], f"{option('lanes')} {given}:")
    return Lane(files, _layout_of(files), group)


def _layout_of(files: Sequence[str]) -> PairLayout:
    return PairLayout.TWO_FILES if len(files) > 1 else PairLayout.SINGLE


def read_sheet(path: str, sample: str | None) -> list[Lane]:
    """Return the lanes of a sample in a sheet; sample: None if the sheet has only one sample. Raises UsageError if the
    sheet has several samples and none of them is named, DataError with the line of an error."""
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
            lanes.append((cells[SAMPLE], _parse_row(cells, "patient" in cells and "status" in cells)))
        except UsageError as error:
            raise DataError(f"{name}, line {number}: {error}") from None
    names = [*dict.fromkeys(one for one, _ in lanes)]
    if sample is None and len(names) > 1:
        raise UsageError(f"{name} has several samples: name one by {option('sample')}: {', '.join(names)}")
    if sample is not None and sample not in names:
        raise UsageError(f"{option('sample')} {sample}: {name} has {', '.join(names)}")
    return [lane for one, lane in lanes if sample is None or one == sample]


def _parse_row(cells: Mapping[str, str], is_sarek: bool) -> Lane:
    """Return the lane of a sheet's row, given by column; is_sarek: make its read group as nf-core/sarek does."""
    for column in NO_READS:
        if cells.get(column):
            raise UsageError(f"{column} is {cells[column]}: expected files of FASTQ in {FIRST} and {SECOND}")
    empty = [column for column in (SAMPLE, LANE, FIRST, *[PATIENT] * is_sarek) if not cells[column]]
    if empty:
        raise UsageError(f"expected a value in each of {SAMPLE}, {LANE} and {FIRST}, found no {empty[0]}")
    files = tuple(filter(None, (cells[FIRST], cells.get(SECOND, ""))))
    fields = _sarek_fields(cells, files) if is_sarek else _column_fields(cells)
    line = "\t".join(["@RG", *(f"{tag}:{value}" for tag, value in fields)])
    return Lane(files, _layout_of(files), parse_read_group(line, "read group"))


def _column_fields(cells: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return (tag, value) of the read group: from columns such as ID; by default ID is SAMPLE.LANE and SM SAMPLE."""
    fields = {"ID": f"{cells[SAMPLE]}.{cells[LANE]}", "SM": cells[SAMPLE]}
    fields |= {tag: value for tag, value in cells.items() if GROUP_FIELD.fullmatch(tag) and value}
    return fields.items()


def _sarek_fields(cells: Mapping[str, str], files: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Yield (tag, value) of the read group as nf-core/sarek makes it, with the flow cell from the read names."""
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
    """Return the flow cell in the first read's name: field 3 of 7 or more, 1 of 5; None without one or for a pipe."""
    if not os.path.isfile(path):  # bytes read from a pipe would be lost
        return None
    target = bytearray(START_BYTES)
    with open_bytes(path) as source:
        start = bytes(target[: source.readinto(memoryview(target))])
    fields = start.partition(b"\n")[0].removeprefix(b"@").decode("ascii", "replace").split(":")
    return fields[2] if len(fields) >= 7 else fields[0] if len(fields) == 5 else None


def _check_lanes(lanes: Sequence[Lane]) -> None:
    """Raise UsageError for lanes of several samples, a read group with different fields, or a file in two lanes."""
    samples = [*dict.fromkeys(lane.group.field("SM") for lane in lanes)]
    if len(samples) > 1:
        named = ", ".join(name or "none" for name in samples)
        raise UsageError(f"the lanes are of several samples (SM: {named}): an output holds one")

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
