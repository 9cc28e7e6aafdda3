"""readmap info: what an index holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from readmap.backend import open_backend
from readmap.cli.options import REPORTS, Debug, Json, Quiet, Threads
from readmap.cli.report import Report, in_bytes, printable, reference_checksum
from readmap.index import folder
from readmap.index.index import Index

EXAMPLES = "[bold]Examples:[/] readmap info ref.fa.readmap --check [dim]|[/] readmap info ref.fa --json -"

#: Contigs that are listed unless all are asked for.
LISTED = 20


def info(
    context: typer.Context,
    named: Annotated[
        str | None,
        typer.Argument(
            metavar="[INDEX]",
            help="The index folder, or the FASTA it was made from (default: $READMAP_INDEX, else the one *.readmap here).",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Verify every file's checksum and the suffixes' order.", show_default=False),
    ] = False,
    contigs: Annotated[
        bool,
        typer.Option("--contigs", help=f"List all contigs, not the first {LISTED}.", rich_help_panel=REPORTS),
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Show what an index holds, and with --check whether it is whole.

    Exit code 1 where it is not.
    """
    path = folder.find(named)
    index = Index.open(path)
    with Report(context.obj, quiet, json) as report:
        if check:
            with report.progress() as show:
                show("verifying checksums")
                folder.verify_checksums(path)
                show("verifying the order of the suffixes")
                index.check(open_backend("cpu", threads))
        record = _record(index, path) | {"checked": check}
        if json != "-" and not quiet:
            _show(index, record, contigs)
        if check:
            report.say("every checksum and the order of the suffixes are right")
        report.finish(record)


def _record(index: Index, path: Path) -> dict[str, object]:
    reference = index.reference
    files = folder.sizes(path)
    return {
        "index": printable(str(path)),
        "format_version": folder.FORMAT_VERSION,
        "source": printable(index.source),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffixes": len(index.suffixes),
        "suffix_bits": index.suffixes.dtype.itemsize * 8,
        "table_bases": index.table_bases,
        "reference_checksum": reference_checksum(reference.contigs),
        "bytes": sum(files.values()),
        "files": files,
        "contigs": [{"name": c.name, "length": c.length, "md5": c.md5} for c in reference.contigs],
    }


def _show(index: Index, record: dict[str, object], all_contigs: bool) -> None:
    # Names hold what rich takes for markup and emoji, and a table that is no terminal's is not cut to 80 columns.
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    reference = index.reference
    facts = {
        "index": f"{record['index']}, format {record['format_version']}",
        "source": record["source"],
        "contigs": f"{len(reference.contigs):,}",
        "bases": f"{reference.bases:,}, {reference.ambiguous_bases:,} of them ambiguous",
        "suffixes": f"{len(index.suffixes):,} of {record['suffix_bits']} bits",
        "prefix table": f"{index.table_bases} bases",
        "checksum": record["reference_checksum"],
        "on disk": in_bytes(sum(folder.sizes(Path(str(record["index"]))).values())),
    }
    for name, fact in facts.items():
        console.print(f"{name:<13} {fact}")
