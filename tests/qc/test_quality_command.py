"""readmap search and markdup with --report and --multiqc: the same numbers for all options and devices."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from alignment_files import names_in
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, small_genome
from oracles import quality as oracle

from readmap.cli import main

DRAW = random.Random(82)
GENOME = small_genome(DRAW)
LANES = [r"l0_1.fq,l0_2.fq,@RG\tID:A\tSM:s\tLB:x", r"l1_1.fq,l1_2.fq,@RG\tID:B\tSM:s\tLB:y"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an index and two lanes."""
    folder = tmp_path_factory.mktemp("quality")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    assert main(["index", str(folder / "ref.fa"), "-q"]) == 0
    pairs = draw_pairs(DRAW, GENOME, 600)
    pairs += [(Read(f"c{a.name}", a.bases, a.quality), Read(f"c{b.name}", b.bases, b.quality)) for a, b in pairs[:60]]
    for lane in range(2):
        for mate in range(2):
            (folder / f"l{lane}_{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in pairs[lane::2]]))
    return folder


def search(folder: Path, *options: str, device: str = "cpu") -> int:
    in_folder = (lane.replace("l0_", f"{folder}/l0_").replace("l1_", f"{folder}/l1_") for lane in LANES)
    lanes = [word for lane in in_folder for word in ("--lane", lane)]
    return main(["search", *lanes, "-x", str(folder / "ref.fa"), "--device", device, "-q", *options])


def reported(folder: Path, out: Path, *options: str, device: str = "cpu", ending: str = "bam") -> dict[str, str]:
    """Return the texts of all reports of a search by name, including the JSON report."""
    out.mkdir()
    to = ["-o", f"{out}/o.{ending}", "--report", f"{out}/o.html", "--multiqc", f"{out}/m", "--json", f"{out}/o.json"]
    assert search(folder, *to, "--sort", *options, device=device) == 0
    files = {f"m/{name}": (out / "m" / name).read_text() for name in names_in(out / "m")}
    page = (out / "o.html").read_text()
    files["page"] = page[: page.index("<p><code>")] + page[page.index("</header>") :]
    files["quality"] = json.dumps(json.loads((out / "o.json").read_text())["quality"])
    return {name: text.replace(str(out), "") for name, text in files.items()}


@pytest.fixture(scope="module")
def default_reports(folder: Path) -> dict[str, str]:
    return reported(folder, folder / "default_reports")


def test_equal_to_samtools(folder: Path, default_reports: dict[str, str]) -> None:
    bam = str(folder / "default_reports/o.bam")
    assert default_reports["m/s.flagstat"] == pysam.samtools.flagstat(bam)
    theirs = [line.split("\t#")[0] for line in pysam.samtools.stats(bam).splitlines() if line.startswith("SN")]
    ours = [line for line in default_reports["m/s.stats"].splitlines() if line.startswith("SN")]
    ours, theirs = ([line for line in lines if "oriented pairs" not in line] for lines in (ours, theirs))
    assert ours == theirs
    (sample,) = json.loads(default_reports["quality"])
    with pysam.AlignmentFile(bam) as file:
        depths = oracle.depths(file.fetch(until_eof=True), {"A": "s", "B": "s"})["s"]
        uncovered = sum(file.lengths) - len(depths)
    counted = Counter(depths.values()) | Counter({0: uncovered})
    assert sample["coverage"]["histogram"] == {str(depth): count for depth, count in sorted(counted.items()) if count}
    assert [lane["lane"] for lane in sample["lanes"]] == ["A", "B"]
    assert [library["library"] for library in sample["libraries"]] == ["x", "y"]
    assert "A read 1" in default_reports["page"]


@pytest.mark.parametrize(
    "options", [["-t", "1"], ["--sort-memory", "100K"], ["--batch-reads", "50"], ["--level", "6"]], ids=" ".join
)
def test_same_reports_with_any_options(
    folder: Path, default_reports: dict[str, str], tmp_path: Path, options: list[str], backends: str
) -> None:
    assert reported(folder, tmp_path / "o", *options, device=backends) == default_reports


def test_cram(folder: Path, default_reports: dict[str, str], tmp_path: Path) -> None:
    found = reported(folder, tmp_path / "o", ending="cram")
    assert found["quality"] == default_reports["quality"]


def test_duplicates_are_counted(folder: Path, default_reports: dict[str, str], tmp_path: Path, backends: str) -> None:
    marked = reported(folder, tmp_path / "marked", "--markdup", device=backends)
    counted = pysam.samtools.flagstat(str(tmp_path / "marked/o.bam"))
    assert marked["m/s.flagstat"] == counted != default_reports["m/s.flagstat"]
    assert "DuplicationMetrics" in marked["m/s.markdup.txt"]
    assert "<h2>Duplicates</h2>" in marked["page"]
    removed = reported(folder, tmp_path / "removed", "--remove-duplicates", device=backends)
    assert removed["m/s.flagstat"] == pysam.samtools.flagstat(str(tmp_path / "removed/o.bam"))
    assert json.loads(removed["quality"])[0]["coverage"] == json.loads(marked["quality"])[0]["coverage"]


def test_by_name_without_coverage(folder: Path, default_reports: dict[str, str], tmp_path: Path) -> None:
    found = reported(folder, tmp_path / "o", "--sort-order", "queryname")
    (sample,), (expected,) = json.loads(found["quality"]), json.loads(default_reports["quality"])
    assert sample["coverage"] is None
    assert {**sample, "coverage": 0} == {**expected, "coverage": 0}


@pytest.mark.usefixtures("default_reports")
def test_markdup_reports_the_same(folder: Path, tmp_path: Path, backends: str) -> None:
    marked = reported(folder, tmp_path / "marked", "--markdup")
    to = ["-o", f"{tmp_path}/o.bam", "--report", f"{tmp_path}/o.html", "--multiqc", f"{tmp_path}/m", "-q"]
    assert main(["markdup", f"{folder}/default_reports/o.bam", *to, "--device", backends]) == 0
    for name in names_in(tmp_path / "m"):
        if name != "s.markdup.txt":
            assert (tmp_path / "m" / name).read_text() == marked[f"m/{name}"]
    assert names_in(tmp_path / "m") == names_in(tmp_path / "marked/m")


@pytest.fixture
def failure(capfd: pytest.CaptureFixture[str], folder: Path) -> Callable[..., str]:
    def run(*arguments: str | Path) -> int:
        return main(["search", str(folder / "l0_1.fq"), "-x", str(folder / "ref.fa"), *map(str, arguments)])

    return lambda *arguments: failures(run)(capfd, *arguments, code=2)


def test_refused_options(failure: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--report: only with --sort" in failure("-o", "o.bam", "--report", "o.html")
    assert "--multiqc: only with --sort" in failure("-o", "o.sam", "--multiqc", "m")
    sorted_output = ("-o", "o.bam", "--sort")
    assert failure(*sorted_output, "--report", "o.txt") == "--report o.txt: expected a name that ends with .html"
    (tmp_path / "file").touch()
    assert failure(*sorted_output, "--multiqc", "file") == "--multiqc file: expected a folder, found a file"
    same = failure(*sorted_output, "--report", "o.html", "--json", "o.html")
    assert same == "--json o.html is where the page goes: name another file"


def test_failure_leaves_no_files(folder: Path, tmp_path: Path) -> None:
    """A damaged lane, with the MultiQC folder created for it."""
    (folder / "broken_1.fq").write_bytes((folder / "l0_1.fq").read_bytes()[:-30])
    to = ["-o", f"{tmp_path}/o.bam", "--sort", "--report", f"{tmp_path}/o.html", "--multiqc", f"{tmp_path}/m"]
    assert main(["search", f"{folder}/broken_1.fq", "-x", str(folder / "ref.fa"), *to, "-q"]) == 1
    assert names_in(tmp_path) == []


def test_interrupted(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reads.fq")
    to = ["-o", "o.bam", "--sort", "--report", "o.html", "--multiqc", "m", "--device", "cpu"]
    call = [sys.executable, "-m", "readmap", "search", "reads.fq", "-x", str(folder / "ref.fa"), *to]
    with (
        subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.PIPE) as process,
        open(tmp_path / "reads.fq", "wb") as reads,
    ):
        reads.write((folder / "l0_1.fq").read_bytes())
        reads.flush()
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert process.returncode != 0
    assert names_in(tmp_path) == ["reads.fq"]


@pytest.mark.skipif(shutil.which("multiqc") is None, reason="MultiQC is not installed")
def test_multiqc_names_one_sample(folder: Path, tmp_path: Path) -> None:
    reported(folder, tmp_path / "o", "--markdup")
    subprocess.run(["multiqc", "--strict", "-o", tmp_path / "out", tmp_path / "o/m"], check=True)
    found = json.loads((tmp_path / "out/multiqc_data/multiqc_data.json").read_text())["report_saved_raw_data"]
    assert list(found["multiqc_general_stats"]) == list(found["multiqc_picard_dups"]) == ["s"]
