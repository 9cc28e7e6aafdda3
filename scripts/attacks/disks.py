"""Fill up or fail the disk, or shorten calls: no partial output may remain, and the error names the failing file."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from attacks.command_runs import ERROR, FORBIDDEN, names_in, warm_up
from attacks.jobs import JOBS, Job, JobFolders, start_job, survivors
from attacks.outcomes import Outcome, Verdict
from attacks.workers import describe_end

SHIM = Path(__file__).with_name("faults.c")
ERRORS = {"read": (errno.EIO,), "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT), "fsync": (errno.EIO,)}
PAGE = 4096


class Case(NamedTuple):
    """A job, the kind of fault, the settings of faults.c, and the free bytes of a small disk, if one is mounted."""

    job: Job
    fault: str
    settings: dict[str, str]
    room: int | None = None

    @property
    def must_succeed(self) -> bool:
        """True for short and interrupted calls, which are not errors."""
        return self.fault in ("short", "interrupted")


class Disks:
    """The attack; see workers.Attack."""

    batch, limit = 10, 120.0

    def __init__(self, seed: int, scratch: Path, size: int = 60) -> None:
        """size: scales the input files; see JobFolders."""
        self._seed, self._scratch, self._shim = seed, scratch, scratch / "faults.so"
        compiler = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(self._shim), str(SHIM), "-ldl"]
        subprocess.run(compiler, check=True)
        warm_up()
        self._job_folders = JobFolders(scratch / "base", size)
        self._can_mount = os.geteuid() == 0 and _can_mount(scratch / "mounted")

    def row(self, case_index: int) -> str:
        return f"disks, {self._case(case_index).fault}"

    def run(self, case_index: int) -> Outcome:
        case, folder = self._case(case_index), self._scratch / f"disk-{os.getpid()}"
        with self._disk(case, folder):
            verdict, reason = self._run(case, folder)
        return Outcome(self.row(case_index), verdict, f"{reason} ({case})" if verdict.is_finding else "")

    def keep(self, case_index: int, folder: Path) -> None:
        (folder / "case").write_text(f"{self._case(case_index)}\n")

    def _case(self, case_index: int) -> Case:
        job, draw = JOBS[case_index % len(JOBS)], Random(f"{self._seed} disks {case_index}")
        written = sum(len(data) for output in self._job_folders.expected[job.name].values() for data in output.values())
        kind = draw.choice(("full", "full", "room", "fails", "fails", "short", "interrupted"))
        if kind == "room" and self._can_mount:
            return Case(job, "full tmpfs", {}, draw.randrange(int(1.5 * written) + PAGE))
        if kind in ("full", "room"):
            return Case(job, "full", {"ATTACK_BYTES": str(draw.randrange(int(1.1 * written) + 1))})
        call = draw.choice(("read", "write", "write", "write", "fsync" if kind == "fails" else "write"))
        fault = {"short": "short", "interrupted": str(errno.EINTR)}.get(kind) or str(draw.choice(ERRORS[call]))
        times = draw.choice((0, 1, 1, 1)) if kind == "fails" else draw.choice((1, 3, 0) if kind == "short" else (1, 3))
        settings = {"ATTACK_CALL": call, "ATTACK_FAULT": fault, "ATTACK_TIMES": str(times)}
        settings["ATTACK_AT"] = str(int(2 ** (draw.random() * 6)) - 1)
        return Case(job, f"{call} fails" if kind == "fails" else kind, settings)

    def _run(self, case: Case, folder: Path) -> tuple[Verdict, str]:
        job = case.job
        settings = {"LD_PRELOAD": str(self._shim), "ATTACK_FOLDER": f"{folder}/"} | case.settings
        process = start_job(job, folder, settings if case.settings else None)
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            return Verdict.HUNG, "no end after 60 s"
        finally:
            alive = survivors(process.pid)
            process.wait()
        errors, state = Path(f"{folder}.errors").read_text(errors="replace"), self._job_folders.state(folder, job)
        last = errors.strip().split("\n")[-1]
        if state.startswith("half"):
            return Verdict.HALF, f"{state}, {describe_end(code)}: {last}"
        if alive or FORBIDDEN.search(errors) or code not in (0, 1):
            return Verdict.CRASHED, f"{describe_end(code)}, {len(alive)} processes survive: {errors[-500:]!r}"
        if left := self._job_folders.unexpected_files(folder, job):
            return Verdict.HALF, f"{describe_end(code)}, and it left {left}"
        if code == 0:
            return (Verdict.ACCEPTED, "") if state == "new" else (Verdict.LOST, f"exit code 0, the output is {state}")
        if case.must_succeed:
            return Verdict.LOST, f"a call that is {case.fault} is no error, but the run ended with {last}"
        if state not in ("absent", "old") or (job.old and state != "old"):
            return Verdict.LOST, f"exit code 1, and the output is {state}"
        if not ERROR.fullmatch(last) or not any(name in last for name in self._names(folder, job)):
            return Verdict.CRASHED, f"the message names no file: {last}"
        return Verdict.REFUSED, ""

    def _names(self, folder: Path, job: Job) -> list[str]:
        """Return the names; a message must contain at least one."""
        return [str(folder), *job.outputs, *job.keeps, *names_in(self._job_folders.base), "standard"]

    @contextlib.contextmanager
    def _disk(self, case: Case, folder: Path) -> Iterator[None]:
        """Create the folder with its inputs, on a tmpfs with case.room free bytes if set; remove it afterwards."""
        folder.mkdir()
        if case.room is not None:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "attack", str(folder)], check=True)
        try:
            self._job_folders.fill(folder, case.job)
            if case.room is not None:
                status = os.statvfs(folder)
                size = (status.f_blocks - status.f_bfree) * status.f_frsize + case.room
                subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
            yield
        finally:
            if case.room is not None:
                subprocess.run(["umount", "-l", str(folder)], check=True)
            shutil.rmtree(folder, ignore_errors=True)


def _can_mount(folder: Path) -> bool:
    """Return True if this process may mount a tmpfs."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "attack", str(folder)], capture_output=True).returncode == 0
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)
    return mounted
