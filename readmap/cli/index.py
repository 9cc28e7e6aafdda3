"""readmap index: a FASTA file to the folder of an index, or of a database."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from readmap.backend.machine import available_memory
from readmap.cli.common.conflicts import refuse
from readmap.cli.common.folders import (
    DATABASES,
    database_record,
    molecule_of,
    molecule_option,
    structure_record,
)
from readmap.cli.common.guard import in_background
from readmap.cli.common.options import argument, choice, command, declared, flag, option
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.resources import SharedResources
from readmap.database import folder as database_folder
from readmap.database.database import build_database
from readmap.errors import UsageError
from readmap.formats.array_folder import sizes
from readmap.formats.output import Output, PendingOutput, open_output
from readmap.formats.path_checks import refuse_inside
from readmap.formats.wording import format_bytes, format_duration, format_ratio, pluralize, printable
from readmap.index import folder
from readmap.index.building import build_index
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import reference_checksum

#: Of the file beside an index that bwa has too, by which nf-core's modules find one.
MARK_ENDING, MARK = ".amb", b"an index of readmap"

EXAMPLES = """[bold]Examples[/]
  $ readmap index ref.fa.gz
  $ cat chr1.fa chr2.fa | readmap index - -o both.readmap
  $ readmap index ref.fa --structure both
  $ readmap index -p bwa/genome ref.fa
  $ readmap index --database proteins.fa.gz"""

#: What stages of build_index are called in the progress where that is not their name.
STAGES = {"read": "reading", "sort suffixes": "sorting suffixes", "gather suffixes": "gathering suffixes"}


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """All options of readmap index."""

    fasta: str = argument("REF", "FASTA: plain, gzip or bgzip; - is standard input, and needs -o.")
    folder: str | None = option("-o --output", "The folder (default: REF.readmap, without REF's .gz).", "DIR")
    prefix: str | None = option(
        "-p --prefix",
        "As bwa index -p: the folder is PREFIX.readmap, beside it PREFIX.amb, by which pipelines find an index.",
        "PREFIX",
    )
    structure: str = choice(
        "--structure",
        "array (suffix array and prefix table), tree (suffix array and tree, for search --exact alone) or both "
        "(default: array).",
        IndexStructure,
        default=IndexStructure.ARRAY,
    )
    database: bool = flag(
        "--database",
        "Make a database for readmap scan, of proteins or nucleotides: REF.readmapdb, without REF's .gz.",
        DATABASES,
    )
    molecule: str = molecule_option()
    force: bool = flag("--force", "Replace what is there of the kind.")
    force_64_bits: bool = declared(typer.Option(False, "--64-bit", hidden=True))
    resources: SharedResources
    report: ReportOptions


@command
def index(context: typer.Context, options: IndexOptions) -> None:
    """Index a reference, for readmap search, or make a database, for readmap scan.

    The index takes about 5 bytes a base on disk, building it 10 bytes of memory a base and half a GiB.

    A suffix tree takes about 41 bytes a base more, at most 64, and building it up to 77 bytes of memory a base.

    A database takes a byte a letter on disk, building it about 3 bytes of memory, besides its headers.
    """
    without = "not with --database, which sorts no suffixes and needs no device"
    conflicts = (
        (("structure", "force_64_bits", "device", "gpus", "gpu_memory"), options.database, without),
        (("molecule",), not options.database, "only with --database"),
        (("folder",), options.prefix is not None, "not with -p, which names the folder"),
        (("prefix",), options.database, "not with --database"),
    )
    refuse(context, conflicts)
    target = _target(options)
    with Report(context.obj, options.report) as report:
        (_make_database if options.database else _make_index)(options, target, report)
        report.say(report.cost())


def _target(options: IndexOptions) -> Path:
    """The path of the folder; raises before any work where it cannot be made."""
    fasta, home = options.fasta, database_folder if options.database else folder
    named = options.prefix if options.prefix is not None else fasta
    if options.folder is None and named == "-":
        raise UsageError(f"standard input has no name to call the {home.KIND.noun} after: -o names its folder")
    target = home.default_folder(named) if options.folder is None else Path(options.folder)
    home.KIND.expect_replaceable(target, options.force)
    home.KIND.expect_writable(target)
    refuse_inside(target, {"--json": options.report.json}, "replaced")
    if fasta != "-":
        os.stat(fasta)
    return target


def _make_index(options: IndexOptions, target: Path, report: Report) -> None:
    """Build an index and keep it in a folder, and report that."""
    needed = 0

    def report_memory(count: int) -> None:
        nonlocal needed
        needed = count
        report.say(_memory_line(count))

    resources = options.resources
    mark = _mark(options.prefix)
    with (
        mark or contextlib.nullcontext(),
        report.progress() as show,
        folder.KIND.writing(target, resources.workers, options.force) as output,
    ):
        began, stages = report.seconds, _Stages(show)
        built = in_background(
            lambda: build_index(
                options.fasta,
                structure=options.structure,
                device=resources.device,
                gpus=resources.chosen_gpus,
                threads=resources.threads,
                gpu_memory=resources.most_gpu_memory,
                force_64_bits=options.force_64_bits,
                output=output,
                progress=stages,
                report_memory=report_memory,
                warn=report.say,
            )
        )
        ready, seconds = report.seconds, stages.seconds()
        show("writing")
        output.finish()
        seconds |= {"build": round(ready - began, 4), "write": round(report.seconds - ready, 4)}
        record = _index_record(built, target, sizes(output.path))
        outputs: list[PendingOutput] = [output]
        if mark is not None:
            mark.write(b"%b: %b\n" % (MARK, os.fsencode(target.name)))
            outputs.append(mark)
        report.finish(record | {"memory_bytes": needed, "seconds": seconds}, outputs)
    tree = f"a suffix tree of {pluralize(built.nodes, 'node')}; " if built.nodes else ""
    report.say(
        f"{record['index']}: {pluralize(record['contigs'], 'contig')}, {pluralize(record['bases'], 'base')}, "
        f"{record['ambiguous_bases']:,} of them ambiguous; {tree}{format_bytes(record['bytes'])} on disk"
    )


def _mark(prefix: str | None) -> Output | None:
    """The file by which pipelines find an index; none where bwa has made one, which is left as it is and serves too."""
    if prefix is None:
        return None
    path = prefix + MARK_ENDING
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        if file.read(len(MARK)) != MARK:
            return None
    return open_output(path)


class _Stages:
    """Takes the time of the stages of a work, and shows how far the present one is."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._began: dict[str, float] = {}

    def __call__(self, stage: str, done: int, whole: int) -> None:
        """As building.Progress; the time left is what it will be if the stage goes on as it has gone."""
        now = time.monotonic()
        passed = now - self._began.setdefault(stage, now)
        text = STAGES.get(stage, stage)
        if done and whole:
            text += f" {format_ratio(done, whole)}, {format_duration(passed * (whole - done) / done)} left"
        elif done:
            text += f" {format_bytes(done)}"
        self._show(text, bar=done / whole if done and whole else None)

    def seconds(self) -> dict[str, float]:
        """Of each stage, the last one of which ends now."""
        ends = [*self._began.values(), time.monotonic()]
        taken = (end - begin for begin, end in itertools.pairwise(ends))
        return {stage.replace(" ", "_"): round(each, 4) for stage, each in zip(self._began, taken, strict=True)}


def _make_database(options: IndexOptions, target: Path, report: Report) -> None:
    """Build a database and keep it in a folder, and report that."""
    workers, molecule = options.resources.workers, molecule_of(options.molecule)
    with report.progress() as show, database_folder.KIND.writing(target, workers, options.force) as output:
        began = report.seconds
        built = in_background(
            lambda: build_database(options.fasta, workers, molecule, lambda done: show(f"reading {format_bytes(done)}"))
        )
        ready = report.seconds
        show("writing")
        built.write_arrays(output)
        output.finish()
        seconds = {"build": round(ready - began, 4), "write": round(report.seconds - ready, 4)}
        record = database_record(built, target, sizes(output.path))
        report.finish(record | {"seconds": seconds}, [output])
    report.say(
        f"{record['database']}: {pluralize(len(built), f'{built.molecule} sequence')}, "
        f"{pluralize(built.letters, 'letter')}, {built.longest:,} the longest; {format_bytes(record['bytes'])} on disk"
    )


def _memory_line(needed: int) -> str:
    """The memory that building needs, beside that which is available."""
    available = available_memory()
    line = f"building needs up to {format_bytes(needed)} of memory"
    if available is None:
        return line
    if needed > available:
        return f"warning: {line}, and {format_bytes(available)} are available"
    return f"{line}; {format_bytes(available)} are available"


def _index_record(built: Index, target: Path, files: Mapping[str, int]) -> dict[str, Any]:
    reference = built.reference
    return {
        "index": printable(str(target)),
        "source": printable(built.source),
        "contigs": len(reference.contigs),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffix_bits": built.suffixes.dtype.itemsize * 8,
        **structure_record(built),
        "bytes": sum(files.values()),
        "reference_checksum": reference_checksum(reference.contigs),
    }
