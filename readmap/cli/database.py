"""Databases for readmap scan: readmap index --database makes them, readmap info tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from readmap.backend.cpu import available_processors
from readmap.cli.guard import in_background
from readmap.cli.options import FLAG, one_of
from readmap.cli.report import Report, counted, in_bytes, printable, table
from readmap.database import folder as database_folder
from readmap.database.database import Database, build_database
from readmap.formats.alphabets import Alphabet
from readmap.formats.array_folder import sizes
from readmap.index import folder

PANEL = "Databases"

#: Not a molecule: what the file tells.
AUTO = "auto"

MakeDatabase = Annotated[
    bool,
    typer.Option(
        "--database",
        metavar=FLAG,
        help="Make a database for readmap scan, of proteins or nucleotides: REF.readmapdb, without REF's .gz.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
MoleculeName = Annotated[
    str,
    typer.Option(
        "--molecule",
        metavar="NAME",
        callback=one_of((AUTO, *Alphabet)),
        help="What the sequences are: nucleotide, protein or auto, which takes those for nucleotides whose letters are "
        "A, C, G, T, U or N by 90 % or more in the first megabyte (default: auto).",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]


def make_database(fasta: str, target: Path, molecule: str, force: bool, threads: int | None, report: Report) -> None:
    """Build a database from a FASTA file and keep it in a folder."""
    known = None if molecule == AUTO else Alphabet(molecule)
    workers = threads or available_processors()
    began = report.seconds
    with report.progress() as show:

        def progress(done: int) -> None:
            show(f"reading {in_bytes(done)}")

        built = in_background(lambda: build_database(fasta, workers, known, progress))
        ready = report.seconds
        show("writing")
        built.write(target, force)
    seconds = {"build": round(ready - began, 4), "write": round(report.seconds - ready, 4)}
    record = _record(built, target)
    report.say(
        f"{record['database']}: {counted(len(built), f'{built.molecule} sequence')}, "
        f"{counted(built.letters, 'letter')}, {built.longest:,} the longest; {in_bytes(record['bytes'])} on disk"
    )
    report.say(report.cost())
    report.finish(record | {"seconds": seconds})


def database_named(named: str | None) -> Path | None:
    """The database's folder that a user means: by its name or, where it has no index, by that of its FASTA file."""
    if named is None:
        return None
    path, beside = Path(named), database_folder.default_folder(named)
    if _is_database(path):
        return path
    has_index = folder.KIND.is_there(path) or folder.KIND.is_there(folder.default_folder(named))
    return beside if path.is_file() and not has_index and database_folder.KIND.is_there(beside) else None


def tell_of_database(path: Path, check: bool, shown: bool, report: Report) -> None:
    """Show what a database holds and, if that is to be checked, raise DatabaseFolderError where it is not whole."""
    database = Database.open(path)
    if check:
        with report.progress() as show:
            show("verifying checksums")
            in_background(lambda: database_folder.KIND.verify_checksums(path))
    files = sizes(path)
    record = _record(database, path) | {"files": files, "checked": check}
    if shown:
        facts = [
            ("database", f"{record['database']} (format {record['format_version']}, made from {record['source']})"),
            ("molecule", record["molecule"]),
            ("letters", f"{database.letters:,} in {counted(len(database), 'sequence')}"),
            ("longest", counted(database.longest, "letter")),
            ("on disk", f"{in_bytes(record['bytes'])} in {counted(len(files), 'file')}"),
        ]
        listed = [("FILE", "SIZE"), *((name, in_bytes(size)) for name, size in files.items())]
        print("\n\n".join([table(facts, "<<"), table(listed, "<>")]))
    if check:
        report.say("whole: all checksums are right")
    report.finish(record)


def _is_database(path: Path) -> bool:
    is_index, is_database = folder.KIND.is_there(path), database_folder.KIND.is_there(path)
    # Where the manifest does not tell, damaged or absent, the name does.
    return path.suffix == database_folder.ENDING if is_index == is_database else is_database


def _record(database: Database, path: Path) -> dict[str, Any]:
    return {
        "database": printable(str(path)),
        "format_version": database_folder.KIND.version,
        "source": printable(database.source),
        "molecule": str(database.molecule),
        "sequences": len(database),
        "letters": database.letters,
        "longest": database.longest,
        "bytes": sum(sizes(path).values()),
    }
