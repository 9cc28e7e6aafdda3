"""Quality reports: the same counts as samtools and mosdepth, valid HTML, and readable by MultiQC."""

import html.parser
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pysam
import pytest
from test_survey import CONTIGS, draw_records, encoded, surveyed

from readmap.backend import open_backend
from readmap.duplicates.metrics import LibraryMetrics, duplicates_table
from readmap.qc.charts import Axis, Line, line_chart
from readmap.qc.json_report import as_json
from readmap.qc.multiqc import file_name, multiqc_files
from readmap.qc.page import write_page
from readmap.qc.samtools import write_flagstat, write_stats
from readmap.qc.tally import SampleTally

VOID = {"meta", "br"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TABLES = [duplicates_table([LibraryMetrics("x<y", 10, 200, 3, 4, 1, 20, 2)])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def samples(folder: Path) -> list[SampleTally]:
    parts = encoded(draw_records(8, 900), folder / "in.bam")
    return surveyed(parts, [100, 350], open_backend("cpu", 2))


@pytest.fixture(scope="module")
def only(samples: list[SampleTally]) -> SampleTally:
    """Return all records as one sample, as samtools counts them."""
    return SampleTally("all", [lane for sample in samples for lane in sample.lanes], None)


def test_flagstat(only: SampleTally, folder: Path) -> None:
    assert write_flagstat(only.tally) == pysam.samtools.flagstat(str(folder / "in.bam"))


def test_stats(only: SampleTally, folder: Path) -> None:
    """Not compared: pairs at one position, inward in samtools since 1.22, and qualities of reads without qualities."""

    def parts(text: str, names: tuple[str, ...]) -> list[list[str]]:
        return [line.split("\t") for line in text.splitlines() if line.startswith(names)]

    theirs, ours = pysam.samtools.stats(str(folder / "in.bam")), write_stats(only.tally, "0")
    summary = {name: value for _, name, value, *_ in parts(theirs, ("SN",))}
    found = {name: value for _, name, value in parts(ours, ("SN",))}
    assert list(found) == list(summary)
    qualities = [float(value.pop("average quality:")) for value in (found, summary)]
    assert qualities[0] < qualities[1]  # samtools adds 255 if a quality is missing
    assert found == summary
    sizes = {row[1]: row[2:] for row in parts(theirs, ("IS",)) if row[2] != "0"}
    for row in parts(ours, ("IS",)):
        assert sizes.get(row[1], row[2:]) == row[2:]
    mapqs = parts(theirs, ("MAPQ",))
    assert not mapqs or mapqs == parts(ours, ("MAPQ",))


def test_stats_of_qualities(tmp_path: Path) -> None:
    """samtools has empty cycles for hard clips."""
    records = [one for one in draw_records(9, 300) if one.query_qualities is not None]
    parts = encoded(records, tmp_path / "in.bam")
    (lanes,) = [[lane for sample in surveyed(parts, [], open_backend("cpu", 1)) for lane in sample.lanes]]
    ours = write_stats(SampleTally("all", lanes, None).tally, "0").splitlines()
    theirs = pysam.samtools.stats(str(tmp_path / "in.bam")).splitlines()
    for name in ("FFQ", "LFQ", "SN\taverage quality"):
        expected = [line for line in theirs if line.startswith(name)]
        found = [line for line in ours if line.startswith(name)]
        assert found == expected[: len(found)] != []
        assert all(set(line.split("\t")[2:]) == {"0"} for line in expected[len(found) :])


@pytest.mark.skipif(shutil.which("mosdepth") is None, reason="mosdepth is not installed")
def test_same_coverage_as_mosdepth(shared: Path, tmp_path: Path) -> None:
    from readmap.cli import main

    names = [str(shared / "data/human" / name) for name in ("na12878_chr20_1.fq.gz", "na12878_chr20_2.fq.gz")]
    genome = str(shared / "data/human/chr20_chr21_slices.fa.gz")
    assert main(["index", genome, "-o", f"{tmp_path}/x.readmap", "-q"]) == 0
    wanted = ["-o", f"{tmp_path}/o.bam", "--sort", "--markdup", "--multiqc", f"{tmp_path}/m", "--json", f"{tmp_path}/j"]
    assert main(["search", *names, "-x", f"{tmp_path}/x.readmap", *wanted, "-q"]) == 0
    subprocess.run(["mosdepth", "o", "o.bam"], cwd=tmp_path, check=True)
    counted = np.zeros(1024, np.int64)
    for line in pysam.BGZFile(f"{tmp_path}/o.per-base.bed.gz", "rb").read().decode().splitlines():
        _, begin, end, depth = line.split()
        counted[int(depth)] += int(end) - int(begin)
    coverage = json.loads((tmp_path / "j").read_text())["quality"][0]["coverage"]
    assert coverage["histogram"] == {str(depth): int(counted[depth]) for depth in np.flatnonzero(counted)}


def test_json(samples: list[SampleTally]) -> None:
    """JSON without NaN and with the numbers of the tallies."""
    found = json.loads(json.dumps(as_json(samples), allow_nan=False))["quality"]
    assert [one["sample"] for one in found] == ["s", "t", "unnamed"]
    first, tally = found[0], samples[0].tally
    assert first["reads"] == tally.reads == sum(lane["reads"] for lane in first["lanes"])
    assert first["coverage"]["contigs"][1]["contig"] == "b"
    assert sum(first["coverage"]["histogram"].values()) == sum(length for _, length in CONTIGS)
    assert len(first["cycles"]) == 2
    assert len(first["cycles"][0]["mean_quality"]) == tally.cycles
    assert first["libraries"][0]["library"] == "x"


def test_multiqc_files(samples: list[SampleTally]) -> None:
    files = multiqc_files(samples)
    assert {name.split(".")[0] for name in files} == {"s", "t", "unnamed"}
    for name, text in files.items():
        if name.endswith("_mqc.json"):
            content = json.loads(text)
            assert {"id", "plot_type", "data"} <= set(content)
            assert all(key.split(" ")[0] == name.split(".")[0] for key in content["data"])
    assert file_name("../a b/c") == "a_b_c"
    assert file_name("..") == "sample"


@pytest.mark.skipif(shutil.which("multiqc") is None, reason="MultiQC is not installed")
def test_multiqc_itself(samples: list[SampleTally], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in multiqc_files(samples).items():
        (tmp_path / "in" / name).write_text(text)
    subprocess.run(["multiqc", "--strict", "-o", tmp_path / "out", tmp_path / "in"], check=True)
    found = json.loads((tmp_path / "out/multiqc_data/multiqc_data.json").read_text())["report_saved_raw_data"]
    for module in ("multiqc_samtools_flagstat", "multiqc_samtools_stats"):
        assert sorted(found[module]) == ["s", "t", "unnamed"]
    assert sorted(found["multiqc_general_stats"]) == ["s", "t", "unnamed"]
    assert found["multiqc_samtools_flagstat"]["s"]["total_passed"] > 0


class _Reader(html.parser.HTMLParser):
    """Asserts that all elements are closed in order, and that nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        assert not {"src", "onclick", "onload"} & set(named)
        assert (named.get("href") or "#").startswith("#")
        self.ids += [named["id"] or ""] if "id" in named else []
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)


def test_page(samples: list[SampleTally]) -> None:
    page = write_page(samples, TABLES, "a&b.bam", "readmap search <x>")
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert "script" not in reader.seen
    assert len(set(reader.ids)) == len(reader.ids)
    assert not re.search(r"url\(|@import|nan", re.sub("<title>[^<]*", "", page))
    assert "a&amp;b.bam" in page
    assert "readmap search &lt;x&gt;" in page
    assert "x&lt;y" in page
    assert page == write_page(samples, TABLES, "a&b.bam", "readmap search <x>")
    assert f"{samples[0].tally.reads:,}" in page


def test_page_without_records(tmp_path: Path) -> None:
    page = write_page(surveyed([], [], open_backend("cpu", 1)), [], "o.bam", "")
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []


def test_lines_are_interrupted_at_nan() -> None:
    values = np.array([1.0, np.nan, 2.0, 3.0])
    picture = line_chart("t", np.arange(4.0), [Line("a", values, "c1")], Axis("x"), Axis("y"))
    (path,) = re.findall(r'class="line c1" d="([^"]+)"', picture)
    assert path.count("M") == 2
    assert path.count("L") == 1


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (400, False)])
def test_page_in_a_browser(samples: list[SampleTally], tmp_path: Path, width: int, dark: bool) -> None:
    """Light and dark; a narrow screen does not scroll horizontally."""
    from matplotlib.image import imread

    (tmp_path / "p.html").write_text(write_page(samples, TABLES, "o.bam", "readmap"))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},1600"]
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    call = [str(CHROMIUM), *options, f"--user-data-dir={tmp_path}/profile", f"--screenshot={tmp_path}/p.png"]
    subprocess.run([*call, f"file://{tmp_path}/p.html"], check=True, capture_output=True, timeout=60)
    picture = imread(tmp_path / "p.png")[:, :, :3]
    paper = picture[2, 2]
    assert (paper < 0.2).all() if dark else (paper > 0.9).all()
    assert len(np.unique((picture.reshape(-1, 3) * 255).astype(np.uint8), axis=0)) > 30
    assert np.allclose(picture[:, -4:], paper, atol=0.02)  # no horizontal scrolling
