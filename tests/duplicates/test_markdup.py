"""readmap search --markdup: the output without marking, with duplicates marked, for all options and devices."""

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from alignment_files import records_of
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, random_quality, small_genome
from oracles import duplicates as oracle

from readmap.bam.device_sorted_runs import DeviceRuns
from readmap.cli import main

DRAW = random.Random(71)
GENOME = small_genome(DRAW)
LANES = [
    r"l{n}_1.fq,l{n}_2.fq,@RG\tID:{n}\tSM:s\tLB:x",
    r"l{n}_1.fq,l{n}_2.fq,@RG\tID:{n}\tSM:s\tLB:y",
    r"l{n}_1.fq,,@RG\tID:{n}\tSM:s",
]
UMIS = ["AC", "GT", ""]


def copies(pair: tuple[Read, Read], number: int) -> list[tuple[Read, Read]]:
    """Return a pair and copies of its molecule, some of them near it on the flow cell."""
    tile, x, y = DRAW.choice([1101, 1102]), DRAW.randrange(1000, 9000), DRAW.randrange(1000, 9000)
    found = []
    for copy in range(DRAW.choice([1, 1, 1, 2, 2, 5])):
        name = f"M:{number}.{copy}:FC:1:{tile}:{x + DRAW.choice([0, 40, 80, 900])}:{y + DRAW.choice([0, 40, 900])}"
        umi = DRAW.choice(UMIS)
        name += f" RX:Z:{umi}" if umi else ""
        first, second = (Read(name, one.bases, random_quality(DRAW, len(one.bases))) for one in pair)
        found.append((first, second) if DRAW.random() < 0.5 else (second, first))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an index, three lanes of two libraries and of none, and the output of a search without
    marking.
    """
    folder = tmp_path_factory.mktemp("markdup")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    pairs = [copy for number, pair in enumerate(draw_pairs(DRAW, GENOME, 300)) for copy in copies(pair, number)]
    DRAW.shuffle(pairs)
    third = len(pairs) // 3
    for lane in range(3):
        part = pairs[lane * third : (lane + 1) * third]
        for mate in range(2):
            (folder / f"l{lane}_{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in part]))
    assert search(folder, "plain.bam") == 0
    return folder


def search(folder: Path, output: str, *options: str, device: str = "cpu") -> int:
    lanes = []
    for number, lane in enumerate(LANES):
        files, group = lane.format(n=number).rsplit(",", 1)
        lanes += ["--lane", ",".join([*(str(folder / file) if file else "" for file in files.split(",")), group])]
    words = [*lanes, "-C", "-x", str(folder / "ref.fa"), "-o", str(folder / output), "--device", device, "-q"]
    return main(["search", *words, *options])


def expected_records(folder: Path, **rules: int | str) -> list[str]:
    """Return the sorted records of the plain output, marked by the oracle."""
    path = folder / "expected.bam"
    with pysam.AlignmentFile(str(folder / "plain.bam")) as plain, pysam.AlignmentFile(str(path), "wb", plain) as out:
        records = list(plain.fetch(until_eof=True))
        found = oracle.find(records, **rules)  # type: ignore[arg-type]
        for record in records:
            record.is_duplicate = record.query_name in found.duplicates
            out.write(record)
    pysam.samtools.sort("-o", str(folder / "sorted.bam"), str(path), catch_stdout=False)
    return records_of(folder / "sorted.bam")


@pytest.mark.parametrize("ending", ["bam", "cram"])
@pytest.mark.parametrize("options", [[], ["--batch-reads", "30"], ["--sort-memory", "200K"], ["-t", "1"]], ids=" ".join)
def test_same_as_oracle(folder: Path, options: list[str], ending: str, backends: str) -> None:
    out = folder / f"marked.{ending}"
    assert search(folder, out.name, "--sort", "--markdup", *options, device=backends) == 0
    assert records_of(out, folder / "ref.fa") == expected_records(folder)
    assert sum(int(line.split("\t")[1]) & 1024 > 0 for line in records_of(out, folder / "ref.fa")) > 200


@pytest.mark.parametrize("memory", ["1K", "60K", "1G"])
def test_runs_on_a_device(folder: Path, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU acts as a device with its own memory; marks are set there, in host memory, and in files."""
    monkeypatch.setattr("readmap.run.outputs._holds_runs", lambda backend, order: order is not None)
    monkeypatch.setattr(
        "readmap.run.outputs.DeviceRuns", lambda backend, contigs, limit, _: DeviceRuns(backend, contigs, limit, 0)
    )
    for rule in ("--markdup", "--remove-duplicates"):
        assert search(folder, "held.bam", "--sort", rule, "--sort-memory", memory, "--batch-reads", "40") == 0
        is_kept = 0 if rule == "--markdup" else 1024
        expected = [line for line in expected_records(folder) if not int(line.split("\t")[1]) & is_kept]
        assert records_of(folder / "held.bam") == expected


def test_barcodes(folder: Path) -> None:
    assert search(folder, "umis.bam", "--sort", "--markdup", "--barcode-tag", "RX") == 0
    assert records_of(folder / "umis.bam") == expected_records(folder, barcode_tag="RX")
    assert records_of(folder / "umis.bam") != expected_records(folder)


def test_barcodes_of_names(folder: Path, tmp_path: Path) -> None:
    """bcl-convert's eighth field becomes RX, replacing a comment's RX; names without it keep the comment's."""
    fields = ("2:ACGT+TT", "3", "4: RX:Z:GG", "5:AC RX:Z:GG")
    names = [f"M:1:FC:1:1101:1:{field}" for field in fields]
    bases = GENOME["one"][40:140]
    (tmp_path / "r.fq").write_bytes(fastq([Read(name, bases, "I" * len(bases)) for name in names]))
    words = ["search", str(tmp_path / "r.fq"), "-x", str(folder / "ref.fa"), "--barcode-name", "--device", "cpu", "-q"]
    for ending in ("sam", "bam"):
        out = tmp_path / f"o.{ending}"
        assert main([*words, "-C", "-o", str(out)]) == 0
        with pysam.AlignmentFile(str(out)) as file:
            found = [one.get_tag("RX") if one.has_tag("RX") else None for one in file]
        assert found == ["ACGT-TT", None, "GG", "AC"]
    marked = [*words, "-C", "-o", str(tmp_path / "m.bam"), "--sort", "--markdup"]
    assert main(marked) == 0
    assert sum(int(line.split("\t")[1]) & 1024 > 0 for line in records_of(tmp_path / "m.bam")) == 3
    assert main([*marked, "--barcode-tag", "RX"]) == 0
    assert sum(int(line.split("\t")[1]) & 1024 > 0 for line in records_of(tmp_path / "m.bam")) == 0


@pytest.mark.parametrize("options", [[], ["--sort-memory", "200K"]], ids=" ".join)
def test_removed(folder: Path, options: list[str], backends: str) -> None:
    assert search(folder, "removed.bam", "--sort", "--remove-duplicates", *options, device=backends) == 0
    expected = [line for line in expected_records(folder) if not int(line.split("\t")[1]) & 1024]
    assert records_of(folder / "removed.bam") == expected
    pysam.samtools.quickcheck(str(folder / "removed.bam"))
    pysam.samtools.index("-o", str(folder / "again.bai"), str(folder / "removed.bam"))
    with pysam.AlignmentFile(str(folder / "removed.bam")) as found:
        assert sum(found.count(contig) for contig in GENOME) == sum(line.split("\t")[2] != "*" for line in expected)


@pytest.mark.parametrize("options", [[], ["--sort-memory", "200K"]], ids=" ".join)
@pytest.mark.parametrize("distance", ["100", "0"])
def test_types(folder: Path, options: list[str], distance: str, backends: str) -> None:
    given = ["--sort", "--markdup", "--duplicate-type", "--optical-distance", distance]
    assert search(folder, "typed.bam", *given, *options, device=backends) == 0
    with pysam.AlignmentFile(str(folder / "plain.bam")) as plain:
        found = oracle.find(plain.fetch(until_eof=True), int(distance))
    with pysam.AlignmentFile(str(folder / "typed.bam")) as typed:
        for record in typed.fetch(until_eof=True):
            optical = record.query_name in found.optical
            kind = ("SQ" if optical else "LB") if record.query_name in found.duplicates else None
            assert (record.get_tag("DT") if record.has_tag("DT") else None) == kind
    assert bool(found.optical) == (distance != "0")


def test_by_name(folder: Path) -> None:
    assert search(folder, "named.bam", "--sort", "--sort-order", "queryname", "--markdup") == 0
    assert sorted(records_of(folder / "named.bam")) == sorted(expected_records(folder))


def test_metrics(folder: Path, tmp_path: Path) -> None:
    """The metrics file and the JSON report have the same numbers, sorted by library."""
    given = ["--metrics", str(tmp_path / "m.txt"), "--json", str(tmp_path / "m.json")]
    assert search(folder, "m.bam", "--sort", "--markdup", *given) == 0
    lines = [line.split("\t") for line in (tmp_path / "m.txt").read_text().splitlines() if line and line[0] != "#"]
    told = json.loads((tmp_path / "m.json").read_text())["duplicates"]
    assert [line[0] for line in lines[1:4]] == ["Unknown Library", "x", "y"] == [one["library"] for one in told]
    for line, one in zip(lines[1:4], told, strict=True):
        counts = [one[key] for key in ("unpaired", "pairs", "secondary_or_supplementary", "unmapped")]
        counts += [one[key] for key in ("unpaired_duplicates", "pair_duplicates", "optical_duplicates")]
        assert line[1:8] == list(map(str, counts))
        assert float(line[8]) == pytest.approx(one["share"], abs=1e-6)
    assert lines[4][0] == "set_size"


def test_samtools_marks_the_same_pairs(folder: Path, tmp_path: Path) -> None:
    """Only counts are compared, because samtools breaks ties differently; one library, no mates on one strand."""
    if not shutil.which("samtools"):
        pytest.skip("samtools is not installed")
    reads = [str(folder / f"l0_{mate}.fq") for mate in (1, 2)]
    words = ["search", *reads, "-x", str(folder / "ref.fa"), "-R", r"@RG\tID:a\tSM:s\tLB:x", "--device", "cpu", "-q"]
    assert main([*words, "-o", str(tmp_path / "named.bam"), "--sort", "--sort-order", "queryname"]) == 0
    assert main([*words, "-o", str(tmp_path / "own.bam"), "--sort", "--markdup"]) == 0
    pipe = "samtools fixmate -m named.bam - | samtools sort - | samtools markdup -S --include-fails - its.bam"
    subprocess.run(["bash", "-o", "pipefail", "-c", pipe], cwd=tmp_path, check=True, capture_output=True)
    usual = [marked_in(tmp_path / name) for name in ("own.bam", "its.bam")]
    assert usual[0] == usual[1] > 20


def marked_in(path: Path) -> int:
    """Return the primary records of pairs on opposite strands that are marked."""
    with pysam.AlignmentFile(str(path)) as file:
        return sum(
            one.is_duplicate
            for one in file.fetch(until_eof=True)
            if one.is_paired and not (one.flag & 0x90C) and one.is_reverse != one.mate_is_reverse
        )


@pytest.fixture
def failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(folder)
    return failures(lambda *words: main([str(word) for word in words]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--markdup"], "--markdup: only with --sort"),
        (["--remove-duplicates"], "--remove-duplicates: only with --sort"),
        (["--sort", "--metrics", "m.txt"], "--metrics: only with --markdup or --remove-duplicates"),
        (["--sort", "--optical-distance", "3"], "--optical-distance: only with --markdup"),
        (["--sort", "--barcode-tag", "RX"], "--barcode-tag: only with --markdup"),
        (["--sort", "--markdup", "--barcode-tag", "R"], "--barcode-tag R: expected a tag of two characters"),
        (["--sort", "--remove-duplicates", "--duplicate-type"], "--duplicate-type: not with --remove-duplicates"),
    ],
)
def test_wrong_options(
    failure: Callable[..., str], capfd: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    words = ["search", "l0_1.fq", "l0_2.fq", "-x", "ref.fa", "-o", "wrong.bam", *options]
    assert told in failure(capfd, *words, code=2)


def test_no_reads(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none.fq").write_bytes(b"")
    words = ["search", str(tmp_path / "none.fq"), "-x", str(folder / "ref.fa"), "-o", str(tmp_path / "o.bam"), "-q"]
    assert main([*words, "--sort", "--markdup", "--metrics", str(tmp_path / "m.txt"), "--device", "cpu"]) == 0
    assert records_of(tmp_path / "o.bam") == []
    assert "Unknown Library\t0\t0" in (tmp_path / "m.txt").read_text()
