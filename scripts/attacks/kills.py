"""Send signals at random moments of every command: afterwards an output is absent, or the complete old or new one."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from attacks.command_runs import ERROR, FORBIDDEN, PLACE
from attacks.jobs import JOBS, Job, JobAttack, start_job, survivors
from attacks.outcomes import Verdict
from attacks.workers import describe_end

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP)

#: Exit codes of a command that a signal ended, and of a command that had finished before.
CODES = {
    signal.SIGKILL: (-signal.SIGKILL, 0),
    signal.SIGTERM: (-signal.SIGTERM, 0),
    signal.SIGINT: (-signal.SIGINT, 0),
    signal.SIGSTOP: (0,),
}


#: The message of a command that was interrupted after its imports, and cleaned up.
INTERRUPTED = "readmap: interrupted"


class Case(NamedTuple):
    """A job, a signal, and its moment as a share of an undisturbed run's time."""

    job: Job
    signal: signal.Signals
    moment: float


class Kills(JobAttack):
    """The attack."""

    name, batch, limit = "kills", 10, 240.0

    def __init__(self, seed: int, scratch: Path, size: int = 1_000) -> None:
        super().__init__(seed, scratch, size)

    def row(self, case_index: int) -> str:
        case = self._case(case_index)
        return f"kills, {case.signal.name}{', old output' if case.job.old else ''}"

    def _case(self, case_index: int) -> Case:
        draw = Random(f"{self._seed} kills {case_index}")
        return Case(JOBS[case_index % len(JOBS)], draw.choice(SIGNALS), draw.random() * 1.15)

    def _run(self, case: Case, folder: Path) -> tuple[Verdict, str]:
        job = case.job
        process = start_job(job, folder)
        try:
            time.sleep(case.moment * self._job_folders.seconds[job.name])
            process.send_signal(case.signal)
            if case.signal is signal.SIGSTOP:
                time.sleep(0.3)
                process.send_signal(signal.SIGCONT)
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            return Verdict.HUNG, "no end after 60 s"
        finally:
            alive = survivors(process.pid)
            process.wait()
        errors = Path(f"{folder}.errors").read_text(errors="replace")
        state = self._job_folders.state(folder, job)
        if state.startswith("half"):
            return Verdict.HALF, state
        if job.old and state == "absent":
            return Verdict.LOST, "both the old output and the new output are missing"
        if code == 0 and state != "new":
            return Verdict.LOST, f"exit code 0, and the output is {state}"
        if alive:
            return Verdict.CRASHED, f"{len(alive)} processes survive"
        if case.signal is signal.SIGINT and code in (1, -signal.SIGINT) and not PLACE.search(errors):
            code, errors = -signal.SIGINT, ""  # interrupted before readmap was imported
        if code not in CODES[case.signal] or FORBIDDEN.search(errors) or ERROR.search(errors):
            return Verdict.CRASHED, f"{describe_end(code)}: {errors[-500:]!r}"
        if (code == 0 or INTERRUPTED in errors) and (left := self._job_folders.unexpected_files(folder, job)):
            return Verdict.HALF, f"{describe_end(code)}, and it left {left}"
        if reason := self._job_folders.check_next_run(folder, job):
            return (Verdict.HALF if "left" in reason else Verdict.LOST), reason
        return (Verdict.ACCEPTED if code == 0 else Verdict.REFUSED), ""
