"""Run the commands with mutated inputs and options, each in a process of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from attacks import inputs, readers
from attacks.command_runs import judge, names_in, run, warm_up, write_base
from attacks.mutations import mutate
from attacks.outcomes import Outcome, Verdict
from attacks.readers import Invalid, as_written, difference

#: Values for options, valid and invalid.
VALUES = ("0", "1", "2", "-1", "7", "100", "1000", "100000", "2147483648", "4294967296", "9" * 30, "1e9", "nan", "inf")
VALUES += (
    "",
    " ",
    "-",
    "a",
    "*",
    "0x10",
    "1,1",
    "400,60",
    "1/2",
    "300,30,900,20",
    "5,200",
    "0.8",
    "-5,0",
    "nan,nan",
    "1K",
    "500M",
    "1.5G",
    "99999T",
    "0.0001K",
)
VALUES += (
    "both",
    "array",
    "tree",
    "forward",
    "sam",
    "bam",
    "cram",
    "ont2d",
    "tsv",
    "bed",
    "json",
    "paf",
    "cpu",
    "cuda:99",
    "RX",
    "all",
    "none",
)
VALUES += (".", "out", "no/where/out", "ref.fa", "ref.fa.readmap/out", "/dev/full", "/dev/null", "x" * 300, "\udcff")
VALUES += (
    r"r1.fq,r2.fq,@RG\tID:a\tSM:b",
    r"r1.fq,,@RG\tID:a",
    r"@RG\tID:a\tSM:b",
    r"@CO\tx",
    r"@HD\tSO:coordinate",
    "BLOSUM62",
    "PAM30",
    "6 std cigar",
    "6 x",
    "std,score",
)

#: For each command, the options that take a value, and the flags.
OPTIONS = {
    "search": (
        "-I -R -H --max-secondary -h --keep-tags --strand --format --max-hits --structure -A -B -O -E --long-gap -L -U "
        "-T --batch-reads -t --device --sort-memory --xa-share --unmapped --json --gpu-memory --index-format --level "
        "--lane --sheet --sample --split --shard -x --optical-distance --barcode-tag --metrics --report --multiqc",
        "-p --smart-pairing --collate -P -S --sort -a -Y -M -5 -C --replace-rg --exact --count-only --no-prefix-table "
        "-q --markdup --remove-duplicates --duplicate-type --barcode-name",
    ),
    "mem": (
        "-A -B -O -E -L -U -T -x -I -R -H -h -z -t -K -v -k -w -d -r -y -c -D -W -m -s -G -N -Q -X -F --long-gap "
        "--json",
        "-p -5 -a -C -Y -M -S -P -1 -j -q -V -u --quiet",
    ),
    "markdup": (
        "--optical-distance --barcode-tag --metrics --report --multiqc --sort-memory -t --device --json",
        "--grouped --remove-duplicates --duplicate-type -q",
    ),
    "merge": (
        "--optical-distance --barcode-tag --metrics --report --multiqc --sort-memory -t --device --json",
        "--remove-duplicates --duplicate-type -q",
    ),
    "estimate": (
        "-I -A -B -O -E -L -U -T --lane --sheet --sample -x -t --device --json",
        "-p --smart-pairing -P -S -j -q",
    ),
    "split": ("--lane --sheet --sample -t --json", "-q"),
    "index": ("--structure --molecule -t --device --gpus --json -o", "--database --force --64-bit -q"),
    "compare": (
        "--memory --checkpoint --mode --match --mismatch --gap-first --gap-extend --strand --format --json -t",
        "--no-pruning --pairs --score-only -q",
    ),
    "scan": (
        "--matrix --match --mismatch --gap-open --gap-extend --strand --evalue --max-hits --min-score --dbsize "
        "--format --outfmt --columns --molecule -t --json --gpus --gpu-memory",
        "-q",
    ),
    "info": ("-t --json", "--check --contigs -q"),
}
ENDINGS = (".sam", ".sam", ".bam", ".cram", ".sam.gz", ".tsv", ".bed", ".paf", ".json", ".txt", ".html", "", ".m8")


class Case(NamedTuple):
    """A command: its words, its files in addition to the base files, and False if random options were added."""

    words: list[str]
    files: dict[str, bytes]
    is_plain: bool


#: Draw the words and the files of a command; the second argument is the folder of the base files.
Maker = Callable[[Random, Path], tuple[list[str], dict[str, bytes]]]


class Commands:
    """The attack; see workers.Attack."""

    batch, limit = 50, 90.0

    def __init__(self, seed: int, scratch: Path) -> None:
        self._seed, self._scratch = seed, scratch
        self._base = scratch / "base"
        warm_up()
        write_base(self._base)

    def row(self, case_index: int) -> str:
        return f"commands, {KINDS[case_index % len(KINDS)][0]}"

    def run(self, case_index: int) -> Outcome:
        case, row = self._case(case_index), self.row(case_index)
        folder = self._scratch / f"command-{os.getpid()}"
        shutil.copytree(self._base, folder)
        try:
            for name, data in case.files.items():
                (folder / name).write_bytes(data)
            before = names_in(folder)
            ended = run(case.words, folder)
            verdict, reason = judge(ended, folder, before)
            if verdict is Verdict.ACCEPTED and case.is_plain:
                reason = _compare_reads(case, folder)
                verdict = Verdict.LOST if reason else verdict
        finally:
            shutil.rmtree(folder)
        return Outcome(row, verdict, f"{reason} {case.words}" if verdict.is_finding else "")

    def keep(self, case_index: int, folder: Path) -> None:
        case = self._case(case_index)
        shutil.copytree(self._base, folder, dirs_exist_ok=True)
        for name, data in case.files.items():
            (folder / name).write_bytes(data)
        (folder / "words").write_text("\n".join(map(ascii, case.words)) + "\n")

    def _case(self, case_index: int) -> Case:
        draw = Random(f"{self._seed} commands {case_index}")
        words, files = KINDS[case_index % len(KINDS)][1](draw, self._base)
        is_plain = words[0] == "search" and draw.random() < 0.4
        if is_plain:
            words += ["-o", "out.sam"]
        else:
            output = f"out{draw.choice(ENDINGS)}"
            words += ["-o", output] if words[0] not in ("info", "index", "markdup") and draw.random() < 0.8 else []
            words += _options(draw, words[0])
        if words[0] == "index" and not set(words) & {"-o"}:
            words += ["-o", "out.readmap"]
        return Case(words, files, is_plain)


def _options(draw: Random, command: str) -> list[str]:
    """Draw a few options, with values that may fit."""
    valued, flags = (names.split() for names in OPTIONS[command])
    words = []
    for _ in range(draw.choice((0, 0, 0, 1, 1, 1, 2, 4))):
        value = (
            draw.choice(VALUES) if draw.random() < 0.8 else os.fsdecode(mutate(draw, b"400,60")[0]).replace("\0", "")
        )
        words += [draw.choice(valued), value] if draw.random() < 0.7 else [draw.choice(flags)]
    return words


def _compare_reads(case: Case, folder: Path) -> str:
    """Return how the records of out.sam differ from the input reads, or ""."""
    datas = [readers.inflated(data) for name, data in case.files.items() if name.startswith("in")]
    found = readers.read_sam((folder / "out.sam").read_bytes())
    try:
        if datas[0].startswith(b"CRAM"):
            return ""
        if datas[0].startswith(b"BAM\1"):
            expected = [as_written(read) for read in readers.read_bam(datas[0])]
            sides = [sorted((r._replace(mate=0) for r in reads), key=repr) for reads in (expected, found)]
            return difference(*sides)
        files = [readers.read_reads(data) for data in datas]
    except Invalid as error:
        return f"accepted: {error}"
    if len({len(reads) for reads in files}) > 1:
        return "accepted: files of different lengths"
    mates = [as_written(read) for pair in zip(*files, strict=True) for read in pair]
    if len(files) > 1:
        mates = [read._replace(mate=i % 2 + 1) for i, read in enumerate(mates)]
    return difference(mates, found)


def _altered(draw: Random, data: bytes) -> bytes:
    """Mutate half of the files; the other cases mutate options only."""
    return data if draw.random() < 0.5 else mutate(draw, data)[0]


def _search(name: str, make: Callable[[Random], bytes]) -> Maker:
    def made(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
        return ["search", name, "-x", "ref.fa"], {name: _altered(draw, make(draw))}

    return made


def _pairs(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    first, second = inputs.pairs(draw)
    files = {"in1.fq": _altered(draw, first), "in2.fq": _altered(draw, second)}
    return ["search", *files, "-x", "ref.fa"], files


def _bam(draw: Random) -> bytes:
    data, fields = inputs.bam(draw)
    return inputs.bgzf(mutate(draw, data, fields=fields, times=draw.choice((0, 1, 1, 2)))[0])


def _markdup(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    return ["markdup", "in.bam", *(["-o", "out.bam"] if draw.random() < 0.9 else [])], {"in.bam": _bam(draw)}


def _merge(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    names = ["shard.bam", "shard.bam.fragments"]
    files = {name.replace("shard", "in"): (base / name).read_bytes() for name in names}
    altered = draw.choice([*files])
    files[altered] = _altered(draw, files[altered])
    return ["merge", "in.bam", *draw.choice(([], ["shard.bam"])), "-o", "out.bam"], files


def _estimate(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    words, files = _pairs(draw, base)
    return ["estimate", *words[1 : draw.choice((2, 3))], "-x", "ref.fa", "-o", "out.json"], files


def _mem(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    words, files = _pairs(draw, base)
    return ["mem", *draw.choice(([], ["-p"])), "ref.fa", *words[1 : draw.choice((2, 3))]], files


def _cram(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    data = _altered(draw, (base / "reads.cram").read_bytes())
    return ["search", "in.cram", "-x", "ref.fa"], {"in.cram": data}


def _one(command: str, name: str, make: Callable[[Random], bytes], *words: str) -> Maker:
    """Return the maker of a command that reads one mutated file."""

    def made(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
        data = _altered(draw, make(draw))
        return [command, *words], {name: inputs.compressed(draw, data) if draw.random() < 0.1 else data}

    return made


def _info(draw: Random, base: Path) -> tuple[list[str], dict[str, bytes]]:
    named: Sequence[str] = ("ref.fa", "ref.fa.readmap", "proteins.fa.readmapdb", "proteins.fa", "reads.fq", "none", "")
    return ["info", draw.choice(named)], {}


KINDS: tuple[tuple[str, Maker], ...] = (
    ("search FASTQ", _search("in.fq", inputs.fastq)),
    ("search FASTA", _search("in.fa", inputs.fasta_reads)),
    ("search gzip", _search("in.fq.gz", lambda draw: inputs.compressed(draw, inputs.fastq(draw)))),
    ("search pairs", _pairs),
    ("search BAM", _search("in.bam", _bam)),
    ("search CRAM", _cram),
    ("markdup", _markdup),
    ("mem", _mem),
    ("merge", _merge),
    ("estimate", _estimate),
    ("split", _one("split", "in.fq", inputs.fastq, "in.fq")),
    ("index", _one("index", "in.fa", inputs.reference, "in.fa")),
    ("index --database", _one("index", "in.fa", inputs.proteins, "--database", "in.fa")),
    ("compare", _one("compare", "in.fa", inputs.reference, "in.fa", "other.fa")),
    ("compare --pairs", _one("compare", "in.fq", inputs.fastq, "--pairs", "in.fq", "in.fq")),
    ("scan", _one("scan", "in.fa", inputs.proteins, "in.fa", "proteins.fa.readmapdb")),
    ("scan --matrix", _one("scan", "in.matrix", inputs.matrix, "query.fa", "proteins.fa", "--matrix", "in.matrix")),
    ("info", _info),
)
