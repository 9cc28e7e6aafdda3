"""Runs of readmap's commands in children of this process, which has imported it already, and how a run has ended."""

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
from attacks.workers import TELLING, Ended, describe_end, forked
from readmap.cli.common.guard import OUT_OF_MEMORY

#: What no run may say.
FORBIDDEN = re.compile(r"Traceback \(most recent|bug of readmap|Fatal Python error|AddressSanitizer|runtime error:")
#: A place in the package, as tracebacks name it.
PLACE = re.compile(r'File "[^"]*readmap/([^"]+)", line (\d+),? in (\w+)')
ERROR = re.compile(r"readmap: error: .+")

#: Of a file or folder that is to be gone at the end.
TEMPORARY = re.compile(r"\..*|.*\.(?:tmp|part)")


def readmap(words: Sequence[str], patch: Callable[[], None] | None = None) -> int:
    """Run `readmap WORDS` as a process of its own does; patch: called before. To be called in a child."""
    from readmap.__main__ import run

    if patch:
        patch()
    os.environ["COLUMNS"] = "200"
    sys.argv = ["readmap", *words]
    return run()


def run(words: Sequence[str], folder: Path, limit: float = 60.0, patch: Callable[[], None] | None = None) -> Ended:
    """The end of a run in a folder."""
    return forked(partial(readmap, words, patch), folder, limit)


def warm_up() -> None:
    """Import and load here what children need, so that they find it; no thread is left behind."""
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
    """The names of all files and folders within a folder, by their paths from there."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def judge(ended: Ended, folder: Path, before: Collection[str], limit: float = 60.0) -> tuple[Verdict, str]:
    """How a run ended: before: what was in the folder, as names_in gives it. A good end leaves nothing but outputs."""
    last = ended.errors.strip().split("\n")[-1]
    if ended.code is None:
        return Verdict.HUNG, f"no end after {limit:g} s; {last}"
    if place := PLACE.search(ended.errors.rpartition("Current thread")[2]):
        told = "".join(f": {line}" for line in TELLING.findall(ended.errors)[:1])
        return Verdict.CRASHED, f"{describe_end(ended.code)} at {place[1]}:{place[2]} in {place[3]}{told}"
    if found := FORBIDDEN.search(ended.errors):
        line = next(line for line in ended.errors.splitlines() if found[0] in line) if ":" in found[0] else last
        return Verdict.CRASHED, f"{describe_end(ended.code)}: {line or last}"
    if ended.code not in (0, 1, 2, OUT_OF_MEMORY):
        return Verdict.CRASHED, f"{describe_end(ended.code)}: {last}"
    new = {name for name in names_in(folder) if name not in before}
    if ended.code:
        if len(ERROR.findall(ended.errors)) != 1 or not ERROR.fullmatch(last):
            return Verdict.CRASHED, f"{describe_end(ended.code)} with the message {ended.errors[-300:]!r}"
        return (Verdict.HALF, f"it left {sorted(new)} behind {last}") if new else (Verdict.REFUSED, last)
    if left := [name for name in new if TEMPORARY.fullmatch(os.path.basename(name))]:
        return Verdict.HALF, f"it left {left}"
    return Verdict.ACCEPTED, ""


def must(words: Sequence[str], folder: Path, patch: Callable[[], None] | None = None, code: int = 0) -> Ended:
    """The end of a run that has to succeed, since cases are made of what it writes; else the script ends."""
    ended = run(words, folder, 600.0, patch)
    if ended.code != code:
        sys.exit(f"attack: readmap {' '.join(words)}: exit code {ended.code}: {ended.errors}")
    return ended


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files of a folder; of none where it is not there."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def write_base(folder: Path) -> None:
    """The small genome with its index, reads, proteins with their database, and two sequences to compare."""
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
    must(["index", "ref.fa", "--structure", "both", "-t", "1"], folder)
    must(["index", "--database", "proteins.fa", "-t", "1"], folder)
    must(["search", "r1.fq", "r2.fq", "-x", "ref.fa", "--sort", "--for-merge", "-o", "shard.bam", "-t", "1"], folder)
