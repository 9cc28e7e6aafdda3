"""Every command with little memory: it ends in one line that says so, and leaves nothing, or it does its work."""

from __future__ import annotations

import os
import resource
import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from attacks.command_runs import judge, names_in, run, warm_up
from attacks.jobs import JOBS, Job, JobFolders, settle_in
from attacks.outcomes import Outcome, Verdict

LIMITS = {"address space": resource.RLIMIT_AS, "data": resource.RLIMIT_DATA}

#: Which lines of /proc/self/status say how much a process has of each.
TAKEN = {"address space": "VmSize:", "data": "VmData:"}


class Case(NamedTuple):
    """A job, what is limited, and how many bytes of it there are beside those that are taken already."""

    job: Job
    limited: str
    room: int


class Memory:
    """The attack; see workers.Attack."""

    batch, limit = 20, 90.0

    def __init__(self, seed: int, scratch: Path, size: int = 60) -> None:
        """size: of the work, as JobFolders takes it."""
        self._seed, self._scratch = seed, scratch
        warm_up()
        self._place = JobFolders(scratch / "base", size)

    def row(self, number: int) -> str:
        return f"memory, {self._case(number).limited}"

    def run(self, number: int) -> Outcome:
        case, folder = self._case(number), self._scratch / f"memory-{os.getpid()}"
        try:
            self._place.fill(folder, case.job)
            known = {name for name in names_in(folder) if name.split("/")[0] not in case.job.outputs}
            ended = run(case.job.words, folder, patch=partial(_limit, case, folder))
            state = self._place.state(folder, case.job)
            kept = {name for name in names_in(folder) if name.split("/")[0] in (*case.job.keeps, *case.job.outputs)}
            verdict, reason = judge(ended, folder, known | kept)
            if not verdict.is_finding and state not in (("new",) if ended.code == 0 else ("absent", "old")):
                verdict, reason = Verdict.HALF, f"exit code {ended.code}, and the output is {state}"
            if not verdict.is_finding and case.job.old and state == "absent":
                verdict, reason = Verdict.LOST, "neither the old output nor the new one is there"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Outcome(self.row(number), verdict, f"{reason} ({case})" if verdict.is_finding else "")

    def keep(self, number: int, folder: Path) -> None:
        (folder / "case").write_text(f"{self._case(number)}\n")

    def _case(self, number: int) -> Case:
        draw = Random(f"{self._seed} memory {number}")
        # With less, a thread may start whose first Python line finds no memory, and threading waits for it for ever.
        return Case(JOBS[number % len(JOBS)], draw.choice(list(LIMITS)), int(2 ** (22 + 7 * draw.random())))


def _limit(case: Case, folder: Path) -> None:
    """Set the limit in this process."""
    settle_in(folder)
    lines = Path("/proc/self/status").read_text().splitlines()
    taken = next(int(line.split()[1]) << 10 for line in lines if line.startswith(TAKEN[case.limited]))
    resource.setrlimit(LIMITS[case.limited], (taken + case.room, taken + case.room))
