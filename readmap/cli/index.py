"""readmap index: build an index or a database from a FASTA file."""

import contextlib
import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from readmap.backend.machine import available_memory
from readmap.cli.common.folders import DATABASES, database_as_json, molecule_of, molecule_option, structure_as_json
from readmap.cli.common.guard import in_background
from readmap.cli.common.options import argument, choice, command, flag, option, option_group, refuse_conflicts
from readmap.cli.common.report import Report, ReportOptions, Show
from readmap.cli.common.shared_options import MultiGpuResources
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

#: Ending and contents of a file next to the index: nf-core's modules search for bwa's PREFIX.amb.
MARK_ENDING, MARK = ".amb", b"an index of readmap"
EXAMPLES = """[bold]Examples[/]
  $ readmap index ref.fa.gz
  $ cat chr1.fa chr2.fa | readmap index - -o both.readmap
  $ readmap index ref.fa --structure both
  $ readmap index -p bwa/genome ref.fa
  $ readmap index --database proteins.fa.gz"""

#: Names of stages of build_index in the progress, if different.
STAGES = {"read": "reading", "sort suffixes": "sorting suffixes", "gather suffixes": "gathering suffixes"}


@option_group()
class IndexOptions:
    """All options of readmap index."""

    fasta: str = argument("REF", "FASTA (plain, gzip or bgzip); - is standard input and needs -o.")
    folder: str | None = option("-o --output", "Output folder (default: REF.readmap, without .gz).", "DIR")
    prefix: str | None = option(
        "-p --prefix", "As in bwa index: write PREFIX.readmap, and PREFIX.amb for pipelines.", "PREFIX"
    )
    structure: str = choice(
        "--structure",
        "Suffix array, tree (for search --exact only), or both (default: array).",
        IndexStructure,
        default=IndexStructure.ARRAY,
    )
    database: bool = flag(
        "--database", "Build a database for readmap scan, REF.readmapdb, of proteins or nucleotides.", panel=DATABASES
    )
    molecule: str = molecule_option()
    force: bool = flag("--force", "Replace an existing index or database.")
    force_64_bits: bool = flag("--64-bit", "Use suffixes of 64 bits.", hidden=True)
    resources: MultiGpuResources
    report: ReportOptions


@command
def index(context: typer.Context, options: IndexOptions) -> None:
    """Index a reference for readmap search, or build a database for readmap scan.

    An index takes about 5 bytes per base on disk. Building it takes 10 bytes of memory per base plus 0.5 GiB.

    A suffix tree takes about 41 more bytes per base, at most 64. Building it takes up to 77 bytes of memory per base.

    A database takes 1 byte per letter on disk, without headers. Building it takes about 3 bytes of memory per letter.
    """
    without = "not with --database, which sorts no suffixes and needs no device"
    conflicts = (
        (("structure", "force_64_bits", "device", "gpus", "gpu_memory"), options.database, without),
        (("molecule",), not options.database, "only with --database"),
        (("folder",), options.prefix is not None, "not with -p, which sets the folder"),
        (("prefix",), options.database, "not with --database"),
    )
    refuse_conflicts(context, conflicts)
    target = _target(options)
    with Report(context.obj, options.report) as report:
        (_make_database if options.database else _make_index)(options, target, report)
        report.say(report.cost())


def _target(options: IndexOptions) -> Path:
    """Return the output folder; raise an error if it has no name or cannot be written, or if REF is missing."""
    fasta, home = options.fasta, database_folder if options.database else folder
    name = options.prefix if options.prefix is not None else fasta
    if options.folder is None and name == "-":
        raise UsageError(f"-: standard input has no name for the {home.KIND.noun}: give its folder with -o")
    target = home.default_folder(name) if options.folder is None else Path(options.folder)
    home.KIND.expect_replaceable(target, options.force)
    home.KIND.expect_writable(target)
    refuse_inside(target, {"--json": options.report.json}, "replaced")
    if fasta != "-":
        os.stat(fasta)
    return target


def _make_index(options: IndexOptions, target: Path, report: Report) -> None:
    """Build an index, write it to `target` (and PREFIX.amb), and print and report what it contains."""
    needed = 0

    def report_memory(count: int) -> None:
        nonlocal needed
        needed = count
        report.say(_describe_memory(count))

    resources = options.resources
    mark = _mark(options.prefix)
    with (
        mark or contextlib.nullcontext(),
        report.progress() as show,
        folder.KIND.writing(target, resources.workers, options.force) as output,
    ):
        start, stages = report.seconds, _Stages(show)
        built = in_background(
            lambda: build_index(
                options.fasta,
                structure=options.structure,
                device=resources.device,
                gpus=resources.chosen_gpus,
                threads=resources.threads,
                gpu_memory=resources.max_gpu_memory,
                force_64_bits=options.force_64_bits,
                output=output,
                progress=stages,
                report_memory=report_memory,
                warn=report.say,
            )
        )
        built_at, seconds = report.seconds, stages.seconds()
        show("writing")
        output.finish()
        seconds |= {"build": round(built_at - start, 4), "write": round(report.seconds - built_at, 4)}
        record = _as_json(built, target, sizes(output.path))
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
    """Open PREFIX.amb, by which pipelines find an index; return None without a prefix, or to keep a file of bwa."""
    if prefix is None:
        return None
    path = prefix + MARK_ENDING
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        if file.read(len(MARK)) != MARK:
            return None
    return open_output(path)


class _Stages:
    """Measures the time of the stages of building, and shows the progress of the current one."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._starts: dict[str, float] = {}

    def __call__(self, stage: str, done: int, whole: int) -> None:
        """Show the progress of a stage, `done` of `whole` (0 if unknown), and the remaining time at constant speed."""
        now = time.monotonic()
        passed = now - self._starts.setdefault(stage, now)
        text = STAGES.get(stage, stage)
        if done and whole:
            text += f" {format_ratio(done, whole)}, {format_duration(passed * (whole - done) / done)} left"
        elif done:
            text += f" {format_bytes(done)}"
        self._show(text, bar=done / whole if done and whole else None)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage; the last stage ends now."""
        times = [*self._starts.values(), time.monotonic()]
        seconds = (end - start for start, end in itertools.pairwise(times))
        return {stage.replace(" ", "_"): round(each, 4) for stage, each in zip(self._starts, seconds, strict=True)}


def _make_database(options: IndexOptions, target: Path, report: Report) -> None:
    """Build a database, write it to `target`, and print and report what it contains."""
    workers, molecule = options.resources.workers, molecule_of(options.molecule)
    with report.progress() as show, database_folder.KIND.writing(target, workers, options.force) as output:
        start = report.seconds
        built = in_background(
            lambda: build_database(options.fasta, workers, molecule, lambda done: show(f"reading {format_bytes(done)}"))
        )
        built_at = report.seconds
        show("writing")
        built.write_arrays(output)
        output.finish()
        seconds = {"build": round(built_at - start, 4), "write": round(report.seconds - built_at, 4)}
        record = database_as_json(built, target, sizes(output.path))
        report.finish(record | {"seconds": seconds}, [output])
    report.say(
        f"{record['database']}: {pluralize(len(built), f'{built.molecule} sequence')}, "
        f"{pluralize(built.letters, 'letter')}, longest {built.longest:,}; {format_bytes(record['bytes'])} on disk"
    )


def _describe_memory(needed: int) -> str:
    """Return a line about the bytes that building needs and the available memory; a warning if they do not suffice."""
    available = available_memory()
    line = f"building needs up to {format_bytes(needed)} of memory"
    if available is None:
        return line
    if needed > available:
        return f"warning: {line}, and {format_bytes(available)} are available"
    return f"{line}; {format_bytes(available)} are available"


def _as_json(built: Index, target: Path, files: Mapping[str, int]) -> dict[str, Any]:
    """Return the contents of a new index for the JSON report; files: the bytes of each file."""
    reference = built.reference
    return {
        "index": printable(str(target)),
        "source": printable(built.source),
        "contigs": len(reference.contigs),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffix_bits": built.suffixes.dtype.itemsize * 8,
        **structure_as_json(built),
        "bytes": sum(files.values()),
        "reference_checksum": reference_checksum(reference.contigs),
    }
