"""Run every command with limited memory: it succeeds, or it exits with a message of one line and leaves no files."""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from attacks.command_runs import judge, names_in, run
from attacks.jobs import JOBS, Job, JobAttack, set_environment
from attacks.outcomes import Verdict

LIMITS = {"address space": resource.RLIMIT_AS, "data": resource.RLIMIT_DATA}

#: The line of /proc/self/status with the current size of each.
TAKEN = {"address space": "VmSize:", "data": "VmData:"}


class Case(NamedTuple):
    """A job, the limited resource, and the bytes available in addition to the current size."""

    job: Job
    limited: str
    room: int


class Memory(JobAttack):
    """The attack."""

    name, batch, limit = "memory", 20, 90.0

    def __init__(self, seed: int, scratch: Path, size: int = 60) -> None:
        super().__init__(seed, scratch, size)

    def row(self, case_index: int) -> str:
        return f"memory, {self._case(case_index).limited}"

    def _run(self, case: Case, folder: Path) -> tuple[Verdict, str]:
        known = {name for name in names_in(folder) if name.split("/")[0] not in case.job.outputs}
        ended = run(case.job.words, folder, patch=partial(_limit, case, folder))
        state = self._job_folders.state(folder, case.job)
        kept = {name for name in names_in(folder) if name.split("/")[0] in (*case.job.keeps, *case.job.outputs)}
        verdict, reason = judge(ended, folder, known | kept)
        if not verdict.is_finding and state not in (("new",) if ended.code == 0 else ("absent", "old")):
            return Verdict.HALF, f"exit code {ended.code}, and the output is {state}"
        if not verdict.is_finding and case.job.old and state == "absent":
            return Verdict.LOST, "both the old output and the new output are missing"
        return verdict, reason

    def _case(self, case_index: int) -> Case:
        draw = Random(f"{self._seed} memory {case_index}")
        return Case(JOBS[case_index % len(JOBS)], draw.choice(list(LIMITS)), int(2 ** (22 + 7 * draw.random())))


def _limit(case: Case, folder: Path) -> None:
    """Set the limit in this process."""
    set_environment(folder)
    lines = Path("/proc/self/status").read_text().splitlines()
    taken = next(int(line.split()[1]) << 10 for line in lines if line.startswith(TAKEN[case.limited]))
    resource.setrlimit(LIMITS[case.limited], (taken + case.room, taken + case.room))
