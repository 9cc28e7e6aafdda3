"""readmap index: a FASTA file to an index folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from readmap.cli.guard import in_background
from readmap.cli.options import Debug, Json, Quiet, Threads
from readmap.cli.report import Report, in_bytes, printable, reference_checksum
from readmap.errors import UsageError
from readmap.index import folder
from readmap.index.index import Index, build_index

EXAMPLES = "[bold]Examples:[/] readmap index ref.fa.gz [dim]|[/] zcat a.fa.gz b.fa.gz | readmap index - -o both.readmap"

#: What the stages of build_index are called in the progress.
STAGES = {"read": "reading", "pack": "packing", "sort suffixes": "sorting suffixes", "prefix table": "prefix table"}


def index(
    context: typer.Context,
    fasta: Annotated[
        str,
        typer.Argument(
            metavar="REF", help="FASTA: plain, gzip or bgzip; - is standard input, and needs -o.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The index folder (default: REF.readmap, without REF's .gz).",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an index that is there.", show_default=False)] = False,
    force_64_bits: Annotated[bool, typer.Option("--64-bit", hidden=True)] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Index a reference for readmap search.

    The folder holds the packed sequences, their suffix array and a prefix table: about 5 bytes a base and at most 67 MB
    (9 bytes and 134 MB above 4 Gbp). It appears whole or not at all. Building takes about 14 bytes of memory a base.
    """
    target = _target(fasta, output, force)
    with Report(context.obj, quiet, json) as report:
        with report.progress() as show:
            began = time.perf_counter()
            built = in_background(
                lambda: build_index(
                    fasta,
                    threads=threads,
                    force_64_bits=force_64_bits,
                    progress=lambda stage, done: show(STAGES.get(stage, stage) + (f" {in_bytes(done)}" if done else "")),
                )
            )
            seconds = {"build": round(time.perf_counter() - began, 4)}
            show("writing")
            built.write(target, force)
            seconds["write"] = round(time.perf_counter() - began - seconds["build"], 4)
        size = sum(folder.sizes(target).values())
        reference = built.reference
        report.say(
            f"{printable(str(target))}: {_counted(len(reference.contigs), 'contig')}, {_counted(reference.bases, 'base')}, "
            f"{reference.ambiguous_bases:,} of them ambiguous; {in_bytes(size)} on disk"
        )
        report.say(report.cost())
        report.finish(_record(built, target, size) | {"seconds": seconds})


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


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _record(built: Index, target: Path, size: int) -> dict[str, object]:
    reference = built.reference
    return {
        "index": printable(str(target)),
        "source": printable(built.source),
        "contigs": len(reference.contigs),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffix_bits": built.suffixes.dtype.itemsize * 8,
        "table_bases": built.table_bases,
        "bytes": size,
        "reference_checksum": reference_checksum(reference.contigs),
    }
