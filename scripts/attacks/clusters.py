"""Kill a worker of a Dask cluster at a random moment of a search, and compare the output with an undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pysam

from attacks.command_runs import names_in, run_or_exit
from attacks.jobs import write_inputs
from attacks.outcomes import Outcome, Verdict
from readmap.dask.cluster import LOST_WORKER

#: Each output, and True if it is sorted with duplicates marked.
OUTPUTS = {"out.sam": False, "out.bam": False, "marked.bam": True}

WORKERS, TASKS, MATES = 2, 40, ("r1.fq", "r2.fq")


class Case(NamedTuple):
    """An output, the index of the worker to kill, and the moment as a share of an undisturbed run's time."""

    output: str
    victim: int
    moment: float


class Clusters:
    """The attack; see workers.Attack. All cases of a process share a cluster."""

    batch, limit = 1 << 30, 240.0

    def __init__(self, seed: int, scratch: Path, size: int = 2_000) -> None:
        """size: scales the input files; see write_inputs."""
        self._seed, self._base, self._seconds = seed, scratch / "base", dict[str, float]()
        write_inputs(self._base, size)
        for output, is_marked in OUTPUTS.items():
            options = ["--sort", "--markdup"] if is_marked else []
            run_or_exit(["search", *MATES, "-x", "ref.fa", "-o", output, "-q", "--device", "cpu", *options], self._base)

    def row(self, case_index: int) -> str:
        """Return the table row that counts a case."""
        return f"clusters, {self._case(case_index).output}"

    def keep(self, case_index: int, folder: Path) -> None:
        """Write a description of a case to a folder."""
        (folder / "case").write_text(f"{self._case(case_index)}\n")

    def run(self, case_index: int) -> Outcome:
        """Run a case and return its outcome."""
        case, folder = self._case(case_index), self._base.with_name(f"clusters-{os.getpid()}")
        if case.output not in self._seconds:
            self._search(case.output, folder)  # the workers load the index and the kernels
            started = time.monotonic()
            self._search(case.output, folder)
            self._seconds[case.output] = time.monotonic() - started
        victim = self._workers()[case.victim]
        killer = threading.Timer(case.moment * self._seconds[case.output], os.kill, (victim, signal.SIGKILL))
        killer.start()
        found, left = self._search(case.output, folder)
        killer.join()
        while victim in self._workers():  # until the cluster has noticed
            time.sleep(0.1)
        if left:
            return Outcome(self.row(case_index), Verdict.HALF, f"it left {left} ({case})")
        if found != _contents(self._base / case.output):
            return Outcome(self.row(case_index), Verdict.LOST, f"the records differ ({case})")
        return Outcome(self.row(case_index), Verdict.ACCEPTED)

    def _case(self, case_index: int) -> Case:
        draw = Random(f"{self._seed} clusters {case_index}")
        return Case([*OUTPUTS][case_index % len(OUTPUTS)], draw.randrange(WORKERS), draw.random())

    @cached_property
    def _client(self) -> Any:
        """The client of a cluster that lives as long as this process."""
        import dask
        from distributed import Client, LocalCluster

        dask.config.set({LOST_WORKER: "1 hour"})
        # With two threads a worker finishes one task while it runs the next.
        options: dict[str, Any] = {"threads_per_worker": 2, "processes": True, "dashboard_address": "127.0.0.1:0"}
        client = Client(LocalCluster(n_workers=WORKERS, **options))
        client.wait_for_workers(WORKERS, 60)
        return client

    def _workers(self) -> list[int]:
        """Wait until all workers have started, and return their process ids."""
        self._client.wait_for_workers(WORKERS, 60)
        return [*self._client.run(os.getpid, on_error="ignore").values()]

    def _search(self, output: str, folder: Path) -> tuple[list[str], list[str]]:
        """Search on the cluster; return the header and records of the output, and the names of unexpected files."""
        import readmap.dask
        from readmap.duplicates.marker import DuplicateRules

        folder.mkdir()
        try:
            files, rules = [str(self._base / name) for name in MATES], DuplicateRules() if OUTPUTS[output] else None
            given: dict[str, Any] = {"sort": OUTPUTS[output], "duplicates": rules, "tasks": TASKS, "device": "cpu"}
            readmap.dask.search(self._client, [files], self._base / "ref.fa", folder / output, **given)
            known = {output, f"{output}.bai"} if OUTPUTS[output] else {output}
            return _contents(folder / output), sorted(names_in(folder) - known)
        finally:
            shutil.rmtree(folder)


def _contents(path: Path) -> list[str]:
    """Return the header lines except @PG, and all records as text."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        header = [line for line in str(file.header).splitlines() if not line.startswith("@PG")]
        return [*header, *(record.to_string() for record in file)]
