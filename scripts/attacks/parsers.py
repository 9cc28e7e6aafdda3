"""Pass mutated inputs of every format to the library's functions: accepted input must give all its contents."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from attacks.outcomes import Outcome, Verdict
from attacks.readers import Invalid
from attacks.targets import TARGETS, Case, Library, Target
from readmap.errors import ReadmapError


class Parsers:
    """The attack; see workers.Attack."""

    batch, limit = 2_000, 20.0

    def __init__(self, seed: int, scratch: Path) -> None:
        self._seed, self._scratch = seed, scratch
        self._library = Library()

    def row(self, case_index: int) -> str:
        return f"parsers, {TARGETS[case_index % len(TARGETS)].name}"

    def run(self, case_index: int) -> Outcome:
        target, case, draw = self._case(case_index)
        folder = self._scratch / f"parsers-{os.getpid()}"
        folder.mkdir(exist_ok=True)
        paths = [str(folder / name) for name in case.files]
        for path, data in zip(paths, case.files.values(), strict=True):
            with open(path, "wb", buffering=0) as file:
                file.write(data)
        row = self.row(case_index)
        try:
            reason = target.judge(self._library, case, paths, draw)
        except ReadmapError as error:
            if not case.altered:
                return Outcome(row, Verdict.LOST, f"a valid input was refused: {error}")
            return _refusal(row, str(error))
        except Invalid as error:
            return Outcome(row, Verdict.LOST, f"accepted: {error}")
        return Outcome(row, Verdict.LOST if reason else Verdict.ACCEPTED, reason)

    def keep(self, case_index: int, folder: Path) -> None:
        for name, data in self._case(case_index)[1].files.items():
            (folder / name).write_bytes(data)

    def _case(self, case_index: int) -> tuple[Target, Case, Random]:
        target, draw = TARGETS[case_index % len(TARGETS)], Random(f"{self._seed} parsers {case_index}")
        return target, target.make(draw), draw


def _refusal(row: str, message: str) -> Outcome:
    """Return REFUSED if the message is neither empty nor an internal error, else CRASHED."""
    is_good = message and "bug in readmap" not in message
    return Outcome(row, Verdict.REFUSED) if is_good else Outcome(row, Verdict.CRASHED, f"the message is {message!r}")
