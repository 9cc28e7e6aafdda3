"""readmap index: a FASTA file to the folder of an index, or of a database."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.cli.conflicts import refuse
from readmap.cli.database import AUTO, MakeDatabase, MoleculeName, make_database
from readmap.cli.guard import in_background
from readmap.cli.options import FLAG, Debug, Json, Quiet, Threads, device_option, given_options, one_of
from readmap.cli.report import Report, counted, in_bytes, printable, reference_checksum, structure_record
from readmap.database import folder as database_folder
from readmap.errors import UsageError
from readmap.formats.array_folder import FolderKind, sizes
from readmap.index import folder
from readmap.index.device import Structure
from readmap.index.index import Index, build_index

EXAMPLES = """[bold]Examples[/]
  $ readmap index ref.fa.gz
  $ cat chr1.fa chr2.fa | readmap index - -o both.readmap
  $ readmap index ref.fa --structure both
  $ readmap index --database proteins.fa.gz"""

#: What stages of build_index are called in the progress where that is not their name.
STAGES = {"read": "reading", "pack": "packing", "sort suffixes": "sorting suffixes"}

#: What Linux tells of its memory.
MEMORY_FACTS = Path("/proc/meminfo")


Fasta = Annotated[
    str,
    typer.Argument(
        metavar="REF", help="FASTA: plain, gzip or bgzip; - is standard input, and needs -o.", show_default=False
    ),
]
FolderName = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="The folder (default: REF.readmap, without REF's .gz).",
        show_default=False,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", metavar=FLAG, help="Replace what is there of the kind.", show_default=False)
]
StructureName = Annotated[
    str,
    typer.Option(
        "--structure",
        metavar="NAME",
        callback=one_of(Structure),
        help="array (suffix array and prefix table), tree (suffix array and tree, for search --exact alone) or both "
        "(default: array).",
        show_default=False,
    ),
]
Device = Annotated[str, device_option("a GPU for a tree that fits its memory")]


def index(
    context: typer.Context,
    fasta: Fasta,
    output: FolderName = None,
    structure: StructureName = Structure.ARRAY,
    database: MakeDatabase = False,
    molecule: MoleculeName = AUTO,
    force: Force = False,
    force_64_bits: Annotated[bool, typer.Option("--64-bit", hidden=True)] = False,
    device: Device = "auto",
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Index a reference, for readmap search, or make a database, for readmap scan.

    The index takes about 5 bytes a base on disk, building it up to 14 bytes of memory a base.

    A suffix tree takes about 41 bytes a base more, at most 64, and building it up to 77 bytes of memory a base.

    A database takes a byte a letter on disk, building it about 3 bytes of memory, besides its headers.
    """
    _refuse_conflicts(context)
    if database:
        target = _target(fasta, database_folder.default_folder(fasta), database_folder.KIND, output, force)
        with Report(context.obj, quiet, json) as report:
            make_database(fasta, target, molecule, force, threads, report)
        return
    target = _target(fasta, folder.default_folder(fasta), folder.KIND, output, force)
    with Report(context.obj, quiet, json) as report:
        with report.progress() as show:

            def progress(stage: str, done: int) -> None:
                show(STAGES.get(stage, stage) + (f" {in_bytes(done)}" if done else ""))

            needed = 0

            def tell_memory(count: int) -> None:
                nonlocal needed
                needed = count
                report.say(_memory_line(count))

            began = report.seconds
            built = in_background(
                lambda: build_index(
                    fasta,
                    structure=structure,
                    device=device,
                    threads=threads,
                    force_64_bits=force_64_bits,
                    progress=progress,
                    tell_memory=tell_memory,
                )
            )
            ready = report.seconds
            show("writing")
            built.write(target, force)
            seconds = {"build": round(ready - began, 4), "write": round(report.seconds - ready, 4)}
        record = _record(built, target) | {"memory_bytes": needed}
        tree = f"a suffix tree of {counted(built.nodes, 'node')}; " if built.nodes else ""
        report.say(
            f"{record['index']}: {counted(record['contigs'], 'contig')}, {counted(record['bases'], 'base')}, "
            f"{record['ambiguous_bases']:,} of them ambiguous; {tree}{in_bytes(record['bytes'])} on disk"
        )
        report.say(report.cost())
        report.finish(record | {"seconds": seconds})


def _refuse_conflicts(context: typer.Context) -> None:
    is_database = context.params["database"]
    without = "not with --database, which sorts no suffixes and needs no device"
    conflicts = (
        (["structure", "force_64_bits", "device"], is_database, without),
        (["molecule"], not is_database, "only with --database"),
    )
    refuse(given_options(context), conflicts)


def _target(fasta: str, default: Path, kind: FolderKind, output: str | None, force: bool) -> Path:
    """Where the folder goes; raises before any work where it cannot."""
    if output is None and fasta == "-":
        raise UsageError(f"standard input has no name to call the {kind.noun} after: -o names its folder")
    target = default if output is None else Path(output)
    kind.refuse_existing(target, force)
    kind.expect_writable(target)
    if fasta != "-":
        os.stat(fasta)
    return target


def _memory_line(needed: int) -> str:
    """What building needs of the memory that is available."""
    available = _available_memory()
    line = f"building needs up to {in_bytes(needed)} of memory"
    if available is None:
        return line
    if needed > available:
        return f"warning: {line}, and {in_bytes(available)} are available"
    return f"{line}; {in_bytes(available)} are available"


def _available_memory() -> int | None:
    """The bytes that new work may take without swapping; None where the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", MEMORY_FACTS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _record(built: Index, target: Path) -> dict[str, Any]:
    reference = built.reference
    return {
        "index": printable(str(target)),
        "source": printable(built.source),
        "contigs": len(reference.contigs),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffix_bits": built.suffixes.dtype.itemsize * 8,
        **structure_record(built),
        "bytes": sum(sizes(target).values()),
        "reference_checksum": reference_checksum(reference.contigs),
    }
