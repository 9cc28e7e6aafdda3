"""readmap search of pairs: options, reports, records of split and repeated reads, unmapped reads."""

import dataclasses
import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pysam
import pytest
from commands import failures
from examples import Read, below, fasta, fasta_reads, fastq, random_bases, random_quality, substitute
from oracles.alignment import reverse_complement

from readmap.cli import main
from readmap.cli.search.options import PairOptions, RecordOptions
from readmap.errors import UsageError
from readmap.mapping.inserts import fixed_insert_size
from readmap.mapping.parameters import Pairing, Reporting

LENGTH, INSERT, DEVIATION = 100, 300, 20
DRAW = random.Random(404)

#: Three copies of this lie in the genome.
REPEAT = random_bases(DRAW, 200)


def _genome() -> dict[str, str]:
    spacers = [random_bases(DRAW, 1_500) for _ in range(5)]
    one = spacers[0] + REPEAT + spacers[1] + REPEAT + spacers[2]
    return {"one": one, "two": spacers[3] + reverse_complement(REPEAT) + spacers[4]}


GENOME = _genome()


def _ends(contig: str, start: int, size: int) -> tuple[str, str]:
    """Return the mates of a fragment."""
    fragment = GENOME[contig][start : start + size]
    return fragment[:LENGTH], reverse_complement(fragment)[:LENGTH]


def _pairs() -> list[tuple[str, str, str]]:
    """Return pairs of several kinds, by names that say the kind."""
    pairs = []
    for number in range(150):
        contig = ("one", "two")[below(DRAW, 2)]
        size = INSERT + below(DRAW, 2 * DEVIATION + 1) - DEVIATION
        first, second = _ends(contig, below(DRAW, len(GENOME[contig]) - size), size)
        if below(DRAW, 2):
            first, second = second, first
        pairs.append((f"plain{number}", substitute(DRAW, first, below(DRAW, 3)), second))
    for number in range(12):
        first, second = _ends("one", 1_530 + 5 * number, INSERT)  # the first mate is in the first copy of the repeat
        pairs.append((f"repeat{number}", first, second))
    for number in range(6):
        first, second = _ends("one", 300 + 50 * number, INSERT)
        elsewhere = GENOME["two"][400 + 100 * number :][:60]
        pairs.append((f"split{number}", elsewhere + first[:40], second))
    for number in range(5):
        pairs.append((f"lost{number}", random_bases(DRAW, LENGTH, "ACGTacgtR"), random_bases(DRAW, 90 + number)))
        pairs.append((f"half{number}", random_bases(DRAW, LENGTH), _ends("two", 700, INSERT)[0]))
    return [("empty", "", ""), *sorted(pairs, key=lambda pair: pair[0][::-1])]


PAIRS = _pairs()
FIRST, SECOND = (
    [
        Read(
            f"{name}/{mate} {mate}:N:0\tx" if number % 2 else f"{name}/{mate}", bases, random_quality(DRAW, len(bases))
        )
        for number, (name, *mates) in enumerate(PAIRS)
        for bases in [mates[mate - 1]]
    ]
    for mate in (1, 2)
)
IN_TURNS = [read for pair in zip(FIRST, SECOND, strict=True) for read in pair]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with the index and the reads in all layouts."""
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    for name, reads in (("r1.fq", FIRST), ("r2.fq", SECOND), ("r.fq", IN_TURNS)):
        (folder / name).write_bytes(fastq(reads))
    (folder / "r.fa").write_bytes(fasta_reads(IN_TURNS))
    few = slice(1, 8)
    (folder / "few1.fq").write_bytes(fastq(FIRST[few]))
    (folder / "few2.fq").write_bytes(fastq(SECOND[few]))
    lines = []
    for number, read in enumerate(IN_TURNS):
        fields = [read.name.split("/")[0], (77, 141)[number % 2], *"*00**00", read.bases or "*", read.quality or "*"]
        lines.append("\t".join(map(str, fields)) + "\n")
    (folder / "r.sam").write_text("@HD\tVN:1.6\n" + "".join(lines))
    pysam.samtools.view("-b", "--no-PG", "-o", str(folder / "r.bam"), str(folder / "r.sam"), catch_stdout=False)
    return folder


def run(world: Path, *arguments: str) -> int:
    """Run a search; names of files in `world` are relative to it."""
    named = [str(world / argument) if (world / argument).is_file() else argument for argument in arguments]
    return main(["search", "-x", str(world / "ref.fa"), "--device", "cpu", *named])


def search(world: Path, *arguments: str) -> list[Any]:
    """Return the records of a search of both files."""
    assert run(world, "r1.fq", "r2.fq", "-q", *arguments, "-o", "out.sam") == 0
    with pysam.AlignmentFile("out.sam") as file:
        return list(file)


def lines(path: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if not line.startswith("@")]


failure = failures(run)


def test_summary_and_record_agree_with_the_records(world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(world, "r1.fq", "r2.fq", "-o", "out.sam", "--json", "report.json") == 0
    messages = capfd.readouterr().err
    report = json.loads(Path("report.json").read_text())
    with pysam.AlignmentFile("out.sam") as file:
        records: list[Any] = list(file)
    primary = [record for record in records if not record.is_supplementary]
    proper = sum(record.is_proper_pair for record in primary)
    supplementary = len(records) - len(primary)
    assert 160 < proper // 2 < len(PAIRS)
    assert supplementary >= 6
    counts = report["counts"]
    found = (counts["reads"], counts["properly_paired"], counts["supplementary"], counts["secondary"])
    assert found == (2 * len(PAIRS), proper, supplementary, 0)
    (size,) = report["insert_sizes"]
    assert (size["direction"], abs(size["mean"] - INSERT) < 5, abs(size["deviation"] - 12) < 4) == ("FR", True, True)
    assert size["low"] < INSERT - DEVIATION < INSERT + DEVIATION < size["high"]
    shown = f"FR {size['mean']:.0f} ± {size['deviation']:.0f} ({size['low']}-{size['high']})"
    assert (
        f"\n{len(PAIRS)} pairs, {proper // 2} proper ({proper / 2 / len(PAIRS):.2%}), insert size {shown}\n" in messages
    )
    assert f"\n{supplementary} supplementary and 0 secondary alignments\n" in messages
    expected_line = f"\nestimated divergence from the reference: 1 in {report['bases_per_difference']:,} bases\n"
    assert expected_line in messages
    assert "warning" not in messages


def test_single_reads_have_no_pairs_to_report(world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(world, "r1.fq", "-o", "out.sam", "--json", "report.json") == 0
    assert "proper" not in capfd.readouterr().err
    report = json.loads(Path("report.json").read_text())
    assert (report["insert_sizes"], report["counts"]["properly_paired"]) == (None, 0)


def test_few_pairs_do_not_show_the_insert_size(world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(world, "few1.fq", "few2.fq", "-o", "out.sam", "--json", "report.json") == 0
    messages = capfd.readouterr().err
    assert "\n7 pairs, 0 proper (0.00%), insert size unknown\n" in messages
    assert "\nwarning: the first pairs show no insert size" in messages
    assert "-I MEAN,SD" in messages
    assert json.loads(Path("report.json").read_text())["insert_sizes"] == []


def test_a_given_insert_size(world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(world, "few1.fq", "few2.fq", "-I", "300,20", "-o", "out.sam", "--json", "report.json") == 0
    messages = capfd.readouterr().err
    assert "insert size FR 300 ± 20 (220-380)\n" in messages
    assert "warning" not in messages
    report = json.loads(Path("report.json").read_text())
    assert report["insert_sizes"] == [{"direction": "FR", "mean": 300.0, "deviation": 20.0, "low": 220, "high": 380}]
    assert report["counts"]["properly_paired"] > 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PairOptions(), Pairing()),
        (PairOptions(insert_size="400,60.5", no_pairing=True), Pairing(joint=False, insert_size=(400.0, 60.5))),
        (PairOptions(no_rescue=True), Pairing(rescue=False)),
    ],
)
def test_pairing(options: PairOptions, expected: Pairing) -> None:
    assert options.pairing() == expected


@pytest.mark.parametrize(
    "size",
    ["300,20,4", "300,20,400,350", "300,20,400,200,1", "a,b", "", "0,20", "300,-1", "nan,1", "inf,1", "300,0"],
)
def test_invalid_insert_sizes(size: str) -> None:
    with pytest.raises(UsageError, match=r"expected (a|the) mean"):
        PairOptions(insert_size=size).pairing()


def test_defaults_of_given_insert_sizes() -> None:
    """Defaults: the deviation is a tenth of the mean, and the limits are four deviations from it."""
    (size,) = fixed_insert_size(300)
    assert (size.deviation, size.low, size.high) == (30.0, 180, 420)
    (size,) = fixed_insert_size(300, 50, 900, 20)
    assert (size.mean, size.deviation, size.low, size.high) == (300, 50, 20, 900)


def test_reporting() -> None:
    assert RecordOptions().reporting() == Reporting()
    assert RecordOptions(all_places=True).reporting().max_secondary > 0
    assert RecordOptions(all_places=True, max_secondary=3).reporting().max_secondary == 3
    expected = Reporting(max_xa_hits=9, soft_clipped=True, supplementary_as_secondary=True, leftmost_primary=True)
    options = RecordOptions(max_alternatives="9", soft_clip=True, mark_secondary=True, leftmost_primary=True)
    assert options.reporting() == dataclasses.replace(expected, max_alternate_hits=9)
    assert RecordOptions(max_alternatives="9,3").reporting().alternate_limit == 3


@pytest.mark.parametrize(
    ("options", "name"),
    [((), "out.fq"), (("--batch-reads", "2"), "out.fq.gz"), (("-P", "-S"), "out.fq")],
)
def test_unmapped_pairs(world: Path, backends: str, options: tuple[str, ...], name: str) -> None:
    """Unmapped pairs keep their order, letters, qualities and comments."""
    records = search(world, "--unmapped", name, "--device", backends, *options)
    written = Path(name).read_bytes()
    assert fastq([read for read in IN_TURNS if read.name.startswith(("lost", "empty"))]) == (
        gzip.decompress(written) if name.endswith("gz") else written
    )
    assert {r.query_name for r in records if r.is_unmapped and r.mate_is_unmapped} == {
        "empty",
        *(f"lost{number}" for number in range(5)),
    }


def test_unmapped_reads(world: Path) -> None:
    """Unmapped single reads, also without qualities; names are shortened as in the records."""
    assert run(world, "r.fa", "-q", "--unmapped", "out.fasta", "-o", "out.sam") == 0
    unmapped = {line.split("\t")[0] for line in lines("out.sam") if int(line.split("\t")[1]) & 4}
    assert unmapped == {"empty", *(f"{kind}{number}" for kind in ("lost", "half") for number in range(5))}
    expected = [
        Read(re.sub(r"/[12]", "", read.name), read.bases)
        for read in IN_TURNS
        if read.name.startswith(("lost", "empty")) or (read.name.startswith("half") and "/1" in read.name)
    ]
    assert Path("out.fasta").read_bytes() == fasta_reads(expected)


def test_all_outputs_appear_or_none(world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    full = "/dev/full: No space left on device"
    assert failure(capfd, world, "r1.fq", "r2.fq", "--unmapped", "/dev/full", "-o", "out.bam", code=1) == full
    assert failure(capfd, world, "r1.fq", "r2.fq", "--unmapped", "un.gz", "-o", "/dev/full", code=1) == full
    lost = failure(capfd, world, "r1.fq", "few2.fq", "--unmapped", "un.gz", "-o", "out.bam", code=1)
    assert "mates must have the same name" in lost
    assert failure(capfd, world, "r1.fq", "--unmapped", "no/un", "-o", "out.bam", code=1).startswith("no/un: No such")


@pytest.mark.parametrize("options", [[], ["-p"]])
def test_pairs_in_bam(world: Path, options: list[str]) -> None:
    assert run(world, "r1.fq", "r2.fq", "-q", "-o", "expected.sam") == 0
    assert run(world, "r.bam", *options, "-q", "-o", "out.sam", "--unmapped", "un.fq") == 0
    assert [line.split("\t")[:11] for line in lines("out.sam")] == [
        line.split("\t")[:11] for line in lines("expected.sam")
    ]
    assert Path("un.fq").read_text().startswith("@empty/1\n\n+\n\n@empty/2\n\n+\n\n")
    assert run(world, "r.bam", "--exact", "-q", "-o", "exact.sam") == 0  # mates are searched separately
    assert not any(int(line.split("\t")[1]) & 1 for line in lines("exact.sam"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["r.bam", "r2.fq"],
            "r.bam is BAM or CRAM, which contains both mates of pairs, and another file of reads is given: name ",
        ),
        (
            ["r1.fq", "-I", "300,20", "-P"],
            "-I, -P: only for pairs: give two files of reads, or -p where mates alternate",
        ),
        (["r1.fq", "-S"], "-S: only for pairs"),
        (["r1.fq", "r2.fq", "-I", "x"], "-I x: expected a mean, a standard deviation, the largest and the smallest"),
        (["r1.fq", "-I", "300,20", "--exact"], "-I: not with --exact, which takes every read for itself: leave it out"),
        (["r1.fq", "-U", "9", "--long-gap", "9", "--exact"], "--long-gap, -U: not with --exact, which scores no"),
        (["r1.fq", "-a", "-Y", "--exact"], "-a, -Y: not with --exact, which reports all places (--max-hits)"),
        (["r1.fq", "--unmapped", "un", "--exact"], "--unmapped: not with --exact"),
        (["r1.fq", "-a", "-h", "3"], "-h: not with -a or --max-secondary"),
        (["r1.fq", "--max-secondary", "-1"], "-1 is not in the range 0 to"),
        (["r1.fq", "-h", "r2.fq"], "r2.fq: expected N or N,N, numbers of 0 to"),
        (["r1.fq", "--unmapped", "un.sam"], "--unmapped un.sam: FASTQ is written: name it so, as unmapped.fq.gz"),
        (["r1.fq", "--unmapped", "r1.fq"], "r1.fq is a file of the reads"),
        (["r1.fq", "--unmapped", "./x", "-o", "x"], "--unmapped ./x is where the output goes: name another file"),
        (["r1.fq", "--unmapped", "-"], "--unmapped - is where the output goes"),
        (["r1.fq", "--unmapped", "x", "--json", "x"], "--json x is where the reads without a place go"),
    ],
)
def test_usage_errors(world: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert message in failure(capfd, world, *arguments, code=2)


def test_scores_of_gaps_and_pairs_are_multiplied(world: Path) -> None:
    for options, expected in (
        ([], (22, 17)),
        (["-A", "2"], (44, 34)),
        (["--long-gap", "9", "-U", "4", "-A", "2"], (9, 4)),
    ):
        assert run(world, "few1.fq", *options, "-q", "--json", "report.json", "-o", "out.sam") == 0
        scoring = json.loads(Path("report.json").read_text())["scoring"]
        assert (scoring["long_gap"], scoring["unpaired_penalty"]) == expected
