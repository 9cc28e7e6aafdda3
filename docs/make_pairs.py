"""Simulate pairs of reads from a FASTA file, for the tutorial: two lanes, with duplicates, UMIs and adapters.

    python make_pairs.py ref.fa [PAIRS]

writes L1_1.fq.gz, L1_2.fq.gz, L2_1.fq.gz and L2_2.fq.gz into the current folder. The fragments come from a sample that
differs from the reference in one of 500 bases.
"""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path

LENGTH = 150
ADAPTER = "AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC"
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def read_fasta(path: str) -> list[str]:
    """Return the contigs in upper case, without their names."""
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
    records = text.split(">")[1:]
    return ["".join(record.split("\n")[1:]).upper() for record in records]


def sample_of(contig: str, draw: random.Random) -> str:
    """Return the contig with a SNP in about one of 500 bases; replace letters other than A, C, G and T."""
    return "".join(draw.choice("ACGT") if base not in "ACGT" or draw.random() < 0.002 else base for base in contig)


def sequenced(bases: str, draw: random.Random) -> tuple[str, str]:
    """Return the read of a fragment's end: bases and qualities, which fall towards the end of the read."""
    template = (bases + ADAPTER + "G" * LENGTH)[:LENGTH]
    read, qualities = [], []
    for cycle, base in enumerate(template):
        quality = 37 if draw.random() > cycle / 400 else draw.choice((25, 11))
        wrong = draw.random() < 10 ** (-quality / 10)
        read.append(draw.choice("ACGT".replace(base, "")) if wrong else base)
        qualities.append(chr(33 + quality))
    return "".join(read), "".join(qualities)


def main(path: str, pairs: int = 8000) -> None:
    """Write two lanes, each with half of the pairs."""
    draw = random.Random(20)
    contigs = [sample_of(contig, draw) for contig in read_fasta(path)]
    lengths = [len(contig) for contig in contigs]
    for lane in (1, 2):
        texts: list[list[str]] = [[], []]
        fragment, umi, x, y = "", "", 0, 0
        for _ in range(pairs // 2):
            if not fragment or draw.random() > 0.08:  # else a duplicate of the last fragment
                contig = draw.choices(contigs, lengths)[0]
                size = min(max(int(draw.gauss(260, 70)), 80), len(contig))
                start = draw.randrange(len(contig) - size + 1)
                fragment = contig[start : start + size]
                if draw.random() < 0.5:
                    fragment = fragment.translate(COMPLEMENT)[::-1]
                umi = "".join(draw.choice("ACGT") for _ in range(8))
            near = x > 0 and draw.random() < 0.05  # an optical duplicate is close to its copy
            x, y = (x + 20, y) if near else (draw.randrange(1000, 30000), draw.randrange(1000, 30000))
            name = f"A1:7:FC1:{lane}:1101:{x}:{y}:{umi}"
            for mate, bases in enumerate((fragment, fragment.translate(COMPLEMENT)[::-1])):
                read, qualities = sequenced(bases, draw)
                texts[mate].append(f"@{name} {mate + 1}:N:0:ACGTACGT\n{read}\n+\n{qualities}\n")
        for mate, lines in enumerate(texts, 1):
            Path(f"L{lane}_{mate}.fq.gz").write_bytes(gzip.compress("".join(lines).encode(), 1, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
