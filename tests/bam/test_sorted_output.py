"""Sorted outputs: the records in the order of samtools sort, with an index, complete or not at all."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pysam
import pytest
from alignment_files import file_size_limit, header_of, names_in, records_of, search_in, write_inputs
from examples import Read, draw_reads, fastq, random_bases, small_genome

from readmap.backend.cpu import CpuBackend
from readmap.bam.file_index import MAX_BAI_LENGTH
from readmap.bam.order import SortOrder
from readmap.bam.sorted_runs import SortedRuns
from readmap.cli import main
from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.run.config import SearchConfig
from readmap.run.outputs import describe_sorting, open_records

DRAW = random.Random(91)
GENOME = {**small_genome(DRAW), "iupac": random_bases(DRAW, 900, "ACGT" * 9 + "NRYKM")}
#: Many reads at one position on both strands, for ties, and some that do not map.
READS = [
    *draw_reads(DRAW, GENOME, 400),
    *(Read(f"same {number}", GENOME["one"][50:130], "I" * 80) for number in range(20)),
    *(Read(f"none {number}", random_bases(DRAW, 90), "I" * 90) for number in range(20)),
    Read("empty", "", ""),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, reads, their BAM, and that BAM sorted by samtools."""
    folder = write_inputs(tmp_path_factory.mktemp("sorted"), GENOME, READS)
    assert search_in(folder, "plain.bam") == 0
    pysam.samtools.sort("-o", str(folder / "expected.bam"), str(folder / "plain.bam"), catch_stdout=False)
    return folder


@pytest.mark.parametrize("options", [["--sort-memory", "1M"], ["--sort-memory", "1G"], ["--batch-reads", "30"]])
@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_sorted_as_samtools_sorts(folder: Path, ending: str, options: list[str]) -> None:
    out = folder / f"sorted.{ending}"
    assert search_in(folder, out.name, "--sort", *options, "-t", "2") == 0
    expected = records_of(folder / "expected.bam")
    assert records_of(out, folder / "ref.fa") == expected
    assert expected != records_of(folder / "plain.bam")
    lines = header_of(out)
    assert lines[0] == "@HD\tVN:1.6\tSO:coordinate"
    assert [line.split("\t")[1] for line in lines if line.startswith("@PG")] == ["ID:readmap"]
    assert str(folder) not in "".join(line for line in lines if not line.startswith("@PG"))
    with pysam.AlignmentFile(str(out), reference_filename=str(folder / "ref.fa")) as file:
        assert file.check_index()
        for contig in GENOME:
            at = [record.query_name for record in file.fetch(contig, 10, 200)]
            assert at == [line.split("\t")[0] for line in expected if overlaps(line, contig, 10, 200)]


def overlaps(line: str, contig: str, begin: int, end: int) -> bool:
    header = pysam.AlignmentHeader.from_references(list(GENOME), [len(bases) for bases in GENOME.values()])
    record = pysam.AlignedSegment.fromstring(line, header)
    place = record.reference_end
    return record.reference_name == contig and place is not None and record.reference_start < end and place > begin


def test_the_bytes_depend_on_the_reads_alone(folder: Path) -> None:
    """They do not depend on batches, threads or memory."""
    made = []
    for options in (["-t", "1"], ["-t", "3", "--batch-reads", "7"], ["--sort-memory", "1M", "--batch-reads", "50"]):
        assert search_in(folder, "again.bam", "--sort", *options) == 0
        lines = pysam.view("-h", "--no-PG", str(folder / "again.bam"))
        made.append([line for line in lines.splitlines() if not line.startswith("@PG")])
    assert made[0] == made[1] == made[2]


def test_pairs_with_supplementary_and_unplaced_records(folder: Path, tmp_path: Path) -> None:
    one, two = GENOME["one"], GENOME["two"]
    split = Read("split/1", one[100:180] + two[300:380], "I" * 160)
    pairs = [
        (split, Read("split/2", one[400:500][::-1].translate(str.maketrans("ACGT", "TGCA")), "I" * 100)),
        (Read("half/1", two[100:200], "I" * 100), Read("half/2", random_bases(DRAW, 100), "I" * 100)),
        (Read("none/1", random_bases(DRAW, 80), "I" * 80), Read("none/2", random_bases(DRAW, 80), "I" * 80)),
    ]
    for mate in (0, 1):
        (tmp_path / f"{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in pairs]))
    shutil.copytree(folder / "ref.fa.readmap", tmp_path / "ref.fa.readmap")
    for name, options in (("plain", []), ("sorted", ["--sort"])):
        files = [str(tmp_path / "1.fq"), str(tmp_path / "2.fq"), "-x", str(tmp_path / "ref.fa.readmap")]
        out = ["-o", str(tmp_path / f"{name}.bam"), "-a", "--device", "cpu", "-q"]
        assert main(["search", *files, *out, *options]) == 0
    pysam.samtools.sort("-o", str(tmp_path / "expected.bam"), str(tmp_path / "plain.bam"), catch_stdout=False)
    found = records_of(tmp_path / "sorted.bam")
    assert found == records_of(tmp_path / "expected.bam")
    assert len(found) > 6
    assert pysam.quickcheck(str(tmp_path / "sorted.bam")) == ""


def test_nothing_but_the_file_and_its_index(folder: Path, tmp_path: Path) -> None:
    """An old index is removed; the header of the user gets the order."""
    for ending in (".csi", ".bai"):
        (tmp_path / f"a.bam{ending}").write_bytes(b"old")
    for name in ("a.bam", "b.cram", "c.cram"):
        options = ["--sort", "-H", r"@HD\tVN:1.5\tSO:unsorted\tGO:query"] if name != "c.cram" else []
        assert search_in(folder, str(tmp_path / name), *options) == 0
    assert names_in(tmp_path) == ["a.bam", "a.bam.bai", "b.cram", "b.cram.crai", "c.cram"]
    assert (tmp_path / "a.bam.bai").read_bytes().startswith(b"BAI\1")
    assert header_of(tmp_path / "a.bam")[0] == "@HD\tVN:1.5\tSO:coordinate"


def test_the_requested_index(folder: Path, tmp_path: Path) -> None:
    assert search_in(folder, str(tmp_path / "out.bam"), "--sort", "--index-format", "csi") == 0
    assert names_in(tmp_path) == ["out.bam", "out.bam.csi"]
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as file:
        assert sum(1 for _ in file.fetch("one", 50, 130)) >= 20


def test_levels_differ_only_in_size(folder: Path, tmp_path: Path) -> None:
    for level in ("1", "9"):
        assert search_in(folder, str(tmp_path / f"{level}.bam"), "--sort", "--level", level) == 0
    assert records_of(tmp_path / "1.bam") == records_of(tmp_path / "9.bam") == records_of(folder / "expected.bam")
    assert (tmp_path / "9.bam").stat().st_size < (tmp_path / "1.bam").stat().st_size
    assert search_in(folder, str(tmp_path / "out.sam"), "--level", "9") == 2
    assert search_in(folder, str(tmp_path / "out.cram"), "--level", "9") == 2
    assert search_in(folder, str(tmp_path / "out.bam"), "--level", "6", "--codec", "nvcomp") == 2


def test_codecs_on_the_cpu(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = "--sort", "--device", "cpu", "--json", str(tmp_path / "json")
    for codec in ("auto", "libdeflate"):
        assert search_in(folder, str(tmp_path / f"{codec}.bam"), *words, "--codec", codec) == 0
        assert json.loads((tmp_path / "json").read_text())["codec"] == "libdeflate"
        assert records_of(tmp_path / f"{codec}.bam") == records_of(folder / "expected.bam")
    assert search_in(folder, str(tmp_path / "out.bam"), *words, "--codec", "nvcomp") == 1
    assert "--codec nvcomp: expected a GPU and nvidia-libnvcomp" in capfd.readouterr().err
    assert not (tmp_path / "out.bam").exists()


def test_bai_of_a_contig_that_is_too_long(tmp_path: Path) -> None:
    contigs = (Contig("short", 5, "0" * 32), Contig("long", MAX_BAI_LENGTH + 1, "1" * 32))
    reference: Any = SimpleNamespace(contigs=contigs)
    config = SearchConfig(
        reads=["r.fq"], index="ref.fa", output=str(tmp_path / "out.bam"), sort=True, index_format="bai"
    )
    with pytest.raises(UsageError, match=r"long has 536,870,912 bases, and BAI reaches 536,870,911"):
        open_records(config, reference, CpuBackend(1))
    assert names_in(tmp_path) == []


def test_sorting_needs_are_reported(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    reads, cpu = [str(folder / "reads.fq")], CpuBackend(1)
    little = SearchConfig(reads=reads, index="ref.fa", output="out.bam", sort=True, sort_memory="1K")
    line = describe_sorting(little, reads, cpu)
    assert line is not None
    assert re.match(rf"sorting takes up to 1 KiB of memory, and about \d+ KiB of the disk of {tmp_path}, where", line)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert str(describe_sorting(little, reads, cpu)).startswith("warning: sorting takes up to 1 KiB")
    assert "disk" not in str(describe_sorting(dataclasses.replace(little, sort_memory=None), reads, cpu))
    assert describe_sorting(little, [*reads, "-"], cpu) is None
    monkeypatch.setattr(cpu, "memory", lambda: (1, 2))
    assert "1 KiB of memory, the first of it on cpu, and" in str(describe_sorting(little, reads, cpu))
    by_name = dataclasses.replace(little, sort_order=SortOrder.QUERYNAME)
    assert "on cpu" not in str(describe_sorting(by_name, reads, cpu))
    assert describe_sorting(dataclasses.replace(little, sort=False, sort_memory=None), reads, cpu) is None


def test_no_reads(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none.fq").touch()
    for name in ("a.bam", "b.cram"):
        arguments = ["search", str(tmp_path / "none.fq"), "-x", str(folder / "ref.fa"), "-o", str(tmp_path / name)]
        assert main([*arguments, "--sort", "--device", "cpu", "-q"]) == 0
        assert records_of(tmp_path / name) == []
    with pysam.AlignmentFile(str(tmp_path / "a.bam")) as file:
        assert file.check_index()


def test_records_beyond_the_memory_go_to_tmpdir(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    seen: set[str] = set()
    add = SortedRuns.add

    def spy(self: SortedRuns, *arguments: Any) -> None:
        seen.update(path.suffix for path in (tmp_path / "scratch").rglob("*.*"))
        add(self, *arguments)

    monkeypatch.setattr(SortedRuns, "add", spy)
    assert search_in(folder, str(tmp_path / "out.bam"), "--sort", "--sort-memory", "1K", "--batch-reads", "20") == 0
    assert {".run", ".keys", ".offsets"} <= seen
    assert names_in(tmp_path / "scratch") == []
    assert records_of(tmp_path / "out.bam") == records_of(folder / "expected.bam")


@pytest.mark.parametrize("memory", ["1K", "1G"])
def test_a_full_disk_names_the_file(
    folder: Path, tmp_path: Path, memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--sort", "--sort-memory", memory, "--batch-reads", "99"
    with file_size_limit(1 << 14):
        assert search_in(folder, str(tmp_path / "out.bam"), *options) == 1
    message = capsys.readouterr().err
    assert "File too large" in message
    assert ".run" in message if memory == "1K" else str(tmp_path / "out.bam") in message
    assert names_in(tmp_path) == []


def test_a_signal_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path.parent / "many.fq").write_bytes(fastq(READS) * 300)
    command = [sys.executable, "-m", "readmap", "search", "../many.fq", "-x", str(folder / "ref.fa"), "-o", "out.bam"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    environment.pop("TMPDIR", None)
    command += ["--sort", "--device=cpu", "--sort-memory=1K", "--batch-reads=500", "-q"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    end = time.monotonic() + 60
    while not list(tmp_path.rglob("*.run")) and time.monotonic() < end:
        time.sleep(0.01)
    assert list(tmp_path.rglob("*.run"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    assert process.stderr.read() == b"readmap: interrupted by SIGTERM\n"
    assert names_in(tmp_path) == []
