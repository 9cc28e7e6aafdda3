"""Run readmap's commands in children of this process, which has already imported readmap, and judge how they end."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from attacks import inputs
from attacks.outcomes import Verdict
from attacks.workers import ERROR_LINES, Ended, describe_end, forked
from readmap.cli.common.guard import OUT_OF_MEMORY

#: Messages that no run may print.
FORBIDDEN = re.compile(r"Traceback \(most recent|bug in readmap|Fatal Python error|AddressSanitizer|runtime error:")
#: A line of a traceback that refers to the package.
PLACE = re.compile(r'File "[^"]*readmap/([^"]+)", line (\d+),? in (\w+)')
ERROR = re.compile(r"readmap: error: .+")

#: Names of files and folders that must have been removed at the end.
TEMPORARY = re.compile(r"\..*|.*\.(?:tmp|part)")


def readmap(words: Sequence[str], patch: Callable[[], None] | None = None) -> int:
    """Run `readmap WORDS` in this process, a child, as the command would; call `patch` before. Return the exit code."""
    from readmap.__main__ import run

    if patch:
        patch()
    os.environ["COLUMNS"] = "200"
    sys.argv = ["readmap", *words]
    return run()


def run(words: Sequence[str], folder: Path, limit: float = 60.0, patch: Callable[[], None] | None = None) -> Ended:
    """Run `readmap WORDS` in a child process in `folder`, and return how it ended."""
    return forked(partial(readmap, words, patch), folder, limit)


def warm_up() -> None:
    """Import and load the modules and kernels that children use; leave no thread running."""
    import readmap as package
    from readmap.backend import open_backend
    from readmap.backend.compilation.sources import modules
    from readmap.cli import main
    from readmap.index.suffix_array import kernel_types

    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "ref.fa"
        reference.write_bytes(b">one\n" + inputs.genome()["one"] + b"\n")
        main(["index", str(reference), "-t", "1", "-q"])  # typer loads more when it is called
        index = package.build_index(reference, structure="both", device="cpu", threads=1)
    read, backend = inputs.genome()["one"][:100], open_backend("cpu", 1)
    rooms = {module.split("/")[0] for module in modules(for_gpu=False)}
    backend.compile_missing(kernel_types(index.suffixes), rooms, lambda line: print(line, file=sys.stderr))
    aligner = package.Aligner(index, "cpu", 1)
    aligner.segments([read], [b"I" * 100])
    for structure in ("array", "tree"):
        index.count([read], structure=structure, device="cpu", threads=1)
    package.compare(read, read, device="cpu", threads=1)
    package.align_pairs([read], [read], device="cpu", threads=1)
    package.scan("MKV", ["MKVL"], device="cpu", threads=1)


def names_in(folder: Path) -> set[str]:
    """Return the paths, relative to `folder`, of all files and folders in it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def judge(ended: Ended, folder: Path, before: Collection[str], limit: float = 60.0) -> tuple[Verdict, str]:
    """Return the verdict on a run, and a reason. A good run leaves no files except its outputs.

    before: the paths in `folder` before the run, from names_in.
    """
    last = ended.errors.strip().split("\n")[-1]
    if ended.code is None:
        return Verdict.HUNG, f"no end after {limit:g} s; {last}"
    if place := PLACE.search(ended.errors.rpartition("Current thread")[2]):
        details = "".join(f": {line}" for line in ERROR_LINES.findall(ended.errors)[:1])
        return Verdict.CRASHED, f"{describe_end(ended.code)} at {place[1]}:{place[2]} in {place[3]}{details}"
    if found := FORBIDDEN.search(ended.errors):
        line = next(line for line in ended.errors.splitlines() if found[0] in line) if ":" in found[0] else last
        return Verdict.CRASHED, f"{describe_end(ended.code)}: {line or last}"
    if ended.code not in (0, 1, 2, OUT_OF_MEMORY):
        return Verdict.CRASHED, f"{describe_end(ended.code)}: {last}"
    new = {name for name in names_in(folder) if name not in before}
    if ended.code:
        if len(ERROR.findall(ended.errors)) != 1 or not ERROR.fullmatch(last):
            return Verdict.CRASHED, f"{describe_end(ended.code)} with the message {ended.errors[-300:]!r}"
        return (Verdict.HALF, f"it left {sorted(new)} after {last}") if new else (Verdict.REFUSED, last)
    if left := [name for name in new if TEMPORARY.fullmatch(os.path.basename(name))]:
        return Verdict.HALF, f"it left {left}"
    return Verdict.ACCEPTED, ""


def run_or_exit(words: Sequence[str], folder: Path, patch: Callable[[], None] | None = None, code: int = 0) -> Ended:
    """Run a command that prepares cases and must end with exit code `code`; exit if it does not."""
    ended = run(words, folder, 600.0, patch)
    if ended.code != code:
        sys.exit(f"attack: readmap {' '.join(words)}: exit code {ended.code}: {ended.errors}")
    return ended


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of each file of a folder by its path; an empty dict if the path is missing."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def write_base(folder: Path) -> None:
    """Write a small genome with its index, reads, proteins with their database, and two sequences to compare."""
    from random import Random

    import pysam

    folder.mkdir(parents=True, exist_ok=True)
    draw = Random("base")
    parts = [inputs.fastq(draw, 8, suffixes=False) for _ in range(4)]
    reads = b"".join(part if part.endswith(b"\n") else part + b"\n" for part in parts)
    first, second = inputs.pairs(draw)
    made = {"ref.fa": inputs.fasta(draw, inputs.genome()), "reads.fq": reads, "r1.fq": first, "r2.fq": second}
    made |= {"proteins.fa": inputs.proteins(draw, 12), "query.fa": b">q\n" + inputs.letters(draw, 60, inputs.PROTEIN)}
    text = inputs.letters(draw, 700)
    other = text[:300] + inputs.letters(draw, 20) + text[310:]
    made |= {"one.fa": b">one\n" + text + b"\n", "other.fa": b">other\n" + other + b"\n"}
    made |= {"reads.bam": inputs.bgzf(inputs.bam(draw)[0]), "matrix": inputs.matrix(draw)}
    for name, data in made.items():
        (folder / name).write_bytes(data)
    cram = ["-C", "--output-fmt-option", "no_ref=1", "-o", str(folder / "reads.cram"), str(folder / "reads.bam")]
    pysam.view(*cram, catch_stdout=False)
    run_or_exit(["index", "ref.fa", "--structure", "both", "-t", "1"], folder)
    run_or_exit(["index", "--database", "proteins.fa", "-t", "1"], folder)
    run_or_exit(
        ["search", "r1.fq", "r2.fq", "-x", "ref.fa", "--sort", "--for-merge", "-o", "shard.bam", "-t", "1"], folder
    )
