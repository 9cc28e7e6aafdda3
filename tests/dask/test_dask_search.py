"""A search on a cluster writes the records of a search on one machine, also if a worker is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pysam
import pytest
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, small_genome

import readmap.dask
from readmap.cli import main
from readmap.dask.cluster import expect_dask, gpus_of
from readmap.errors import BackendError, DataError, UsageError

DRAW = random.Random(61)
CONTIGS = small_genome(DRAW)
GROUPS = [rf"@RG\tID:{name}\tSM:s\tLB:{name}" for name in "ab"]
TASKS = 5

failure = failures(lambda *arguments: main([*map(str, arguments)]))


def draw() -> list[tuple[Read, Read]]:
    """Draw pairs with duplicates, with names of one tile; some are unmapped."""
    pairs = draw_pairs(DRAW, CONTIGS, 150)
    drawn = []
    for number in range(300):
        mates = pairs[DRAW.randrange(150)]
        name = f"m:1:f:1:1101:{DRAW.randrange(1000, 1150)}:{number}"
        drawn.append((replace(mates[0], name=name), replace(mates[1], name=name)))
    drawn[17] = tuple(replace(mate, bases="A" * len(mate.bases)) for mate in drawn[17])  # type: ignore[assignment]
    return drawn


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an index, two lanes of pairs, and all their mates as single reads."""
    folder, pairs = tmp_path_factory.mktemp("dask"), draw()
    (folder / "ref.fa").write_bytes(fasta(CONTIGS))
    assert main(["index", str(folder / "ref.fa"), "-q", "--device", "cpu"]) == 0
    for lane, own in (("a", pairs[:200]), ("b", pairs[200:])):
        for mate in range(2):
            (folder / f"{lane}_{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in own]))
    (folder / "single.fq").write_bytes(fastq([mate for pair in pairs for mate in pair]))
    return folder


@pytest.fixture(autouse=True)
def inside(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in made.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)


def lanes() -> list[str]:
    return [word for name, group in zip("ab", GROUPS, strict=True) for word in lane(name, group)]


def lane(name: str, group: str) -> list[str]:
    return ["--lane", f"{name}_1.fq,{name}_2.fq,{group}"]


def search(output: str, *words: str) -> None:
    assert main(["search", *words, "-x", "ref.fa", "--device", "cpu", "-q", "-o", output]) == 0


def on_cluster(client: Any, output: str, *words: str) -> None:
    search(output, *words, "--dask", client.scheduler.address, "--tasks", str(TASKS))


def contents(path: str) -> list[str]:
    """Return the header without readmap's @PG line, and all records."""
    with pysam.AlignmentFile(path, check_sq=False) as file:
        header = [line for line in str(file.header).splitlines() if not line.startswith("@PG")]
        return [*header, *(record.to_string() for record in file)]


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["single.fq"], "out.sam"),
        (["a_1.fq", "a_2.fq"], "out.bam"),
        (["single.fq", "-p"], "out.sam"),
        (["single.fq", "-a", "-Y"], "out.bam"),
    ],
)
def test_records_are_those_of_one_machine(client: Any, words: list[str], output: str) -> None:
    on_cluster(client, output, *words)
    search(f"one.{output}", *words)
    assert contents(output) == contents(f"one.{output}")
    assert not [name for name in os.listdir() if name.endswith(".unfinished")]


def test_text_is_the_same_bytes(client: Any) -> None:
    on_cluster(client, "out.sam", *lanes(), "--unmapped", "no.fq.gz")
    search("one.sam", *lanes(), "--unmapped", "one.fq.gz")
    texts = [Path(name).read_bytes().splitlines() for name in ("out.sam", "one.sam")]
    found, expected = ([line for line in text if not line.startswith(b"@PG")] for text in texts)
    assert found == expected
    assert list(pysam.FastxFile("no.fq.gz")) != []
    assert [str(read) for read in pysam.FastxFile("no.fq.gz")] == [str(read) for read in pysam.FastxFile("one.fq.gz")]


@pytest.mark.parametrize("words", [[], ["--markdup", "--duplicate-type"], ["--remove-duplicates"]])
def test_sorted_and_marked(client: Any, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from readmap.dask import run_files

    monkeypatch.setattr(run_files, "RANGE_BYTES", run_files.SAMPLED_BYTES)  # a range from each sample, one a shard
    told = ["--metrics", "out.txt"] if words else []
    on_cluster(client, "out.bam", *lanes(), "--sort", *words, *told, "--json", "out.json")
    search("one.bam", *lanes(), "--sort", *words, *(["--metrics", "one.txt"] if words else []), "--json", "one.json")
    assert contents("out.bam") == contents("one.bam")
    known = [json.loads(Path(name).read_text()) for name in ("out.json", "one.json")]
    same = ("counts", "mapq_histogram", "insert_sizes", "bases_per_difference", *(["duplicates"] if words else []))
    assert {name: known[0][name] for name in same} == {name: known[1][name] for name in same}
    assert known[0]["cluster"]["tasks"] == TASKS
    for name in CONTIGS:  # the index finds what there is
        pair = [pysam.AlignmentFile(path) for path in ("out.bam", "one.bam")]
        for begin in range(0, len(CONTIGS[name]), 500):
            found, expected = ([r.to_string() for r in file.fetch(name, begin, begin + 100)] for file in pair)
            assert found == expected
    if words:
        lines = [Path(name).read_text().splitlines() for name in ("out.txt", "one.txt")]
        assert [line for line in lines[0] if line[:1] != "#"] == [line for line in lines[1] if line[:1] != "#"]


def test_more_tasks_than_reads(client: Any) -> None:
    Path("few.fq").write_bytes(b"".join(Path("single.fq").read_bytes().splitlines(True)[:8]))
    for words in ([], ["--sort", "--markdup"]):
        on_cluster(client, "out.bam", "few.fq", *words)
        search("one.bam", "few.fq", *words)
        assert contents("out.bam") == contents("one.bam")


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_worker_that_is_killed_changes_nothing(client: Any, is_sorted: bool) -> None:
    killed: list[int] = []

    def kill(text: str, share: float | None = None) -> None:
        if not killed and share and " of " in text and not text.startswith("finding"):
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    given = [
        readmap.dask.Lane.of(f"{name}_1.fq", f"{name}_2.fq", group) for name, group in zip("ab", GROUPS, strict=True)
    ]
    monitor = SimpleNamespace(say=lambda line: None, show=kill)
    options: dict[str, Any] = {"sort": is_sorted, "mark_duplicates": is_sorted, "device": "cpu"}
    summary = readmap.dask.search(client, given, "ref.fa", "out.bam", tasks=12, monitor=monitor, **options)
    assert killed
    assert summary.counts["reads"] == 600
    search("one.bam", *lanes(), *(["--sort", "--markdup"] if is_sorted else []))
    assert contents("out.bam") == contents("one.bam")


def test_shards_of_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are mapped while further reads are located; with a split table they are the same."""
    from distributed import Client, LocalCluster

    from readmap.dask import shard_plan, worker
    from readmap.reads import file_splitter, record_starts

    monkeypatch.setattr(worker, "TASK_READS", 100)
    monkeypatch.setattr(record_starts, "BUFFER_BYTES", 9_000)
    for module in (shard_plan, file_splitter):
        monkeypatch.setattr(module, "RECORDS_PER_MARK", 10)
    assert main(["split", *lanes(), "-o", "reads.split", "-q"]) == 0
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:
        for words in ([], ["--sort", "--markdup"], ["--split", "reads.split"]):
            search("out.bam", *lanes(), *words, "--dask", client.scheduler.address, "--json", "out.json")
            search("one.bam", *lanes(), *([] if "--split" in words else words))
            assert contents("out.bam") == contents("one.bam")
            assert json.loads(Path("out.json").read_text())["cluster"]["tasks"] > 6


def test_split_table_and_sample_model_are_used(client: Any) -> None:
    files = ["a_1.fq", "a_2.fq"]
    assert main(["split", *files, "-o", "reads.split", "-q"]) == 0
    assert main(["estimate", *files, "-x", "ref.fa", "-o", "sample.json", "-q", "--device", "cpu"]) == 0
    on_cluster(client, "out.bam", *files, "--split", "reads.split", "--sample-model", "sample.json")
    search("one.bam", *files)
    assert contents("out.bam") == contents("one.bam")


def test_invalid_reads_are_reported_by_file_and_record(client: Any) -> None:
    lines = Path("single.fq").read_bytes().splitlines(True)
    lines[4 * 400 + 1] = b"!" + lines[4 * 400 + 1][1:]
    Path("wrong.fq").write_bytes(b"".join(lines))
    before = sorted(os.listdir())
    with pytest.raises(DataError, match=r"wrong\.fq, record 401 "):
        readmap.dask.search(client, ["wrong.fq"], "ref.fa", "out.bam", tasks=TASKS, device="cpu")
    Path("a.bam").write_bytes(b"BAM\1")
    with pytest.raises(DataError, match="expected"):
        readmap.dask.search(client, ["ref.fa.readmap/manifest.json"], "ref.fa", "out.bam", device="cpu")
    assert sorted(os.listdir()) == sorted([*before, "a.bam"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "3", "-o", "out.sam"], "--tasks: only with --dask"),
        (["--dask", "local"], "--dask: name the output by -o"),
        (["--dask", "local", "--exact", "-o", "out.sam"], "--exact: not with --dask"),
        (["--dask", "local", "--shard", "1/2", "-o", "out.sam"], "--shard: "),
        (["--dask", "local", "--keep-tags", "all", "-o", "out.sam"], "--keep-tags: not with --dask"),
        (["--dask", "local", "--sort", "--report", "a.html", "-o", "out.bam"], "--report: not with --dask"),
        (["--dask", "local", "-o", "out.cram"], "-o: not with --dask: write BAM"),
        (["--dask", "tcp://127.0.0.1:1", "--gpus", "2", "-o", "out.sam"], "--gpus: only with --dask local"),
        (["--dask", "local", "-o", "/dev/null"], "-o /dev/null: no file"),
    ],
)
def test_wrong_options(capfd: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert message in failure(capfd, "search", "single.fq", "-x", "ref.fa", *words, code=2)


def test_wrong_arguments(client: Any) -> None:
    with pytest.raises(UsageError, match="output: not with dask: write BAM"):
        readmap.dask.search(client, ["single.fq"], "ref.fa", "out.cram")
    with pytest.raises(UsageError, match="sort: only for BAM and CRAM"):
        readmap.dask.search(client, ["single.fq"], "ref.fa", "out.sam", sort=True)


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BackendError, match=r"pip install 'readmap\[dask\]'"):
        expect_dask()


@pytest.mark.parametrize(
    ("shown", "expected"), [(None, ["0", "2"]), ("4,5,7", ["4", "7"]), ("GPU-a, GPU-b, GPU-c", ["GPU-a", "GPU-c"])]
)
def test_each_worker_sees_its_gpu(monkeypatch: pytest.MonkeyPatch, shown: str | None, expected: list[str]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert gpus_of(["cuda:0", "cuda:2"]) == expected


def test_a_terminal_interrupts_a_cluster_of_this_machine(tmp_path: Path) -> None:
    """An interrupt ends the workers too, without messages from them."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'readmap[dask]'")
    before = sorted(os.listdir())
    words = ["a_1.fq", "a_2.fq", "-x", "ref.fa", "--device", "cpu", "--dask", "local", "-t", "2", "-o", "out.bam"]
    command = [sys.executable, "-m", "readmap", "search", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr
        while sorted(os.listdir()) == before and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        told = process.stderr.read()
    assert told.splitlines()[-1:] == ["readmap: interrupted"]
    assert "Traceback" not in told
    assert process.returncode == -signal.SIGINT
    assert sorted(os.listdir()) == before


@pytest.mark.gpu
def test_gpus_of_this_machine() -> None:
    """The cluster has a worker for each GPU."""
    from readmap.backend import cuda_available

    if (reason := cuda_available()) is not None:
        pytest.skip(f"no CUDA: {reason}")
    words = ["a_1.fq", "a_2.fq", "-x", "ref.fa", "-q"]
    assert main(["search", *words, "--dask", "local", "--gpus", "all", "--tasks", "20", "-o", "out.bam"]) == 0
    search("one.bam", "a_1.fq", "a_2.fq")
    assert contents("out.bam") == contents("one.bam")


def test_this_machine() -> None:
    search("out.bam", "a_1.fq", "a_2.fq", "--dask", "local", "--tasks", "3", "-t", "1")
    search("one.bam", "a_1.fq", "a_2.fq")
    assert contents("out.bam") == contents("one.bam")
