"""readmap search on BAM and CRAM in any order: every read is mapped once, mates together, and errors are reported."""

import functools
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pysam
import pytest
from examples import fasta, random_bases, random_quality, substitute
from oracles.alignment import reverse_complement

from readmap.cli import main
from readmap.errors import DataError
from readmap.formats import samtools
from readmap.formats.samtools import SamtoolsInput
from readmap.reads.alignment_reads import AlignmentReads
from readmap.run import read_mapper, sample

INPUTS = Path(__file__).resolve().parents[1] / "inputs"
DRAW = random.Random(431)
GENOME = random_bases(DRAW, 20_000)
LENGTH = 80
ROOT = Path(__file__).resolve().parents[2]

#: A record: its name, flag, bases, qualities and read group.
Line = tuple[str, int, str, str, str]


def draw_lines(pairs: int, singles: int, lost: int) -> list[list[Line]]:
    """Make fragments of a few records: pairs, single reads, and mates without a partner."""
    made: list[list[Line]] = []
    for number in range(pairs + singles + lost):
        begin = int(DRAW.random() * (len(GENOME) - 400))
        fragment = GENOME[begin : begin + 280 + int(40 * DRAW.random())]
        mates = [substitute(DRAW, part[:LENGTH], 1) for part in (fragment, reverse_complement(fragment))]
        flags = [77, 141] if number < pairs else [4] if number < pairs + singles else [(77, 141)[number % 2]]
        failed = 0x200 if number % 5 == 0 else 0x400 if number % 7 == 0 else 0
        made.append(
            [
                (f"f{number}", flag | failed, bases, random_quality(DRAW, LENGTH), "ab"[number % 2])
                for flag, bases in zip(flags, mates, strict=False)
            ]
        )
    return made


FRAGMENTS = draw_lines(100, 30, 15)
COLLATED = [line for fragment in FRAGMENTS for line in fragment]


def shuffled(seed: int) -> list[Line]:
    """Return the records in random order; the fragments have different names."""
    lines = list(COLLATED)
    random.Random(seed).shuffle(lines)
    return lines


def write(path: Path, lines: list[Line], order: str = "unsorted") -> str:
    header = f"@HD\tVN:1.6\tSO:{order}\n@RG\tID:a\n@RG\tID:b\n"
    text = "".join(f"{n}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{b}\t{q}\tRG:Z:{group}\n" for n, flag, b, q, group in lines)
    path.with_suffix(".sam").write_text(header + text)
    form = "-C" if path.suffix == ".cram" else "-b"
    pysam.samtools.view(form, "--no-PG", "-o", str(path), str(path.with_suffix(".sam")), catch_stdout=False)
    return str(path)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reference") / "ref.fa"
    path.write_bytes(fasta({"c": GENOME}))
    assert main(["index", str(path), "-q"]) == 0
    return str(path)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def search(reference: str, reads: str, *options: str) -> int:
    return main(["search", reads, "-x", reference, "-o", "out.sam", "--device", "cpu", "--json", "r.json", *options])


def records() -> list[list[str]]:
    return [line.split("\t") for line in Path("out.sam").read_text().splitlines() if not line.startswith("@")]


def counts() -> dict[str, int]:
    found: dict[str, int] = json.loads(Path("r.json").read_text())["counts"]
    return found


def as_sequenced(fields: list[str]) -> tuple[str, str, str]:
    bases, qualities = fields[9:11]
    return (fields[0], *((reverse_complement(bases), qualities[::-1]) if int(fields[1]) & 16 else (bases, qualities)))


def forward_qualities(record: Any) -> str:
    if not record.query_qualities:
        return "*"
    return pysam.qualities_to_qualitystring(record.get_forward_qualities()) or "*"


@pytest.mark.parametrize(
    ("name", "reads", "pairs", "lost"),
    [
        ("c1_clip", 7, 0, 0),
        ("mixed_single_first", 61, 30, 0),
        ("quickcheck_ok_collated", 40, 3, 1),
        ("same_names", 10, 0, 0),
    ],
)
def test_no_read_is_lost(reference: str, name: str, reads: int, pairs: int, lost: int) -> None:
    path = str(INPUTS / f"{name}.bam")
    assert search(reference, path, "-q") == 0
    found = records()
    with pysam.AlignmentFile(path, check_sq=False) as file:
        primary = [r for r in file.fetch(until_eof=True) if not r.is_secondary and not r.is_supplementary]
    expected = [(r.query_name, r.get_forward_sequence() or "*", forward_qualities(r)) for r in primary]
    assert sorted(map(as_sequenced, found)) == sorted(expected)
    assert len(found) == reads
    assert sum(int(fields[1]) & 1 for fields in found) == 2 * pairs
    assert (counts()["reads"], counts()["singles"], counts()["lost_mates"]) == (reads, reads - 2 * pairs, lost)


def test_a_broken_file_ends_in_one_line(reference: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(INPUTS / "hang_samtools_threads.bam")
    assert search(reference, path, "-q") == 1
    assert capfd.readouterr().err.startswith(f"readmap: error: {path}: ")
    assert not Path("out.sam").exists()


def test_mates_are_found_in_any_order(reference: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The records equal the records of a collated file, in the order in which pairs become complete."""
    assert search(reference, write(Path("collated.bam"), COLLATED)) == 0
    said = capfd.readouterr().err
    assert "100 pairs" in said
    assert "45 single reads among the pairs" in said
    assert "15 reads mapped as single: their mates were not found" in said
    expected = records()
    flags = {fields[0]: int(fields[1]) for fields in expected}
    for number, fragment in enumerate(FRAGMENTS):
        flag = flags[f"f{number}"]
        assert bool(flag & 1) == (len(fragment) > 1)
        assert flag & 0x600 == (0x200 if number % 5 == 0 else 0)
    assert {fields[0]: fields[-1] for fields in expected} == {
        f"f{number}": f"RG:Z:{'ab'[number % 2]}" for number in range(len(FRAGMENTS))
    }
    for seed in range(3):
        lines = shuffled(seed)
        assert search(reference, write(Path("shuffled.bam"), lines), "-q", "--batch-reads", "1000") == 0
        assert sorted(records()) == sorted(expected)
        last = {line[0]: number for number, line in enumerate(lines)}
        lost = {fragment[0][0] for fragment in FRAGMENTS[-15:]}
        order = sorted(last, key=lambda name: (name in lost, last[name]))
        assert list(dict.fromkeys(fields[0] for fields in records())) == order


@pytest.mark.parametrize("options", [[], ["-a"], ["-P"], ["-I", "300,20"], ["--exact"]])
def test_batches_and_threads_do_not_change_records(
    reference: str, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """The result does not depend on the number of reads in the estimate or on the position of the first pair."""
    monkeypatch.setattr(sample, "READS", 50)
    monkeypatch.setattr(sample, "PAIRS", 40)
    monkeypatch.setattr(AlignmentReads, "start", functools.partialmethod(AlignmentReads.start, window=100))
    singles = [line for fragment in FRAGMENTS if len(fragment) == 1 for line in fragment]
    for lines in (singles + COLLATED, singles[:20] + shuffled(6)):
        outputs = set()
        path = write(Path("reads.bam"), lines)
        unmapped = [] if "--exact" in options else ["--unmapped", "un.fq"]
        for batch in ([], ["--batch-reads", "17"], ["--batch-reads", "64", "-t", "1"]):
            assert search(reference, path, *batch, *options, *unmapped, "-q") == 0
            text = "\n".join("\t".join(fields) for fields in records())
            outputs.add(text + (Path("un.fq").read_text() if unmapped else ""))
        assert len(outputs) == 1
        primary = [fields for fields in records() if not int(fields[1]) & 0x900]
        assert sorted(map(as_sequenced, primary)) == sorted((n, b, q) for n, _, b, q, _ in lines)


def test_single_reads_among_pairs_map_as_without_pairs(reference: str) -> None:
    """Except for estimates from all reads together."""
    assert search(reference, write(Path("all.bam"), COLLATED), "-q", "-I", "300,20") == 0
    singles = {fragment[0][0] for fragment in FRAGMENTS if len(fragment) == 1}
    among = [fields for fields in records() if fields[0] in singles]
    alone = [line for line in COLLATED if line[0] in singles]
    assert search(reference, write(Path("alone.bam"), alone), "-q") == 0
    assert among == records()
    assert (counts()["singles"], counts()["lost_mates"]) == (45, 15)


def test_exact_search_of_mates(reference: str) -> None:
    """Records are in the order of the file and keep only the flag of failed quality checks."""
    lines = shuffled(7)
    assert search(reference, write(Path("reads.bam"), lines), "-q", "--exact") == 0
    primary = [fields for fields in records() if not int(fields[1]) & 0x900]
    assert [(fields[0], int(fields[1]) & ~0x14) for fields in primary] == [(n, flag & 0x200) for n, flag, *_ in lines]


def test_unmapped_single_reads_have_no_number(reference: str) -> None:
    lines = [("p", 77, "A" * 40, "I" * 40, "a"), ("s", 4, "C" * 40, "I" * 40, "a"), ("p", 141, "G" * 40, "I" * 40, "a")]
    assert search(reference, write(Path("reads.bam"), lines), "-q", "--unmapped", "un.fq") == 0
    assert [line.split("\t")[0] for line in Path("un.fq").read_text().splitlines()[::4]] == ["@s", "@p/1", "@p/2"]
    assert search(reference, write(Path("few.bam"), lines[:2]), "-q", "--unmapped", "un.fq", "--keep-tags", "all") == 0
    assert Path("un.fq").read_text().splitlines()[::4] == ["@s\tRG:Z:a", "@p\tRG:Z:a"]


@pytest.mark.parametrize("ending", [".bam", ".cram"])
def test_collate(
    reference: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], ending: str
) -> None:
    """Mates that are too far apart for the window; nothing stays in the folder for temporary files."""
    Path("tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(Path("tmp").resolve()))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(AlignmentReads, "start", functools.partialmethod(AlignmentReads.start, window=20))
    path = write(Path(f"sorted{ending}"), shuffled(3), "coordinate")
    assert search(reference, path, "-q") == 1
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert "its mate is not within 20 records of it, and the file is sorted by coordinate: use --collate" in message
    assert not Path("out.sam").exists()
    assert search(reference, path, "-q", "--collate") == 0
    assert (counts()["reads"], counts()["singles"], counts()["lost_mates"]) == (len(COLLATED), 45, 15)
    primary = [as_sequenced(fields) for fields in records() if not int(fields[1]) & 0x900]
    assert sorted(primary) == sorted((n, b, q) for n, _, b, q, _ in COLLATED)
    assert not list(Path("tmp").iterdir())


def test_leftovers_of_a_killed_collation_are_removed(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leftover folder of samtools' temporary files is removed; the folder of a running search stays."""
    scratch, path = Path("tmp").resolve(), Path(write(Path("sorted.bam"), COLLATED, "coordinate"))
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "readmap", "search", "-x", reference, "--device=cpu", "--collate", "-q", "-o"]
    folders: Callable[[], set[Path]] = lambda: set(scratch.glob(".*"))  # noqa: E731
    left = folders()
    for _ in range(2):
        with subprocess.Popen([*command, "killed.sam", "-"], stdin=subprocess.PIPE, env=environment) as process:
            assert process.stdin is not None
            process.stdin.write(path.read_bytes()[:5000])
            process.stdin.flush()
            for _ in range(600):
                if folders() - left:
                    break
                time.sleep(0.05)
            left = folders()
            assert len(left) == 1
            assert search(reference, str(path), "--collate", "-q") == 0
            assert folders() == left
            process.kill()
    assert folders() == left
    assert search(reference, str(path), "--collate", "-q") == 0
    assert not list(scratch.iterdir())


def test_collate_is_for_alignments(reference: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("reads.fq").write_text("@a\nA\n+\nI\n")
    assert search(reference, "reads.fq", "--collate") == 2
    assert "--collate: reads.fq is no BAM or CRAM" in capfd.readouterr().err
    assert search(reference, write(Path("reads.bam"), COLLATED), "--collate", "--exact") == 2
    assert "--collate: not with --exact" in capfd.readouterr().err


def test_reads_that_are_not_written_are_an_error(
    reference: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def count_fewer(alignments: Any, batch: Any, context: Any) -> None:
        count(alignments, batch, context)
        batch.counters.primary -= 1

    count = read_mapper.count_alignments  # type: ignore[attr-defined]
    monkeypatch.setattr(read_mapper, "count_alignments", count_fewer)
    assert search(reference, write(Path("reads.bam"), COLLATED), "-q") == 1
    assert "245 reads came in, and 24" in capfd.readouterr().err
    assert not Path("out.sam").exists()


def test_blocked_samtools_is_ended(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samtools, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(samtools, "POLL_SECONDS", 0.1)
    read, write_end = os.pipe()
    os.write(write_end, Path(write(Path("reads.cram"), COLLATED)).read_bytes()[:1000])
    source = SamtoolsInput(io.FileIO(read), "reads.cram", b"", "view", "-u", "-")
    os.kill(source._samtools._process.pid, signal.SIGSTOP)
    time.sleep(0.5)  # the pipe of the reads stays open
    os.close(write_end)
    with pytest.raises(DataError, match=r"reads\.cram: samtools view was idle for \d seconds"):
        source.read(10)
    source.close()


def test_samtools_ends_with_its_parent(tmp_path: Path) -> None:
    """For every way in which the parent ends."""
    program = (
        "from readmap.formats.samtools import Samtools; import time\n"
        "child = Samtools('view', '-'); print(child._process.pid, flush=True); time.sleep(60)"
    )
    root = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=root) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(1)
        parent.kill()
    for _ in range(100):
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("samtools still runs")
