"""The configuration of a search, as one value for Python, the command line and Dask workers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any

from readmap.backend import Backend, Gpus, open_backends, parse_gpus
from readmap.backend.machine import available_processors
from readmap.bam.codecs import CodecName
from readmap.bam.file_index import IndexFormat
from readmap.bam.memory import sort_memory_bytes
from readmap.bam.order import SortOrder
from readmap.duplicates.marker import OPTICAL_DISTANCE, DuplicateRules
from readmap.errors import UsageError, option
from readmap.formats.sam import NO_READ_GROUP, ReadGroup, parse_read_group
from readmap.formats.wording import parse_size
from readmap.index.device import IndexStructure
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.reads.shards import Shard
from readmap.run.conflicts import check_conflicts
from readmap.run.lanes import LaneLike
from readmap.run.output_format import OutputFormat, output_format_of
from readmap.run.sample_model import SampleModel
from readmap.strand import Strand


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Everything that determines a search; `readmap.search` documents each field. Enumerations, shards and sizes may be
    given as text, as on the command line. command_line: for the header's @PG line and for metrics. is_lenient: accept
    options that contradict each other or that the reads do not need, as bwa mem does. is_distributed: Dask workers map
    the reads. Raises UsageError if a value is invalid or if options contradict each other."""

    reads: Sequence[str] = ()
    lanes: Sequence[LaneLike] = ()
    sheet: str | None = None
    sample: str | None = None
    interleaved: bool = False
    smart_pairing: bool = False
    collate: bool = False
    split: str | None = None
    shard: Shard | str | None = None

    index: str | None = None
    check: bool = True
    alternates: bool = True

    output: str | None = None
    format: OutputFormat | str | None = None
    sort: bool = False
    sort_order: SortOrder | str | None = None
    sort_memory: int | str | None = None
    level: int | None = None
    codec: CodecName | str = CodecName.AUTO
    index_format: IndexFormat | str | None = None
    unmapped: str | None = None
    read_group: str | None = None
    header: Sequence[str] = ()

    mark_duplicates: bool = False
    remove_duplicates: bool = False
    for_merge: bool = False
    optical_distance: int = OPTICAL_DISTANCE
    duplicate_type: bool = False
    barcode_tag: str | None = None
    metrics: str | None = None
    report: str | None = None
    multiqc: str | None = None

    comments: bool = False
    keep_tags: str | None = None
    barcode_name: bool = False
    replace_rg: bool = False

    exact: bool = False
    strand: Strand | str = Strand.BOTH
    max_hits: int | None = None
    count_only: bool = False
    structure: IndexStructure | str | None = None
    prefix_table: bool = True

    scoring: Scoring = field(default_factory=Scoring)
    pairing: Pairing = field(default_factory=Pairing)
    reporting: Reporting = field(default_factory=Reporting)
    sample_model: SampleModel | str | None = None

    device: str = "auto"
    gpus: Gpus = 1
    threads: int | None = None
    gpu_memory: int | str | None = None
    batch_reads: int | None = None

    command_line: str = "readmap.search"
    is_lenient: bool = False
    is_distributed: bool = False

    def __post_init__(self) -> None:
        for name, parse in _PARSERS.items():
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, parse(name, value))
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise UsageError(f"{option(name)} is {value}, expected {least:,} to {most:,}")
        if not self.is_lenient:
            check_conflicts(self)

    @property
    def given(self) -> list[str]:
        """The names of all fields that differ from their defaults."""
        names = [name for name, default in _DEFAULTS.items() if getattr(self, name) != default]
        return [*names, *(["insert_size"] if self.pairing.insert_size is not None else [])]

    @property
    def output_format(self) -> OutputFormat:
        """The format of the output: `format`, else by the ending of `output`, else SAM."""
        if self.format is not None:
            return OutputFormat(self.format)
        if self.count_only:
            return OutputFormat.TSV
        return output_format_of(self.output) or OutputFormat.SAM

    @property
    def is_binary(self) -> bool:
        """True if records are made in BAM's form, which CRAM is made from too."""
        return self.output_format in (OutputFormat.BAM, OutputFormat.CRAM)

    @property
    def order(self) -> SortOrder | None:
        """The order in which records are sorted, or None if they stay in the order of the reads."""
        return SortOrder(self.sort_order or SortOrder.COORDINATE) if self.sort else None

    @property
    def sort_bytes(self) -> int | None:
        return sort_memory_bytes(self.sort_memory_limit) if self.sort else None

    @property
    def sort_memory_limit(self) -> int | None:
        """The limit that was given for the memory to sort in, in bytes; it holds for a device's memory too."""
        return None if self.sort_memory is None else int(self.sort_memory)

    @property
    def marks_duplicates(self) -> bool:
        return self.mark_duplicates or self.remove_duplicates

    @property
    def duplicate_rules(self) -> DuplicateRules:
        """What duplicates are; raises UsageError if the barcode tag is invalid."""
        return DuplicateRules(self.optical_distance, self.barcode_tag, self.remove_duplicates, self.duplicate_type)

    @property
    def makes_quality_report(self) -> bool:
        return self.report is not None or self.multiqc is not None

    @property
    def group(self) -> ReadGroup:
        """The read group of all reads; raises UsageError if its line is invalid."""
        if self.read_group is None:
            return NO_READ_GROUP
        return parse_read_group(self.read_group, option("read_group"))

    @property
    def worker_threads(self) -> int:
        return self.threads or available_processors()

    @property
    def gpu_memory_limit(self) -> int | None:
        """Bytes of a GPU's memory that may be used, or None for all that is free."""
        return None if self.gpu_memory is None else int(self.gpu_memory)

    def open_backends(self) -> list[Backend]:
        return open_backends(self.device, self.gpus, self.threads, self.gpu_memory_limit)


_RANGES = {
    "level": (1, 12),
    "optical_distance": (0, 1 << 30),
    "max_hits": (1, 1 << 31),
    "threads": (1, 1024),
    "batch_reads": (1, 1 << 31),
}

_DEFAULTS = {
    one.name: one.default if one.default_factory is MISSING else one.default_factory() for one in fields(SearchConfig)
}


def _parse_member(kind: Any, name: str, value: str) -> Any:
    """Return the member of the enumeration `kind` with this value; raise UsageError for option `name` without one."""
    known = [member for member in kind if member is not IndexStructure.BOTH]
    if value not in known:
        raise UsageError(f"{option(name)}: expected {', '.join(known[:-1])} or {known[-1]}, found {value!r}")
    return kind(value)


def _parse_size(name: str, value: str) -> int:
    """Return the bytes of a size such as "8G"; raise UsageError for option `name` if it is invalid."""
    try:
        return parse_size(value)
    except ValueError as error:
        raise UsageError(f"{option(name)} {error}") from None


def _parse_shard(name: str, text: str) -> Shard:
    """Return the shard of text such as "1/8"; raise UsageError for option `name` if it is invalid."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"{option(name)} {text}: expected I/N, with I from 1 to N, such as 1/8")
    return Shard(int(found[1]), int(found[2]))


#: Functions of a field's name and its text.
_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "format": partial(_parse_member, OutputFormat),
    "sort_order": partial(_parse_member, SortOrder),
    "codec": partial(_parse_member, CodecName),
    "index_format": partial(_parse_member, IndexFormat),
    "strand": partial(_parse_member, Strand),
    "structure": partial(_parse_member, IndexStructure),
    "sort_memory": _parse_size,
    "gpu_memory": _parse_size,
    "shard": _parse_shard,
    "gpus": lambda _, text: parse_gpus(text),
}
