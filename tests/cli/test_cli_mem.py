"""readmap mem: the command line of bwa mem, also under the name of bwa."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from commands import failures
from examples import Read, draw_pairs, fasta, fastq, small_genome
from oracles.alignment import reverse_complement

from readmap.cli import main

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(24)
GENOME = small_genome(DRAW)
RG = r"@RG\tID:a\tSM:s"

#: The options that bwa 0.7.19 and bwa-mem2 2.3 hand to getopt.
BWA = "51qpaMCSPVYjuk:c:v:s:r:t:R:A:B:O:E:U:w:L:d:T:Q:D:m:I:N:o:f:W:x:G:h:y:K:X:H:F:z:"
BWA_MEM2 = "51qpaMCSPVYjk:c:v:s:r:t:R:A:B:O:E:U:w:L:d:T:Q:D:m:I:N:W:x:G:h:y:K:X:H:o:f:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mem")
    (folder / "ref.fa").write_bytes(fasta(GENOME))
    assert main(["index", str(folder / "ref.fa"), "-p", str(folder / "genome"), "-q"]) == 0
    pairs = draw_pairs(DRAW, GENOME, 200)
    for mate in range(2):
        (folder / f"r{mate + 1}.fq").write_bytes(fastq([pair[mate] for pair in pairs]))
    mixed = [read for number, pair in enumerate(pairs) for read in (pair if number % 5 else pair[:1])]
    tagged = [Read(f"{read.name.split('/')[0]} RX:Z:ACGT", read.bases, read.quality) for read in mixed]
    (folder / "mixed.fq").write_bytes(fastq(tagged))
    return folder


@pytest.fixture
def mem(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that runs readmap mem and returns the records on standard output."""
    monkeypatch.chdir(folder)

    def run(*words: str) -> list[str]:
        assert main(["mem", *words]) == 0
        return [line for line in capfd.readouterr().out.splitlines() if not line.startswith("@")]

    return run


def test_every_option_of_bwa_is_accepted(mem: Callable[..., list[str]]) -> None:
    """A value follows its option with or without a blank, as in getopt."""
    values = {"R": RG, "H": r"@CO\tx", "x": "intractg", "I": "300,30", "h": "5,200", "z": "0.8", "o": None, "f": None}
    for listed in (BWA, BWA_MEM2):
        for letter, takes_value in re.findall("(.)(:?)", listed):
            value = values.get(letter, "30")
            if value is None:
                continue
            for words in ([f"-{letter}", value], [f"-{letter}{value}"]) if takes_value else ([f"-{letter}"],):
                reads = ["r1.fq", "r2.fq"] if letter not in "p" else ["mixed.fq"]
                assert mem(*words, "--quiet", "genome", *reads), words


def test_same_records_as_search(mem: Callable[..., list[str]], folder: Path) -> None:
    pairs = ["r1.fq", "r2.fq"]
    found = mem("-t", "2", "-K", "100000000", "-Y", "-R", RG, "-v", "3", "genome", *pairs)
    search = ["search", *pairs, "-x", "genome.readmap", "-h", "5", "--long-gap", "1000", "-Y", "-R", RG, "-q"]
    assert main([*search, "-o", "out.sam"]) == 0
    assert found == [line for line in Path("out.sam").read_text().splitlines() if not line.startswith("@")]
    assert mem("-o", "own.bam", "genome", *pairs) == []
    header = Path("own.bam").read_text().splitlines()[0]  # SAM, despite the ending
    assert header == "@HD\tVN:1.6\tSO:unsorted\tGO:query"


def test_scores(mem: Callable[..., list[str]]) -> None:
    """-A multiplies scores that are not given, as in search; presets are bwa mem's."""
    main(
        ["search", "r1.fq", "-x", "genome", "-A", "2", "-B", "9", "-h", "5", "--long-gap", "1000", "-q", "-o", "o.sam"]
    )
    expected = [line for line in Path("o.sam").read_text().splitlines() if not line.startswith("@")]
    assert mem("-A2", "-B", "9", "genome", "r1.fq") == expected != mem("genome", "r1.fq")
    preset = mem("-x", "ont2d", "-B", "3", "genome", "r1.fq")
    assert preset == mem("-A1", "-B3", "-O1,1", "-E1", "-L0", "genome", "r1.fq")


@pytest.mark.parametrize("strand", "+-")
def test_penalties_of_two_kinds(mem: Callable[..., list[str]], folder: Path, strand: str) -> None:
    """-O and -E have values for deletions and insertions, -L for the 5' and 3' end of the sequenced read."""
    name, letters = next((name, letters) for name, letters in GENOME.items() if len(letters) > 400)
    start, other = 120, {"A": "C", "C": "A", "G": "T", "T": "G"}
    whole = letters[start : start + 100]
    spoilt = "".join(other[base] if i in (2, 97) else base for i, base in enumerate(whole))
    bases = {
        "deletion": whole[:50] + letters[start + 54 : start + 104],
        "insertion": whole[:50] + "".join(other[base] for base in whole[50:54]) + whole[50:96],
        "ends": spoilt,
    }
    reads = [Read(key, own if strand == "+" else reverse_complement(own), "I" * 100) for key, own in bases.items()]
    (folder / "gaps.fq").write_bytes(fastq(reads))

    def cigars(*words: str) -> dict[str, str]:
        rows = [line.split("\t") for line in mem(*words, "genome", "gaps.fq")]
        assert {row[2] for row in rows} == {name}
        return {row[0]: row[5] for row in rows if int(row[1]) < 256}

    usual = cigars()
    assert sum("D" in cigar for cigar in usual.values()) == sum("I" in cigar for cigar in usual.values()) == 1
    assert usual["ends"] == "100M"
    dear = cigars("-O", "6,90"), cigars("-E", "30,1")
    assert "D" in dear[0]["deletion"]
    assert "I" not in dear[0]["insertion"]
    assert "D" not in dear[1]["deletion"]
    assert "I" in dear[1]["insertion"]
    begun, ended = ("97M3S", "3S97M") if strand == "+" else ("3S97M", "97M3S")
    assert (cigars("-L", "5,0")["ends"], cigars("-L", "0,5")["ends"]) == (begun, ended)
    assert cigars("-L", "0")["ends"] == cigars("-L", "0,0")["ends"] == "3S94M3S"
    assert cigars("-O", "6,6", "-E1,1", "-L", "5,5") == usual


def test_smart_pairing_and_tags(mem: Callable[..., list[str]]) -> None:
    """-p -C -Y, as pipelines map the output of samtools fastq with UMIs; a second file is ignored."""
    records = [line.split("\t") for line in mem("-p", "-C", "-Y", "genome", "mixed.fq", "r2.fq")]
    flags = {int(fields[1]) & 1 for fields in records}
    assert flags == {0, 1}
    assert all("RX:Z:ACGT" in fields for fields in records)


def test_options_without_effect_are_reported_once(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.chdir(folder)
    assert main(["mem", "-K9", "-t1", "-v1", "-1", "genome", "r1.fq"]) == 0
    assert "effect" not in capfd.readouterr().err
    assert main(["mem", "-k", "17", "-q", "-c500", "genome", "r1.fq"]) == 0
    errors = capfd.readouterr().err
    assert errors.count("warning: without effect: -k, -c, -q") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-R", "@RG\tID:a"], r"found a tab, expected \t: quote the line"),
        (["-O", "6,7,8"], "-O 6,7,8: expected N or N,N, numbers of 0 to 1000"),
        (["-E", "x"], "-E x: expected N or N,N, numbers of 1 to 1000"),
        (["-z", "2"], "-z 2: expected a share from 0 to 1"),
        (["-x", "sanger"], "-x sanger: expected pacbio, pbref, ont2d, intractg"),
        (["-I", "300,30,200"], "insert sizes of 180 to 200: expected the mean, 300, between them"),
        (["-I", "many"], "-I many: expected a mean"),
    ],
    ids=str,
)
def test_usage_errors(folder: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    os.chdir(folder)
    failure = failures(lambda *arguments: main([*arguments]))
    assert message in failure(capfd, "mem", *words, "genome", "r1.fq", "r2.fq", code=2)


def test_alt_contigs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A search reads PREFIX.alt unless -j is given."""
    monkeypatch.chdir(tmp_path)
    name, letters = max(GENOME.items(), key=lambda item: len(item[1]))
    version = letters[100:200] + {"A": "C", "C": "G", "G": "T", "T": "A"}[letters[200]] + letters[201:400]
    Path("ref.fa").write_bytes(fasta(GENOME | {"version": version}))
    Path("r.fq").write_bytes(fastq([Read("r", version[50:150], "I" * 100)]))
    assert main(["index", "ref.fa", "-p", "p", "-q"]) == 0
    Path("p.alt").write_text(f"@SQ\tSN:{name}\tLN:1\nversion\t0\t{name}\t101\n")

    def records(*words: str) -> tuple[list[str], list[list[str]]]:
        assert main(["mem", *words, "p", "r.fq"]) == 0
        lines = capfd.readouterr().out.splitlines()
        marked = [line for line in lines if line.endswith("\tAH:*")]
        return marked, [line.split("\t") for line in lines if not line.startswith("@")]

    marked, (first, second) = records()
    assert [line.split("\t")[1] for line in marked] == ["SN:version"]
    assert (first[1], first[2], second[1], second[2], second[5]) == ("0", name, "2048", "version", "100M")
    assert any(tag.startswith("pa:f:0.") for tag in first)
    assert any(tag.startswith(f"XA:Z:{name},+") for tag in second)
    marked, (alone,) = records("-j")
    assert (marked, alone[1], alone[2], alone[5]) == ([], "0", "version", "100M")


def test_more_placements_if_one_is_on_an_alt_contig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The default of -h is 5,200; a single number sets both limits."""
    monkeypatch.chdir(tmp_path)
    letters = max(GENOME.values(), key=len)
    other = {"A": "C", "C": "G", "G": "T", "T": "A"}
    versions = {
        f"version{i}": letters[100:place] + other[letters[place]] + letters[place + 1 : 400]
        for i, place in enumerate(range(170, 240, 10))
    }
    Path("ref.fa").write_bytes(fasta(GENOME | versions))
    Path("ref.fa.alt").write_text("".join(f"{name}\n" for name in versions))
    Path("r.fq").write_bytes(fastq([Read("r", letters[150:300], "I" * 150)]))
    assert main(["index", "ref.fa", "-q"]) == 0

    def places(*words: str) -> int:
        assert main(["mem", *words, "ref.fa", "r.fq"]) == 0
        (record,) = [line for line in capfd.readouterr().out.splitlines() if not line.startswith("@")]
        return sum(tag.count(";") for tag in record.split("\t") if tag.startswith("XA:Z:"))

    assert [places(), places("-h", "5"), places("-h", "5,6"), places("-h", "7")] == [7, 0, 0, 7]
    assert places("-j") == 0


def test_an_index_with_the_prefix_of_a_pipeline(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (folder / "genome.amb").read_text() == "an index of readmap: genome.readmap\n"
    (tmp_path / "g.bwt").touch()
    (tmp_path / "g.amb").write_text("6384 1 0\n")  # written by bwa
    assert main(["mem", str(tmp_path / "g"), str(folder / "r1.fq")]) == 1
    told = capfd.readouterr().err
    assert f"{tmp_path}/g is bwa's index, which readmap does not read" in told
    assert f"`readmap index -p {tmp_path}/g REF.fa` builds it" in told
    assert main(["index", "-p", str(tmp_path / "g"), str(folder / "ref.fa"), "-q"]) == 0
    assert (tmp_path / "g.amb").read_text() == "6384 1 0\n"
    assert main(["index", "-p", "x", "-o", "y", str(folder / "ref.fa")]) == 2
    assert "-o: not with -p" in capfd.readouterr().err


def shell(command: str, folder: Path) -> str:
    """Return the standard output of a command of a pipeline, with readmap on PATH as bwa and bwa-mem2."""
    path = f"{ROOT}/scripts/shims:{Path(sys.executable).parent}:{os.environ['PATH']}"
    call = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(call, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("program", ["bwa", "bwa-mem2"])
def test_commands_of_pipelines(folder: Path, program: str) -> None:
    """Commands of nf-core modules, sarek and snakemake wrappers."""
    name = program.replace("-", "")
    shell(f"mkdir -p {name} && {program} index -p {name}/ref ref.fa", folder)
    found = f"INDEX=$(find -L ./{name} -name '*.amb' | sed 's/\\.amb$//')"
    mapped = f'{program} mem -K 100000000 -Y -R "{RG}" -t 2 $INDEX'
    for command in (
        f"{found}; {mapped} r1.fq r2.fq > {name}.sam",
        f"{found}; {mapped} -B 3 r1.fq r2.fq > {name}.tumour.sam",
        f"{found}; {program} mem -p -C -Y -t 2 $INDEX mixed.fq > {name}.umi.sam",
        f"({program} mem -t 2 -R '{RG}' {name}/ref r1.fq r2.fq | cat > {name}.wrapper.sam) 2> {name}.log",
    ):
        shell(command, folder)
    for kind in ("", ".tumour", ".umi", ".wrapper"):
        with pysam.AlignmentFile(str(folder / f"{name}{kind}.sam")) as file:
            assert sum(not record.is_unmapped for record in file) > 200
    if program == "bwa":
        version = shell("bwa 2>&1 | sed -n 's/^Version: //p' || true", folder)
    else:
        version = shell("bwa-mem2 version", folder)
    assert re.fullmatch(r"\d+\.\d+\.\d+-readmap\n", version)


@pytest.mark.skipif(not shutil.which("fgbio"), reason="no fgbio")
def test_molecules_of_umis(folder: Path, tmp_path: Path) -> None:
    """fgbio groups all reads of `mem -p -C -Y`: each fragment is a group if all UMIs differ."""
    lines = (folder / "mixed.fq").read_text().splitlines()
    records = [lines[i : i + 4] for i in range(0, len(lines), 4)]
    names = {record[0].split()[0]: None for record in records}
    umis = {name: "".join("ACGT"[number >> 2 * i & 3] * 2 for i in range(4)) for number, name in enumerate(names)}
    paired = [record for record in records if sum(other[0] == record[0] for other in records) == 2]
    for record in paired:
        record[0] = f"{record[0].split()[0]} RX:Z:{umis[record[0].split()[0]]}"
    (tmp_path / "umi.fq").write_text("".join(f"{line}\n" for record in paired for line in record))
    group = "fgbio GroupReadsByUmi -s Adjacency -e 1 -i umi.sam -o grouped.bam"
    shell(f"bwa mem -p -C -Y -t 2 {folder}/genome umi.fq > umi.sam; {group}", tmp_path)
    with pysam.AlignmentFile(str(tmp_path / "umi.sam")) as file:
        wanted = {read.query_name for read in file if read.is_proper_pair}
    with pysam.AlignmentFile(str(tmp_path / "grouped.bam"), check_sq=False) as file:
        molecules = {read.query_name: read.get_tag("MI") for read in file}
    assert wanted <= set(molecules)
    assert len(wanted) > 50
    assert len({molecules[name] for name in wanted}) == len(wanted)
