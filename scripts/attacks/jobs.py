"""Commands run as separate processes with their inputs and outputs, for attacks that kill them or fail their disks."""

from __future__ import annotations

import abc
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pysam
from benchmarks.common import ROOT

from attacks import inputs, readers
from attacks.command_runs import contents, names_in, run, run_or_exit, warm_up
from attacks.outcomes import Outcome, Verdict

READMAP = [sys.executable, "-m", "readmap"]
CHECKPOINT, OLD = "kept", b"old"


@dataclass(frozen=True)
class Job:
    """A command and the names of its outputs in its folder.

    old: other outputs have these names before. keeps: files that the command may leave if it fails.
    """

    name: str
    words: list[str]
    outputs: list[str]
    old: bool = False
    keeps: list[str] = field(default_factory=list)


def _search(ending: str, *options: str) -> Job:
    more = [f"out{ending}.{'bai' if ending == '.bam' else 'crai'}"] if "--sort" in options else []
    more += ["no.fq"] if "--unmapped" in options else []
    words = ["search", "r1.fq", "r2.fq", "-x", "ref.fa", "-o", f"out{ending}", *options]
    return Job(f"search {ending} {' '.join(options)}".strip(), words, [f"out{ending}", *more], old="-Y" in options)


JOBS = (
    Job("index", ["index", "ref.fa", "-o", "new.readmap"], ["new.readmap"]),
    Job("index --force", ["index", "ref.fa", "-o", "new.readmap", "--force"], ["new.readmap"], old=True),
    Job("index --database", ["index", "--database", "proteins.fa", "-o", "new.readmapdb"], ["new.readmapdb"]),
    Job(
        "index --database --force",
        ["index", "--database", "proteins.fa", "-o", "new.readmapdb", "--force"],
        ["new.readmapdb"],
        old=True,
    ),
    _search(".sam"),
    _search(".sam", "-Y"),
    _search(".bam", "--unmapped", "no.fq"),
    _search(".cram"),
    _search(".bam", "--sort"),
    _search(".cram", "--sort", "-Y"),
    Job(
        "search --lane --sort",
        [
            *("search", "--lane", r"r1.fq,,@RG\tID:a\tSM:s", "--lane", r"r2.fq,,@RG\tID:b\tSM:s", "-x", "ref.fa"),
            *("-o", "out.bam", "--sort", "--sort-memory", "9K", "--batch-reads", "20"),
        ],
        ["out.bam", "out.bam.bai"],
    ),
    Job(
        "search --sort --markdup",
        [
            *("search", "r1.fq", "r2.fq", "-x", "ref.fa", "-o", "out.bam", "--sort", "--markdup", "--metrics", "m.txt"),
            *("--sort-memory", "9K", "--batch-reads", "20", "--report", "out.html"),
        ],
        ["out.bam", "out.bam.bai", "m.txt", "out.html"],
    ),
    Job(
        "markdup",
        ["markdup", "reads.bam", "-o", "out.bam", "--report", "out.html"],
        ["out.bam", "out.bam.bai", "out.html"],
    ),
    Job(
        "search BAM --collate",
        ["search", "reads.bam", "-x", "ref.fa", "-o", "out.sam", "--collate"],
        ["out.sam"],
    ),
    Job(
        "compare --checkpoint",
        ["compare", "one.fa", "other.fa", "-o", "out.tsv", "--checkpoint", CHECKPOINT, "--no-pruning"],
        ["out.tsv"],
        keeps=[CHECKPOINT],
    ),
    Job("scan", ["scan", "query.fa", "proteins.fa.readmapdb", "-o", "hits.tsv"], ["hits.tsv"]),
)

Contents = dict[str, dict[str, bytes]]


def output_contents(path: Path) -> dict[str, bytes]:
    """Return the contents of an output; for CRAM its records, since htslib may compress them to different bytes."""
    if path.suffix not in (".cram", ".crai") or not path.exists() or path.read_bytes() == OLD:
        return contents(path)
    if path.suffix == ".crai":
        return {"lines": b"%d" % readers.inflated(path.read_bytes()).count(b"\n")}
    try:
        text = pysam.view("-h", "--no-PG", "-T", str(path.with_name("ref.fa")), str(path))
    except pysam.SamtoolsError as error:
        text = f"not CRAM: {error}"
    return {"records": text.encode(), "end": path.read_bytes()[-38:]}


class JobFolders:
    """The input files, and the outputs of undisturbed runs.

    Attributes:
        base: the folder of the inputs. expected: the contents of each job's outputs, by the job's name. before: the old
            outputs, if the job replaces them. seconds: the duration of each job in a process of its own.
    """

    def __init__(self, base: Path, size: int) -> None:
        """size: scales the inputs; a job takes about `size` milliseconds."""
        self.base, self.expected, self.seconds = base, dict[str, Contents](), dict[str, float]()
        self.before: dict[str, Contents] = {}
        write_inputs(base, size)
        started = time.monotonic()
        subprocess.run([*READMAP, "info", "ref.fa", "-q"], cwd=base, env=environment(base), check=True)
        starting = time.monotonic() - started
        for job in JOBS:
            folder = base.with_name("undisturbed")
            self.fill(folder, job)
            self.before[job.name] = {name: output_contents(folder / name) for name in job.outputs} if job.old else {}
            started = time.monotonic()
            run_or_exit(job.words, folder, partial(set_environment, folder))
            self.seconds[job.name] = starting + time.monotonic() - started
            self.expected[job.name] = {name: output_contents(folder / name) for name in job.outputs}
            shutil.rmtree(folder)

    def fill(self, folder: Path, job: Job) -> None:
        """Copy the inputs to `folder`, and old outputs if the job replaces them."""
        shutil.copytree(self.base, folder, dirs_exist_ok=True)
        (folder / "tmp").mkdir()
        for name in job.outputs if job.old else ():
            source = {".readmap": "old.readmap", ".readmapdb": "old.readmapdb"}.get(os.path.splitext(name)[1])
            if source:
                shutil.copytree(folder / source, folder / name)
            else:
                (folder / name).write_bytes(OLD)

    def state(self, folder: Path, job: Job) -> str:
        """Return "absent", "old" or "new" if all outputs are in that state, else a description of the fault."""
        states = {}
        for name in job.outputs:
            found = output_contents(folder / name)
            values = {"new": self.expected[job.name][name], "old": self.before[job.name].get(name), "absent": {}}
            states[name] = next((word for word, value in values.items() if value == found), "half")
        if len(set(states.values())) > 1 or "half" in states.values():
            return f"half: {states}"
        return next(iter(states.values()))

    def check_next_run(self, folder: Path, job: Job) -> str:
        """Run the job again, undisturbed; return a description of what is wrong afterwards, or ""."""
        words = [*job.words, "--force"] if job.words[0] == "index" and not job.old else job.words
        ended = run(words, folder, patch=partial(set_environment, folder))
        state = self.state(folder, job)
        if ended.code or state != "new":
            return f"the next run: exit code {ended.code}, the output is {state}: {ended.errors[-300:]}"
        left = self.unexpected_files(folder, job)
        return f"the next run left {left}" if left else ""

    def unexpected_files(self, folder: Path, job: Job) -> list[str]:
        """Return the names in a folder that are neither inputs, outputs, nor files that the job may leave."""
        known = [*names_in(self.base), "tmp"]
        roots = (*job.outputs, *job.keeps)
        found = [name for name in sorted(names_in(folder)) if name not in known]
        return [name for name in found if name.split("/")[0] not in roots]


class JobAttack(abc.ABC):
    """An attack on jobs; see workers.Attack. A case has a job and what happens to it. name: prefix of its folders."""

    name: str

    def __init__(self, seed: int, scratch: Path, size: int) -> None:
        """size: scales the input files; see JobFolders."""
        self._seed, self._scratch = seed, scratch
        warm_up()
        self._job_folders = JobFolders(scratch / "base", size)

    @abc.abstractmethod
    def row(self, case_index: int) -> str:
        """Return the table row that counts a case."""

    @abc.abstractmethod
    def _case(self, case_index: int) -> Any:
        """Return a case, which has the attribute `job`."""

    @abc.abstractmethod
    def _run(self, case: Any, folder: Path) -> tuple[Verdict, str]:
        """Run a case in a folder with its inputs; return the verdict and a reason."""

    def run(self, case_index: int) -> Outcome:
        """Run a case and return its outcome."""
        case, folder = self._case(case_index), self._scratch / f"{self.name}-{os.getpid()}"
        try:
            self._job_folders.fill(folder, case.job)
            verdict, reason = self._run(case, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Outcome(self.row(case_index), verdict, f"{reason} ({case})" if verdict.is_finding else "")

    def keep(self, case_index: int, folder: Path) -> None:
        """Write a description of a case to a folder."""
        (folder / "case").write_text(f"{self._case(case_index)}\n")


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a command whose temporary files go to tmp/ in its folder."""
    own = {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", "TMPDIR": str(folder / "tmp"), "COLUMNS": "200"}
    return os.environ | own | dict(more or {})


def set_environment(folder: Path) -> None:
    """Set that environment in this process, a child."""
    os.environ |= environment(folder)
    tempfile.tempdir = None


def start_job(job: Job, folder: Path, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the job in a session of its own; its messages go to the file `folder`.errors."""
    with open(f"{folder}.errors", "wb") as errors:
        return subprocess.Popen(
            [*READMAP, *job.words],
            cwd=folder,
            env=environment(folder, more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )


def survivors(session: int, seconds: float = 2.0) -> list[int]:
    """Wait up to `seconds` for the processes of a session to end; kill and return the process ids that remain."""
    ends = time.monotonic() + seconds
    while (found := _members(session)) and time.monotonic() < ends:
        time.sleep(0.02)
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return found


def _members(session: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            state, _, _, own = Path(f"/proc/{int(name)}/stat").read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(name))
    return found


def write_inputs(base: Path, size: int) -> None:
    """Write the inputs, indexes of them, and old indexes that jobs replace."""
    base.mkdir(parents=True)
    draw = Random("jobs")
    contig = inputs.letters(draw, 2_000 + 30 * size)
    reads: dict[str, list[bytes]] = {"r1.fq": [], "r2.fq": []}
    for index in range(20 + 2 * size):
        start = draw.randrange(len(contig) - 400)
        ends = contig[start : start + 100], contig[start + 200 : start + 300].translate(inputs.COMPLEMENT)[::-1]
        ends = ends if index % 50 else (inputs.letters(draw, 100), inputs.letters(draw, 100))
        for records, bases in zip(reads.values(), ends, strict=True):
            records.append(b"@r%d\n%b\n+\n%b\n" % (index, bases, b"I" * 100))
    proteins = {f"p{i}": inputs.letters(draw, 300, inputs.PROTEIN) for i in range(10 + size)}
    other = contig[:300] + inputs.letters(draw, 30) + contig[320:]
    made = {name: b"".join(records) for name, records in reads.items()}
    made |= {"ref.fa": b">one\n%b\n" % contig, "old.fa": b">old\n%b\n" % contig[:1500]}
    made |= {
        "proteins.fa": inputs.fasta(draw, proteins),
        "old.faa": b">old\nMKV\n",
        "query.fa": b">q\n" + proteins["p3"],
    }
    made |= {
        "one.fa": b">one\n%b\n" % contig[: 20 * size + 900],
        "other.fa": b">other\n%b\n" % other[: 20 * size + 900],
    }
    for name, data in made.items():
        (base / name).write_bytes(data)
    pysam.faidx(str(base / "ref.fa"))
    pysam.samtools.fqimport("-1", str(base / "r1.fq"), "-2", str(base / "r2.fq"), "-o", str(base / "reads.bam"))
    run_or_exit(["index", "ref.fa", "-q"], base)
    run_or_exit(["index", "--database", "proteins.fa", "-q"], base)
    run_or_exit(["index", "old.fa", "-q"], base)
    run_or_exit(["index", "--database", "old.faa", "-o", "old.readmapdb", "-q"], base)
    (base / "old.fa.readmap").rename(base / "old.readmap")
