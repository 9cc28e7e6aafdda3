"""A worker of a Dask cluster killed at a random moment of a search: the output is that of one undisturbed run."""

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

from attacks.command_runs import must, names_in
from attacks.jobs import write_inputs
from attacks.outcomes import Outcome, Verdict
from readmap.dask.cluster import LOST_WORKER

#: What is written, and whether sorted with its duplicates marked.
OUTPUTS = {"out.sam": False, "out.bam": False, "marked.bam": True}

WORKERS, TASKS, MATES = 2, 40, ("r1.fq", "r2.fq")


class Case(NamedTuple):
    """An output, which worker is killed, and the share of an undisturbed run's time after which that is."""

    output: str
    victim: int
    moment: float


class Clusters:
    """The attack; see workers.Attack. One cluster is there for all cases of a process."""

    batch, limit = 1 << 30, 240.0

    def __init__(self, seed: int, scratch: Path, size: int = 2_000) -> None:
        """size: of the work, as write_inputs takes it."""
        self._seed, self._base, self._seconds = seed, scratch / "base", dict[str, float]()
        write_inputs(self._base, size)
        for output, is_marked in OUTPUTS.items():
            options = ["--sort", "--markdup"] if is_marked else []
            must(["search", *MATES, "-x", "ref.fa", "-o", output, "-q", "--device", "cpu", *options], self._base)

    def row(self, number: int) -> str:
        """Which row of the table counts a case."""
        return f"clusters, {self._case(number).output}"

    def keep(self, number: int, folder: Path) -> None:
        """Write what a case is made of into a folder."""
        (folder / "case").write_text(f"{self._case(number)}\n")

    def run(self, number: int) -> Outcome:
        """How a case ends."""
        case, folder = self._case(number), self._base.with_name(f"clusters-{os.getpid()}")
        if case.output not in self._seconds:
            self._search(case.output, folder)  # the workers load what they need
            began = time.monotonic()
            self._search(case.output, folder)
            self._seconds[case.output] = time.monotonic() - began
        victim = self._workers()[case.victim]
        killer = threading.Timer(case.moment * self._seconds[case.output], os.kill, (victim, signal.SIGKILL))
        killer.start()
        found, left = self._search(case.output, folder)
        killer.join()
        while victim in self._workers():  # until the cluster knows
            time.sleep(0.1)
        if left:
            return Outcome(self.row(number), Verdict.HALF, f"it left {left} ({case})")
        if found != _contents(self._base / case.output):
            return Outcome(self.row(number), Verdict.LOST, f"the records are others ({case})")
        return Outcome(self.row(number), Verdict.ACCEPTED)

    def _case(self, number: int) -> Case:
        draw = Random(f"{self._seed} clusters {number}")
        return Case([*OUTPUTS][number % len(OUTPUTS)], draw.randrange(WORKERS), draw.random())

    @cached_property
    def _client(self) -> Any:
        """Of a cluster of this process, which ends with it."""
        import dask
        from distributed import Client, LocalCluster

        dask.config.set({LOST_WORKER: "1 hour"})
        # With two threads a worker ends one task while it has begun the next.
        options: dict[str, Any] = {"threads_per_worker": 2, "processes": True, "dashboard_address": "127.0.0.1:0"}
        client = Client(LocalCluster(n_workers=WORKERS, **options))
        client.wait_for_workers(WORKERS, 60)
        return client

    def _workers(self) -> list[int]:
        """The processes of all workers, once they are there."""
        self._client.wait_for_workers(WORKERS, 60)
        return [*self._client.run(os.getpid, on_error="ignore").values()]

    def _search(self, output: str, folder: Path) -> tuple[list[str], list[str]]:
        """The header and the records that a search by the cluster writes, and what else it leaves."""
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
    """The header but for readmap's own line, and all records."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        header = [line for line in str(file.header).splitlines() if not line.startswith("@PG")]
        return [*header, *(record.to_string() for record in file)]
