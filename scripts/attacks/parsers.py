"""Mutated inputs of every format through the library's own entry points: what is accepted has to be what is in it."""

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

    def row(self, number: int) -> str:
        return f"parsers, {TARGETS[number % len(TARGETS)].name}"

    def run(self, number: int) -> Outcome:
        target, case, draw = self._case(number)
        folder = self._scratch / f"parsers-{os.getpid()}"
        folder.mkdir(exist_ok=True)
        paths = [str(folder / name) for name in case.files]
        for path, data in zip(paths, case.files.values(), strict=True):
            with open(path, "wb", buffering=0) as file:
                file.write(data)
        row = self.row(number)
        try:
            reason = target.judge(self._library, case, paths, draw)
        except ReadmapError as error:
            if not case.altered:
                return Outcome(row, Verdict.LOST, f"a valid input was refused: {error}")
            return _refusal(row, str(error))
        except Invalid as error:
            return Outcome(row, Verdict.LOST, f"let in: {error}")
        return Outcome(row, Verdict.LOST if reason else Verdict.ACCEPTED, reason)

    def keep(self, number: int, folder: Path) -> None:
        for name, data in self._case(number)[1].files.items():
            (folder / name).write_bytes(data)

    def _case(self, number: int) -> tuple[Target, Case, Random]:
        target, draw = TARGETS[number % len(TARGETS)], Random(f"{self._seed} parsers {number}")
        return target, target.make(draw), draw


def _refusal(row: str, message: str) -> Outcome:
    """A refusal says something, and is no contradiction of readmap's."""
    is_good = message and "bug of readmap" not in message
    return Outcome(row, Verdict.REFUSED) if is_good else Outcome(row, Verdict.CRASHED, f"the message is {message!r}")
