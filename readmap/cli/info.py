"""readmap info: show the contents of an index or a database, and check it."""

from pathlib import Path
from typing import Any

import typer

from readmap.backend import open_backend
from readmap.cli.common.folders import database_as_json, find_database, structure_as_json
from readmap.cli.common.guard import in_background
from readmap.cli.common.options import argument, command, flag, option_group
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.shared_options import Resources
from readmap.database.database import Database
from readmap.errors import BackendError, UsageError
from readmap.formats.array_folder import sizes
from readmap.formats.wording import format_bytes, format_table, pluralize, printable
from readmap.index import folder
from readmap.index.device import IndexStructure
from readmap.index.index import Index
from readmap.index.reference import reference_checksum

EXAMPLES = """[bold]Examples[/]
  $ readmap info ref.fa.readmap --check
  $ readmap info ref.fa --json - | jq .contigs
  $ readmap info proteins.fa.readmapdb"""

#: Descriptions of the structures of an index.
STRUCTURES = {
    IndexStructure.ARRAY: "array",
    IndexStructure.TREE: "tree, for search --exact only",
    IndexStructure.BOTH: "both: array and tree",
}
#: Number of contigs that are listed without --contigs.
LISTED_CONTIGS = 20


@option_group()
class InfoOptions:
    """All options of readmap info."""

    named: str | None = argument(
        "INDEX",
        "Index or database, or its FASTA file (default: $READMAP_INDEX, else the only *.readmap here).",
        default=None,
    )
    check: bool = flag("--check", "Verify the checksums of all files, the order of the suffixes and the suffix tree.")
    contigs: bool = flag("--contigs", f"List all contigs, not only the first {LISTED_CONTIGS}.")
    resources: Resources
    report: ReportOptions


@command
def info(context: typer.Context, options: InfoOptions) -> None:
    """Show the contents of an index or a database; with --check, verify it: exit code 1 if it is damaged."""
    if database := find_database(options.named):
        if options.contigs:
            raise UsageError("--contigs: a database has no contigs")
        with Report(context.obj, options.report) as report:
            _report_database(database, options, report)
        return
    path = folder.find(options.named, "INDEX")
    index = Index.open(path)
    with Report(context.obj, options.report) as report:
        if options.check:
            _check(index, options.resources, report)
        record = _as_json(index, path) | {"checked": options.check}
        if options.report.prints:
            _show(record, None if options.contigs else LISTED_CONTIGS)
        if options.check:
            tree = ", and the tree agrees with them" if index.nodes else ""
            report.say(f"intact: all checksums are correct, the suffixes are in order{tree}")
        report.finish(record)


def _report_database(path: Path, options: InfoOptions, report: Report) -> None:
    """Show the contents of a database; with --check, raise DatabaseFolderError if it is damaged."""
    database = Database.open(path)
    if options.check:
        with report.progress() as show:
            show("verifying checksums")
            in_background(lambda: database.check(open_backend("cpu", options.resources.threads)))
    files = sizes(path)
    record = database_as_json(database, path, files)
    record |= {"made_by": _maker(database), "files": files, "checked": options.check}
    if options.report.prints:
        facts = [
            ("database", f"{record['database']} ({_origin(record)})"),
            ("molecule", record["molecule"]),
            ("letters", f"{database.letters:,} in {pluralize(len(database), 'sequence')}"),
            ("longest", pluralize(database.longest, "letter")),
            ("on disk", f"{format_bytes(record['bytes'])} in {pluralize(len(files), 'file')}"),
        ]
        print("\n\n".join([format_table(facts, "<<"), _table_of(files)]))
    if options.check:
        report.say("intact: all checksums are correct")
    report.finish(record)


def _check(index: Index, resources: Resources, report: Report) -> None:
    """Raise IndexFolderError if the index is damaged; check it on the CPU if --device auto finds a GPU that fails."""
    with report.progress() as show:
        show("verifying checksums and the order of the suffixes" + (" and the tree" if index.nodes else ""))
        try:
            in_background(lambda: index.check(resources.open_backend()))
        except BackendError as error:
            if resources.device != "auto":
                raise
            report.say(f"{error}: checking the index on the CPU")
            in_background(lambda: index.check(open_backend("cpu", resources.threads)))


def _as_json(index: Index, path: Path) -> dict[str, Any]:
    """Return the contents of an index for the JSON report."""
    reference = index.reference
    files = sizes(path)
    return {
        "index": printable(str(path)),
        "format_version": folder.KIND.version,
        "made_by": _maker(index),
        "source": printable(index.source),
        "bases": reference.bases,
        "ambiguous_bases": reference.ambiguous_bases,
        "suffixes": len(index.suffixes),
        "suffix_bits": index.suffixes.dtype.itemsize * 8,
        **structure_as_json(index),
        "reference_checksum": reference_checksum(reference.contigs),
        "bytes": sum(files.values()),
        "files": files,
        "contigs": [{"name": c.name, "length": c.length, "md5": c.md5} for c in reference.contigs],
    }


def _show(record: dict[str, Any], max_contigs: int | None) -> None:
    """Print the contents of an index as tables, with the first `max_contigs` contigs."""
    files, contigs, tree_bytes = record["files"], record["contigs"], format_bytes(record["suffix_tree_bytes"])
    facts = [
        ("index", f"{record['index']} ({_origin(record)})"),
        ("bases", f"{record['bases']:,} in {pluralize(len(contigs), 'contig')}"),
        ("ambiguous", f"{record['ambiguous_bases']:,} bases other than A, C, G, T"),
        ("structure", STRUCTURES[record["structure"]]),
        ("suffix array", f"{record['suffixes']:,} positions of {record['suffix_bits']} bits"),
        *([("prefix table", f"{record['table_bases']} bases")] if record["table_bases"] else []),
        *([("suffix tree", f"{pluralize(record['nodes'], 'node')}, {tree_bytes}")] if record["nodes"] else []),
        ("checksum", record["reference_checksum"]),
        ("on disk", f"{format_bytes(record['bytes'])} in {pluralize(len(files), 'file')}"),
    ]
    listed = [(contig["name"], f"{contig['length']:,}", contig["md5"]) for contig in contigs[:max_contigs]]
    tables = [format_table(facts, "<<"), _table_of(files), format_table([("CONTIG", "BASES", "MD5"), *listed], "<><")]
    if len(listed) < len(contigs):
        tables[-1] += f"\n... and {len(contigs) - len(listed):,} more: --contigs lists all"
    print("\n\n".join(tables))


def _maker(contents: Index | Database) -> str:
    """Return the program and version that made an index or a database."""
    return printable(str(contents.stored.manifest["made_by"])) if contents.stored else ""


def _origin(record: dict[str, Any]) -> str:
    return f"format {record['format_version']}, made from {record['source']} by {record['made_by']}"


def _table_of(files: dict[str, int]) -> str:
    """Return a table of files and their sizes."""
    return format_table([("FILE", "SIZE"), *((name, format_bytes(size)) for name, size in files.items())], "<>")
