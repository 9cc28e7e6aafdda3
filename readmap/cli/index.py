"""readmap index: a FASTA file to an index folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.cli.guard import in_background
from readmap.cli.options import FLAG, Debug, Json, Quiet, Threads
from readmap.cli.report import Report, counted, in_bytes, printable, reference_checksum
from readmap.errors import UsageError
from readmap.index import folder
from readmap.index.index import Index, build_index

EXAMPLES = """[bold]Examples[/]
  $ readmap index ref.fa.gz
  $ cat chr1.fa chr2.fa | readmap index - -o both.readmap"""

#: What the stages of build_index are called in the progress.
STAGES = {"read": "reading", "pack": "packing", "sort suffixes": "sorting suffixes", "prefix table": "prefix table"}


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
        help="The index folder (default: REF.readmap, without REF's .gz).",
        show_default=False,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", metavar=FLAG, help="Replace an index that is there.", show_default=False)
]


def index(
    context: typer.Context,
    fasta: Fasta,
    output: FolderName = None,
    force: Force = False,
    force_64_bits: Annotated[bool, typer.Option("--64-bit", hidden=True)] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Index a reference, for readmap search.

    The index takes about 5 bytes a base on disk, building it up to 14 bytes of memory a base.
    """
    target = _target(fasta, output, force)
    with Report(context.obj, quiet, json) as report:
        with report.progress() as show:

            def progress(stage: str, done: int) -> None:
                show(STAGES.get(stage, stage) + (f" {in_bytes(done)}" if done else ""))

            began = report.seconds
            built = in_background(
                lambda: build_index(fasta, threads=threads, force_64_bits=force_64_bits, progress=progress)
            )
            ready = report.seconds
            show("writing")
            built.write(target, force)
            seconds = {"build": round(ready - began, 4), "write": round(report.seconds - ready, 4)}
        record = _record(built, target)
        report.say(
            f"{record['index']}: {counted(record['contigs'], 'contig')}, {counted(record['bases'], 'base')}, "
            f"{record['ambiguous_bases']:,} of them ambiguous; {in_bytes(record['bytes'])} on disk"
        )
        report.say(report.cost())
        report.finish(record | {"seconds": seconds})


def _target(fasta: str, output: str | None, force: bool) -> Path:
    """Where the index goes; raises before any work where it cannot."""
    if output is None and fasta == "-":
        raise UsageError("standard input has no name to call the index after: -o names its folder")
    target = folder.default_folder(fasta) if output is None else Path(output)
    folder.refuse_existing(target, force)
    folder.expect_writable(target)
    if fasta != "-":
        os.stat(fasta)
    return target


def _record(built: Index, target: Path) -> dict[str, Any]:
    reference = built.reference
    return {
        "index": printable(str(target)),
        "source": printable(built.source),
        "contigs": len(reference.contigs),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffix_bits": built.suffixes.dtype.itemsize * 8,
        "table_bases": built.table_bases,
        "bytes": sum(folder.sizes(target).values()),
        "reference_checksum": reference_checksum(reference.contigs),
    }
