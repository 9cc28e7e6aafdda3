"""readmap info: what an index or a database holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.backend import open_backend
from readmap.cli.database import database_named, tell_of_database
from readmap.cli.guard import in_background
from readmap.cli.options import FLAG, Debug, Json, Quiet, Threads
from readmap.cli.report import Report, counted, in_bytes, printable, reference_checksum, structure_record, table
from readmap.errors import UsageError
from readmap.formats.array_folder import sizes
from readmap.index import folder
from readmap.index.device import Structure
from readmap.index.index import Index

EXAMPLES = """[bold]Examples[/]
  $ readmap info ref.fa.readmap --check
  $ readmap info ref.fa --json - | jq .contigs
  $ readmap info proteins.fa.readmapdb"""

#: What each structure searches.
STRUCTURES = {
    Structure.ARRAY: "array",
    Structure.TREE: "tree, for search --exact alone",
    Structure.BOTH: "both: array and tree",
}

#: Contigs that are listed unless all are asked for.
LISTED = 20


def info(
    context: typer.Context,
    named: Annotated[
        str | None,
        typer.Argument(
            metavar="INDEX",
            help="The folder of an index or of a database, or the FASTA that it was made from "
            "(default: $READMAP_INDEX, else the one *.readmap of the current folder).",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            metavar=FLAG,
            help="Verify every file's checksum, the suffixes' order and the suffix tree.",
            show_default=False,
        ),
    ] = False,
    contigs: Annotated[
        bool,
        typer.Option("--contigs", metavar=FLAG, help=f"List all contigs, not the first {LISTED}.", show_default=False),
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = None,
    debug: Debug = False,
) -> None:
    """Show what an index or a database holds and, with --check, whether it is whole: exit code 1 where it is not."""
    shown = json != "-" and not quiet
    if database := database_named(named):
        if contigs:
            raise UsageError("--contigs: a database has none, leave it out")
        with Report(context.obj, quiet, json) as report:
            tell_of_database(database, check, shown, report)
        return
    path = folder.find(named, "INDEX")
    index = Index.open(path)
    with Report(context.obj, quiet, json) as report:
        if check:
            _check(path, index, threads, report)
        record = _record(index, path) | {"checked": check}
        if shown:
            _show(record, None if contigs else LISTED)
        if check:
            tree = ", and the tree agrees with them" if index.nodes else ""
            report.say(f"whole: all checksums are right, the suffixes are in order{tree}")
        report.finish(record)


def _check(path: Path, index: Index, threads: int | None, report: Report) -> None:
    with report.progress() as show:
        show("verifying checksums")
        folder.KIND.verify_checksums(path)
        show("verifying the order of the suffixes" + (" and the tree" if index.nodes else ""))
        in_background(lambda: index.check(open_backend("cpu", threads)))


def _record(index: Index, path: Path) -> dict[str, Any]:
    reference = index.reference
    files = sizes(path)
    return {
        "index": printable(str(path)),
        "format_version": folder.KIND.version,
        "source": printable(index.source),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffixes": len(index.suffixes),
        "suffix_bits": index.suffixes.dtype.itemsize * 8,
        **structure_record(index),
        "reference_checksum": reference_checksum(reference.contigs),
        "bytes": sum(files.values()),
        "files": files,
        "contigs": [{"name": c.name, "length": c.length, "md5": c.md5} for c in reference.contigs],
    }


def _show(record: dict[str, Any], most: int | None) -> None:
    """Print the record as tables on standard output, with the first `most` contigs."""
    files, contigs, tree_bytes = record["files"], record["contigs"], in_bytes(record["suffix_tree_bytes"])
    facts = [
        ("index", f"{record['index']} (format {record['format_version']}, made from {record['source']})"),
        ("bases", f"{record['bases']:,} in {counted(len(contigs), 'contig')}"),
        ("ambiguous", f"{record['ambiguous_bases']:,} bases other than A, C, G, T"),
        ("structure", STRUCTURES[record["structure"]]),
        ("suffix array", f"{record['suffixes']:,} places of {record['suffix_bits']} bits"),
        *([("prefix table", f"{record['table_bases']} bases")] if record["table_bases"] else []),
        *([("suffix tree", f"{counted(record['nodes'], 'node')}, {tree_bytes}")] if record["nodes"] else []),
        ("checksum", record["reference_checksum"]),
        ("on disk", f"{in_bytes(record['bytes'])} in {counted(len(files), 'file')}"),
    ]
    sizes = [("FILE", "SIZE"), *((name, in_bytes(size)) for name, size in files.items())]
    listed = [(contig["name"], f"{contig['length']:,}", contig["md5"]) for contig in contigs[:most]]
    tables = [table(facts, "<<"), table(sizes, "<>"), table([("CONTIG", "BASES", "MD5"), *listed], "<><")]
    if len(listed) < len(contigs):
        tables[-1] += f"\n... and {len(contigs) - len(listed):,} more, which --contigs lists"
    print("\n\n".join(tables))
