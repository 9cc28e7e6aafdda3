"""Commands on small inputs that launch every kernel of a device; as a program, run one of them.

    python -m attacks.device_runs RECORD DEVICE SETTING WORD...

CuPy's memory pool is disabled, since a sanitizer does not detect an overrun within a block of the pool. The names of
the kernels are appended to RECORD as they are launched.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from attacks import inputs


class Run(NamedTuple):
    """A command without its device option, a key of SETTINGS, and the folder to fill with random contents, if any."""

    words: list[str]
    setting: str = "usual"
    folder: str = ""


INDEX, WIDE, DATABASE, BEGUN = "ref.readmap", "wide.readmap", "proteins.readmapdb", "begun"

#: 32-bit scores make strips of few rows, so that a small comparison has several strips.
COMPARE = ["compare", "one.fa", "other.fa", "-o", "out.tsv", "--match", "200", "--no-pruning", "--checkpoint", BEGUN]


def _search(words: str, setting: str = "usual", index: str = INDEX, output: str = "out.sam") -> Run:
    return Run(["search", *words.split(), "-x", index, "-o", output], setting)


def _plain(words: str, setting: str = "usual") -> Run:
    return Run(words.split(), setting)


#: The runs that write the folders and the checkpoint of the other runs; the comparison is interrupted.
MAKING = (
    _plain(f"index ref.fa --structure both -o {INDEX}"),
    _plain(f"index ref.fa --structure both -o {WIDE} --64-bit"),
    _plain(f"index --database proteins.fa -o {DATABASE}"),
    Run(COMPARE, "interrupted"),
)

VALID = (
    _plain("index ref.fa --structure both -o new.readmap"),
    _plain("index ref.fa --structure tree -o new.readmap --64-bit", "small"),
    _plain(f"info {INDEX} --check"),
    _plain(f"info {WIDE} --check"),
    _search("reads.fq -C --smart-pairing"),
    _search("blocked.fq.gz"),
    _search("r1.fq r2.fq --sort --sort-order queryname", output="out.bam"),
    _search("reads.fq -A 33"),
    _search("reads.fq -a", "small"),
    _search("r1.fq r2.fq --unmapped no.fq", output="out.bam"),
    _search("r1.fq r2.fq --sort --report out.html", output="out.bam"),
    _search("r1.fq r2.fq --sort --markdup --duplicate-type -C --barcode-tag RX", output="out.bam"),
    _search("reads.fq --sort --remove-duplicates --barcode-name", output="out.bam"),
    _plain("markdup reads.bam -o out.bam --optical-distance 2500 --report out.html"),
    _search("r1.fq r2.fq -a", index=WIDE),
    _search("r1.fq r2.fq -a -I 300,50", "small"),
    _search("reads.bam --unmapped no.fq"),
    _search("exact.fa --exact --structure array"),
    _search("exact.fa --exact --structure array --no-prefix-table --strand reverse", output="out.bed"),
    _search("exact.fa --exact --structure tree", output="out.tsv"),
    _search("exact.fa --exact --structure tree --strand reverse --no-prefix-table", index=WIDE),
    _search("exact.fa --exact --structure array --count-only", index=WIDE, output="out.tsv"),
    _plain("compare one.fa other.fa -o out.txt --strand both", "fine"),
    _plain("compare one.fa other.fa -o out.tsv --score-only"),
    Run(COMPARE, "fine"),
    _plain("compare several.fa one.fa -o out.tsv", "heights"),
    _plain("compare --pairs several.fa mutated.fa -o out.paf --strand both"),
    _plain("compare --pairs several.fa mutated.fa -o out.tsv --score-only --mode semiglobal"),
    _plain("compare --pairs several.fa mutated.fa -o out.tsv --mode global", "heights"),
    _plain("compare --pairs several.fa mutated.fa -o out.tsv --mode global --match 900", "small"),
    _plain("compare --pairs several.fa mutated.fa -o out.tsv --match 900"),
    _plain(f"scan queries.fa {DATABASE} -o out.txt"),
    _plain("scan queries.fa proteins.fa -o out.tsv --matrix matrix --min-score 5", "fine"),
    _plain("scan several.fa mutated.fa -o out.sam --strand both --max-hits 6", "small"),
    _plain("scan several.fa mutated.fa -o out.tsv --match 200 --mismatch 300 --max-hits 6", "small"),
    _plain("scan several.fa mutated.fa -o out.tsv --match 900 --mismatch 900 --max-hits 3", "fine"),
    _plain(f"locate {INDEX} exact.fa"),
)

#: Searches in an index with random contents.
SEARCHES = (
    "reads.fq",
    "r1.fq r2.fq -a",
    "exact.fa --exact --structure array",
    "exact.fa --exact --structure tree --strand reverse",
)

DAMAGED = (
    *(_search(words, index=index)._replace(folder=index) for index in (INDEX, WIDE) for words in SEARCHES),
    _plain(f"info {INDEX} --check")._replace(folder=INDEX),
    _plain(f"scan queries.fa {DATABASE} -o out.txt --evalue 1e9")._replace(folder=DATABASE),
    Run(COMPARE, "fine", BEGUN),
)


def write_inputs(folder: Path) -> None:
    """Write a genome with repeats, reads with differences of all sizes, sequences to compare, and proteins."""
    import pysam

    draw = Random("device")
    one, family = inputs.letters(draw, 3000), inputs.letters(draw, 400)
    two = b"RN" + b"".join(family[:i] + inputs.letters(draw, 5) + family[i:] for i in (50, 100, 200, 300)) + b"NNNN"
    contigs = {"one": one, "two": two + inputs.letters(draw, 900), "three": inputs.letters(draw, 30), "four": b"NNNN"}
    contigs["runs"] = b"A" * 200 + b"GATTACA" * 40
    reads = [_read(draw, contigs["one" if i % 2 else "two"], i) for i in range(80)]
    pairs = [_pair(draw, contigs["one" if i % 2 else "two"], i) for i in range(80)]
    contigs["families"], straddling = _families(draw)
    pairs += straddling
    reads, pairs = reads + reads[:20], pairs + pairs[:20]  # duplicates, some of them adjacent
    exact = [bases[:60].replace(b"N", b"A") for bases in reads] + [one[i : i + 30] for i in range(0, 900, 30)]
    several = {f"s{i}": inputs.letters(draw, 40 + 5 * i) for i in range(24)}
    mutated = {f"m{name}": inputs.letters(draw, 9) + _mutated(draw, text, 10) for name, text in several.items()}
    proteins = {f"p{i}": inputs.letters(draw, draw.randrange(1, 200), inputs.PROTEIN) for i in range(40)}
    # Lengths for which a GPU's threads process different numbers of rows.
    queries = {f"q{i}": inputs.letters(draw, i, inputs.PROTEIN) for i in (5, 32, 48, 128, 160, 192, 224, 256)}
    long = inputs.letters(draw, 1300)
    other = long[:400] + inputs.letters(draw, 30) + _mutated(draw, long[450:], 20)
    made = {"ref.fa": contigs, "several.fa": several, "mutated.fa": mutated, "proteins.fa": proteins}
    made |= {"queries.fa": queries | {"part": proteins["p3"]}, "one.fa": {"one": long}, "other.fa": {"other": other}}
    made |= {"exact.fa": {f"r{i}": bases for i, bases in enumerate(exact) if bases}}
    for name, records in made.items():
        (folder / name).write_bytes(b"".join(b">%b\n%b\n" % (key.encode(), text) for key, text in records.items()))
    (folder / "matrix").write_bytes(inputs.matrix(draw))
    for name, texts in (("reads.fq", reads), ("r1.fq", [a for a, _ in pairs]), ("r2.fq", [b for _, b in pairs])):
        names = [b"r:%d:FC:1:1101:%d:%d" % (i, 9 * i, i) for i, _ in enumerate(texts)]
        quality = [b"I" * len(bases) for bases in texts]
        lines = [b"@%b RX:Z:ACGT\n%b\n+\n%b\n" % one for one in zip(names, texts, quality, strict=True)]
        (folder / name).write_bytes(b"".join(lines))
    pysam.tabix_compress(str(folder / "reads.fq"), str(folder / "blocked.fq.gz"))
    files = [str(folder / name) for name in ("r1.fq", "r2.fq", "reads.bam")]
    pysam.samtools.fqimport("-1", files[0], "-2", files[1], "-o", files[2])


def _mutated(draw: Random, text: bytes, spacing: int) -> bytes:
    """Replace a letter in every `spacing` letters."""
    letters = bytearray(text)
    for place in range(draw.randrange(spacing), len(letters), spacing):
        letters[place] = draw.choice(b"ACGT")
    return bytes(letters)


def _read(draw: Random, contig: bytes, number: int) -> bytes:
    """Return a read with a gap, a part of another position, errors, or random bases; a few reads are long."""
    length = 900 if number % 20 == 0 else draw.randrange(20, 220)
    start = draw.randrange(len(contig) - length - 50)
    bases, middle = contig[start : start + length], length // 2
    gap = (0, 0, 3, 7, 12, 15, 20, 40)[number % 8]
    if gap:
        bases = contig[start : start + middle] + contig[start + middle + gap : start + length + gap]
    if number % 11 == 0:
        bases = bases[:middle] + inputs.letters(draw, length - middle)
    if number % 13 == 0:
        bases = inputs.letters(draw, length)
    bases = _mutated(draw, bases, 60) if number % 3 == 0 else bases
    return bases if number % 5 else bases.translate(inputs.COMPLEMENT)[::-1]


def _pair(draw: Random, contig: bytes, number: int) -> tuple[bytes, bytes]:
    """Return mates about 300 bases apart, some of them found only near their mate."""
    start, length = draw.randrange(len(contig) - 400), draw.randrange(60, 120)
    size = 280 + draw.randrange(40)
    first = contig[start : start + length]
    second = contig[start + size - length : start + size].translate(inputs.COMPLEMENT)[::-1]
    if number % 6 == 0:
        second = _mutated(draw, second, 9)
    if number % 17 == 0:
        first = inputs.letters(draw, length)
    return first, second


def _families(draw: Random) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return a contig of two alternating repeats, and pairs with a mate in each, which exceed the window limit."""
    first, second = (inputs.letters(draw, 90) for _ in range(2))
    contig = b"".join(first + inputs.letters(draw, 110) + second + inputs.letters(draw, 20) for _ in range(40))
    return contig, [(first[i : i + 60], second[i + 20 : i + 80].translate(inputs.COMPLEMENT)[::-1]) for i in range(10)]


def _usual() -> None:
    """Keep the default settings."""


def _small() -> None:
    """Limit memory, so that batches, suffixes, pairs and borders are split, and large pairs are aligned separately."""
    from readmap.backend.cpu import CpuBackend
    from readmap.backend.cuda import CudaBackend
    from readmap.database import hit_alignment
    from readmap.index import sort_plan, suffix_array

    CpuBackend.scratch_bytes = CudaBackend.scratch_bytes = 1 << 14
    hit_alignment.MIN_CROP_CELLS = 0
    suffix_array.SMALL, sort_plan._MIN_PAIRS, sort_plan._MAX_PAIRS = 0, 1, 1


def _fine() -> None:
    """Use slabs and tiles of a few rows, and one group of threads, so that small sequences have several of them."""
    from attacks.folders import few_rows
    from readmap.backend.cpu import CpuBackend
    from readmap.backend.cuda import CudaBackend

    few_rows()
    for backend in (CpuBackend, CudaBackend):
        _after(backend, "__init__", lambda self: vars(self).update(concurrent_warps=1, resident_warps=1))


def _interrupted() -> None:
    """Apply the setting "fine", and end the process when the checkpoint has two slabs."""
    from readmap.pairwise.checkpoint import Checkpoint

    _fine()
    _after(Checkpoint, "save", lambda self: os._exit(0) if (self._folder / "slab-1.npz").exists() else None)


def _heights() -> None:
    """Alternate between all row counts per lane that the sweep kernels support."""
    from readmap.pairwise.matrix import DPMatrix

    turns = itertools.count()

    def choose_lane_rows(self: DPMatrix, rows: int, columns: int, row_step: int) -> int:
        fitting = [n for n in self._sweep_costs if row_step >= rows or not row_step % (self.lanes * n)]
        return fitting[next(turns) % len(fitting)]

    _small()
    DPMatrix.choose_lane_rows = choose_lane_rows  # type: ignore[method-assign]


SETTINGS: dict[str, Callable[[], None]] = {
    "usual": _usual,
    "small": _small,
    "fine": _fine,
    "interrupted": _interrupted,
    "heights": _heights,
}


def _after(owner: type, name: str, more: Callable[[Any], Any]) -> None:
    """Wrap a method so that it calls `more` with the object afterwards."""
    method = getattr(owner, name)

    def both(self: Any, *given: Any, **named: Any) -> None:
        method(self, *given, **named)
        more(self)

    setattr(owner, name, both)


def _record_launches(backend: type, record: Path) -> None:
    launched, run = set(), backend.run  # type: ignore[attr-defined]

    def recorded(self: Any, kernel: Any, *rest: Any) -> None:
        name = f"{kernel.module} {kernel.name}"
        if name not in launched:
            launched.add(name)
            with record.open("a") as file:
                file.write(f"{name}\n")
        run(self, kernel, *rest)

    backend.run = recorded  # type: ignore[attr-defined]


def _locate(device: str, index: str, sequences: str) -> int:
    """Locate sequences by the library function, with arguments that no command uses."""
    from readmap import Index

    wanted = [line for line in Path(sequences).read_text().splitlines() if not line.startswith(">")]
    for structure in ("array", "tree"):
        Index.open(index).locate(wanted, strand="both", structure=structure, device=device, threads=1)
    return 0


#: Functions of the library that no command calls, by the first word.
LIBRARY: dict[str, Callable[..., int]] = {"locate": _locate}


def main(record: str, device: str, setting: str, *words: str) -> int:
    """Run a command of readmap, or a function of the library, on a device with a setting."""
    from attacks.command_runs import readmap
    from readmap.backend.cpu import CpuBackend
    from readmap.backend.cuda import CudaBackend

    if device != "cpu":
        import cupy

        cupy.cuda.set_allocator(None)
    _record_launches(CpuBackend if device == "cpu" else CudaBackend, Path(record))
    SETTINGS[setting]()
    if words[0] in LIBRARY:
        return LIBRARY[words[0]](device, *words[1:])
    given = [] if "--database" in words else ["--device", device]
    return readmap([*words, "-t", "1", "-q", *given])


if __name__ == "__main__":
    from readmap.cli.common.guard import exit_process

    exit_process(main(*sys.argv[1:]))  # as the command exits
