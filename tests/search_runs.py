"""Searches in this process, and backends that run out of memory on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from readmap.backend import Backend
from readmap.formats.output import Output
from readmap.index.device import DeviceIndex
from readmap.mapping.batch import Context
from readmap.mapping.parameters import Pairing, Reporting, Scoring
from readmap.mapping.records import RecordStyle
from readmap.reads.chunks import PairLayout
from readmap.reads.parsing import Reads
from readmap.run import exact
from readmap.run.batch_processor import BatchProcessor
from readmap.run.read_mapper import MappingSummary, ReadMapper
from readmap.run.stream import run


def map_files(
    paths: Sequence[Path],
    index: DeviceIndex,
    backend: Backend,
    out: Path,
    scoring: Scoring | None = None,
    style: RecordStyle | None = None,
    pairing: Pairing | None = None,
    reporting: Reporting | None = None,
    **options: Any,
) -> MappingSummary:
    """Map files and write the records to `out`; after an error it contains the records written so far."""
    given = scoring or Scoring(), pairing or Pairing(), reporting or Reporting()
    layout = options.get("layout", PairLayout.SINGLE)
    mapping = ReadMapper([Context(index, backend, *given)], style, layout.paired)
    run_files(paths, mapping, backend, out, **options)
    return mapping.summary


def search_files(
    paths: Sequence[Path],
    index: DeviceIndex,
    backend: Backend,
    out: Path,
    parameters: exact.Parameters,
    **options: Any,
) -> exact.ExactSummary:
    """Search files for exact occurrences and write the records to `out`."""
    search = exact.ExactSearch([index], parameters, [backend])
    run_files(paths, search, backend, out, **options)
    return search.summary


def run_files(paths: Sequence[Path], processor: BatchProcessor, backend: Backend, out: Path, **options: Any) -> None:
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    with Output(str(out), descriptor) as output:
        run([str(path) for path in paths], [output], processor, [backend], **options)


class Full(Exception):
    """The memory error of a test device."""


def refuse(
    patch: pytest.MonkeyPatch, backend: Backend, module: Any, name: str, refused: Callable[..., bool]
) -> list[int]:
    """Make a module's function raise Full if refused(*arguments); return a list that grows with each refusal."""
    function, times = getattr(module, name), list[int]()

    def limited(*arguments: Any) -> Any:
        if refused(*arguments):
            times.append(1)
            raise Full
        return function(*arguments)

    patch.setattr(backend, "memory_error", Full)
    patch.setattr(module, name, limited)
    return times


def reads_in(*arguments: Any) -> int:
    """Return the number of reads among the arguments of a stage."""
    held = [getattr(argument, "reads", argument) for argument in arguments]
    return next(argument.count for argument in held if isinstance(argument, Reads))
