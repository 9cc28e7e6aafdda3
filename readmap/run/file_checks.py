"""The files of a search: wrong ones are refused before any work, and doubtful ones are found."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

from readmap.cli.common.conflicts import are_same, refuse_inputs, refuse_same_outputs
from readmap.run.output_format import ENDINGS, is_unknown, kind_by_ending
from readmap.run.lanes import Lane, files_of
from readmap.cli.search.options import Options, PairOptions
from readmap.errors import UsageError
from readmap.formats.array_folder import MANIFEST
from readmap.formats.byte_source import open_bytes
from readmap.index import folder
from readmap.reads.bad_records import MAX_READ_LENGTH
from readmap.reads.chunks import PairLayout

#: Enough for a header line and the first bases that make a sequence too long for a read.
START_BYTES = 1 << 16


def check_files(options: Options, lanes: Sequence[Lane]) -> list[PairLayout]:
    """How the reads lie in the files of each lane; without lanes, in those that are named.

    Raises UsageError where files are none, too many, no reads, or those of another option, OSError where one cannot be
    read.
    """
    files = files_of(lanes, options.reads)
    if not files:
        raise UsageError("no reads: name their files, or --lane, or --sheet (readmap search --help says more)")
    _check_reads(files, options.index is not None)
    layouts = [lane.layout for lane in lanes]
    if not layouts:
        layouts = [_layout_of(files, options.pairs, options.exact.is_exact)]
    _check_outputs(options, files)
    return layouts


def _layout_of(paths: Sequence[str], pairs: PairOptions, exact: bool) -> PairLayout:
    several = f"{len(paths)} files of reads are given"
    if len(paths) > 1 and exact:
        raise UsageError(f"{several}, and --exact takes one: join them with cat and search -")
    for option, is_given in (("-p", pairs.interleaved), ("--smart-pairing", pairs.smart_pairing)):
        if len(paths) > 1 and is_given:
            raise UsageError(f"{several}, and {option} takes one: leave out {option}, or name one file")
    if len(paths) > 2:
        raise UsageError(f"{several}, and a search takes one, or two of pairs: join files with cat and search -")
    if len(paths) == 2 and are_same(*paths):
        raise UsageError(f"{paths[0]} and {paths[1]} are one file: name that of the mates, or -p where mates alternate")
    if pairs.smart_pairing:
        return PairLayout.ADJACENT
    return PairLayout.TWO_FILES if len(paths) == 2 else PairLayout.INTERLEAVED if pairs.interleaved else PairLayout.SINGLE


def _check_reads(paths: Sequence[str], index_named: bool) -> None:
    """index_named: by -x; without it, a reference as the first file is taken for a slip."""
    first = paths[0]
    if not index_named and (reason := _why_reference(first)):
        whole = f" (readmap search {shlex.join([*paths[1:], '-x', first])})" if len(paths) > 1 else ""
        raise UsageError(f"{first} {reason}, not reads: did you mean -x {first}?{whole}")
    for path in paths:
        if _is_regular(path) or os.path.isdir(path):
            with open(path, "rb"):  # a pipe is not opened twice: its writer would not survive that
                pass
        elif path != "-":
            os.stat(path)


def _check_outputs(options: Options, reads: Sequence[str]) -> None:
    output, metrics, page = options.output, options.duplicates.metrics, options.quality.page
    options.quality.check()
    if kind_by_ending(output.unmapped) is not None:
        raise UsageError(f"--unmapped {output.unmapped}: FASTQ is written: name it so, as unmapped.fq.gz")
    others = {"--unmapped": output.unmapped, "--metrics": metrics, "--report": page, "--json": options.report.json}
    refuse_inputs({"-o": output.path} | others, reads, "reads")
    refuse_inputs({"-o": output.path} | others, filter(None, [options.shards.table]), "split")
    if not output.kind_name and not options.exact.count_only and is_unknown(output.path):
        expected = f"a name that ends with {', '.join(ENDINGS)}, or --format"
        raise UsageError(f"-o {output.path}: expected {expected}")
    told = {"--unmapped": "the reads without a place go", "--metrics": "the metrics go", "--report": "the page goes"}
    refuse_same_outputs({"-o": output.path} | others, told)


def is_older_than_source(index: Path, named: str | None) -> bool:
    """Whether the FASTA file by which an index was named has changed since."""
    if named is None or not os.path.isfile(named):
        return False
    return os.path.getmtime(named) > (index / MANIFEST).stat().st_mtime


def _why_reference(path: str) -> str | None:
    """The reason to take a file for a reference; None where there is none."""
    if folder.KIND.exists(Path(path)):
        return "is an index"
    if not _is_regular(path):
        return None
    if folder.KIND.exists(folder.default_folder(path)):
        return "is a reference, with its index beside it"
    record = _long_first_record(path)
    return f"looks like a reference (its first sequence, {record}, has over {MAX_READ_LENGTH:,} bases)" if record else None


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _long_first_record(path: str) -> str | None:
    """The name of a FASTA file's first sequence if that is longer than any read."""
    target = bytearray(START_BYTES)
    with open_bytes(path) as source:
        start = bytes(target[: source.readinto(memoryview(target))])
    header, _, rest = start.partition(b"\n")
    sequence = rest.split(b"\n>", 1)[0].translate(None, b"\r\n")
    if not header.startswith(b">") or len(sequence) <= MAX_READ_LENGTH:
        return None
    return (header[1:].split() or [b"unnamed"])[0].decode("ascii", "backslashreplace")
