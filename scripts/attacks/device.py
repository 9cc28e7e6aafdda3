"""Run a GPU's kernels under each tool of compute-sanitizer, on valid input and on folders with random contents."""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from benchmarks.common import ROOT

from attacks.command_runs import judge, names_in
from attacks.contents import alter
from attacks.device_runs import BEGUN, DAMAGED, MAKING, VALID, Run, write_inputs
from attacks.outcomes import Outcome, Verdict
from attacks.workers import Ended, describe_end, forked
from readmap.backend import cuda_available
from readmap.backend.compilation.signatures import kernel_signatures
from readmap.backend.compilation.sources import modules

SANITIZER, TOOLS = "compute-sanitizer", ("memcheck", "racecheck", "initcheck", "synccheck")

#: Exit code of the sanitizer if it reports an error.
REPORTED = 86

#: A command that is refused, or that ends before it uses the device, is not an error.
OPTIONS = ["--error-exitcode", str(REPORTED), "--check-exit-code", "no", "--require-cuda-init", "no"]

#: The last line of a log without reports; the first report; the kernel of a report.
CLEAN = re.compile(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards displayed")
REPORT = re.compile(r"^========= (?!COMPUTE-SANITIZER)(\S.*)$", re.MULTILINE)
PLACE = re.compile(r"^=========\s+at (.+)$", re.MULTILINE)

#: Modules that commands run only on the host, for any device.
ON_HOST = {
    "bam/file_index",
    "bam/libdeflate_blocks",
    "bam/merging",
    "index/codes",
    "index/fasta",
    "reads/bam_records",
    "reads/bgzf_libdeflate",
    "reads/parallel_gzip",
    "reads/record_scan",
}


class Case(NamedTuple):
    """A run under a tool."""

    tool: str
    run: Run


#: Every run under every tool. Further cases repeat the runs on damaged folders, each with other contents.
CASES = tuple(Case(tool, run) for run in (*VALID, *DAMAGED) for tool in TOOLS)
AGAIN = tuple(case for case in CASES if case.run.folder)


class Device:
    """The attack; see workers.Attack."""

    batch, limit = 1, 300.0

    def __init__(self, seed: int, scratch: Path, device: str = "cuda") -> None:
        if device != "cpu" and (reason := cuda_available()):
            sys.exit(f"attack: {reason}")
        if not shutil.which(SANITIZER):
            sys.exit(f"attack: {SANITIZER} is not on the PATH: it comes with CUDA's toolkit")
        self._seed, self._scratch, self._device = seed, scratch, device
        self._base, self._records = scratch / "base", scratch / "launched"
        for folder in (self._base, self._records):
            folder.mkdir()
        write_inputs(self._base)
        # Searches with both sizes of suffixes compile all kernels that cases use.
        made = (*MAKING, *(run for run in VALID if run.words[1] == "r1.fq" and run.setting == "usual"))
        for run in made:
            ended = forked(partial(self._execute, [], run, scratch / "record"), self._base, 600.0)
            if ended.code:
                sys.exit(f"attack: readmap {' '.join(run.words)}: {describe_end(ended.code)}: {ended.errors}")

    def row(self, case_index: int) -> str:
        case = self._case(case_index)
        return f"device, {case.tool}, {'random contents' if case.run.folder else 'valid'}"

    def run(self, case_index: int) -> Outcome:
        case, folder = self._case(case_index), self._scratch / f"device-{case_index}"
        log, record = self._scratch / f"device-{case_index}.log", self._records / str(case_index)
        tool = [SANITIZER, "--tool", case.tool, "--log-file", str(log), *OPTIONS]
        try:
            self._make(case_index, folder)
            before = names_in(folder)
            ended = forked(partial(self._execute, tool, case.run, record), folder, self.limit - 30)
            verdict, reason = _judge(ended, folder, before, log, record)
            if verdict is Verdict.REFUSED and not case.run.folder:
                verdict = Verdict.LOST
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        reason = f"{reason} ({' '.join(case.run.words)})" if verdict.is_finding else ""
        return Outcome(self.row(case_index), verdict, reason)

    def keep(self, case_index: int, folder: Path) -> None:
        self._make(case_index, folder)
        (folder / "words").write_text("\n".join(self._case(case_index).run.words) + "\n")
        log = self._scratch / f"device-{case_index}.log"
        if log.exists():
            shutil.copy(log, folder / "log")

    def coverage(self) -> str:
        """Describe which kernels no case has launched."""
        launched = {line for file in self._records.iterdir() for line in file.read_text().splitlines()}
        known = [module for module in modules(for_gpu=self._device != "cpu") if module not in ON_HOST]
        names = [f"{module} {name}" for module in known for name in kernel_signatures(module)]
        missing = [name for name in names if name not in launched]
        summary = f"{len(names) - len(missing)} of {len(names)} kernels launched on {self._device}"
        return (
            f"{summary}; on the host alone: {', '.join(sorted(ON_HOST))}; not launched: {', '.join(missing) or 'none'}"
        )

    def _case(self, case_index: int) -> Case:
        return CASES[case_index] if case_index < len(CASES) else AGAIN[(case_index - len(CASES)) % len(AGAIN)]

    def _make(self, case_index: int, folder: Path) -> None:
        """Copy the base files, and alter the folder that the case reads."""
        shutil.copytree(self._base, folder, dirs_exist_ok=True)
        if name := self._case(case_index).run.folder:
            alter(np.random.default_rng([self._seed, case_index]), folder / name)

    def _execute(self, tool: list[str], run: Run, record: Path) -> NoReturn:
        """Replace this process by the run under the tool."""
        paths = f"{ROOT / 'scripts'}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"
        command = [*tool, sys.executable, "-m", "attacks.device_runs", str(record), self._device, run.setting]
        os.execvpe(command[0], [*command, *run.words], os.environ | {"PYTHONPATH": paths})


def _judge(ended: Ended, folder: Path, before: set[str], log: Path, record: Path) -> tuple[Verdict, str]:
    """Return the verdict on a run under a tool: clean if the tool reports no error in the kernels launched."""
    report = log.read_text(errors="replace") if log.exists() else ""
    is_clean = bool(CLEAN.search(report)) or not record.exists()
    if ended.code is None or (ended.code != REPORTED and is_clean):
        # A comparison that is refused at the end leaves its checkpoint.
        return judge(ended, folder, before | {name for name in names_in(folder) if name.startswith(f"{BEGUN}/")})
    what, where = (found.search(report) for found in (REPORT, PLACE))
    last = ended.errors.strip().split("\n")[-1]
    reason = f"{what[1]}{f' at {where[1]}' if where else ''}" if what else f"no report of the tool; {last}"
    return Verdict.CRASHED, f"{describe_end(ended.code)}: {reason}"
