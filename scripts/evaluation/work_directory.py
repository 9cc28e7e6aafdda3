"""The work folder: bwa's files and the inputs are made once and kept, the mapper's are made once in every run.

Until a file is whole its name has the number of the process, so that several may work in one folder.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("READMAP_SHARED") or ROOT.parent / "shared").absolute()
REFERENCES = {
    "A10": "{python} {shared}/tools/simulate.py genome --size 10000000 --seed 11 -o {part}",
    "D100": "{python} {shared}/tools/simulate.py genome --size 100000000 --seed 77 --chroms 4 -o {part}",
    "human": "gzip -dc {shared}/data/human/human_21mbp.fa.gz",
    "mg1655": "gzip -dc {shared}/data/ecoli/mg1655.fa.gz",
    "sacCer3": "gzip -dc {shared}/data/yeast/sacCer3.fa.gz",
}
BWA_INDEX = "bwa index {ref}"
BWA = "bwa mem -K 100000000 -t {threads} {options} {ref} {reads}"  # -K: the same pairs at a time for any threads
INDEX = "{python} -m readmap index {ref} -o {index} --force"
SEARCH = "{python} -m readmap search -x {index} {options} {reads} -o {part} --device {device} -t {threads}"


def missing(*programs: str) -> str:
    """A reason to skip, or nothing."""
    absent = [program for program in programs if not shutil.which(program)]
    return f"{' and '.join(absent)} not installed" if absent else ""


def fill_in(template: str, values: dict[str, Any]) -> list[str]:
    """A command's words; a word that is the name of a list becomes the list's words."""
    words = list[str]()
    for word in shlex.split(template):
        value = values.get(word[1:-1]) if word.startswith("{") and word.endswith("}") else None
        words += [str(one) for one in value] if isinstance(value, list) else [word.format(**values)]
    return words


class WorkDirectory:
    def __init__(self, options: argparse.Namespace) -> None:
        self.folder: Path = options.work.absolute()
        self.mapper: str = options.mapper
        self.seeds: int = options.seeds
        self.values: dict[str, Any] = {"python": sys.executable, "shared": SHARED, "options": []} | vars(options)
        self.index = "" if options.mapper_command else INDEX
        self.search: str = options.mapper_command or SEARCH
        self.made: set[Path] = set()
        self.folder.mkdir(parents=True, exist_ok=True)

    def part(self, name: str) -> Path:
        return self.folder / f"part.{os.getpid()}.{name}"

    def attempt(
        self, name: str, template: str, keep: bool = True, codes: Collection[int] = (0,), **values: Any
    ) -> bool:
        """Whether a command writes this file of the folder, to {part} or, without that word, to its standard output."""
        target, part, log = self.folder / name, self.part(name), self.folder / f"{name}.log"
        if target in self.made or (keep and target.exists()):
            return True
        command = fill_in(template, self.values | values | {"part": part})
        print(shlex.join(command), file=sys.stderr)
        with open(log, "wb") as errors, open(os.devnull if "{part}" in template else part, "wb") as output:
            code = subprocess.run(command, stdout=output, stderr=errors).returncode
        if code in codes:
            self.made.add(part.replace(target))
        return code in codes

    def make(self, name: str, template: str, keep: bool = True, codes: Collection[int] = (0,), **values: Any) -> Path:
        """The path of the file; the script ends where its command fails."""
        if not self.attempt(name, template, keep, codes, **values):
            sys.exit(f"evaluate: {name} could not be made; {self.folder / name}.log tells why")
        return self.folder / name

    def reference(self, name: str) -> Path:
        return self.make(f"{name}.fa", REFERENCES[name])

    def align(self, reference: str, stem: str, reads: Sequence[Path], options: Sequence[str] = ()) -> dict[str, Path]:
        """The SAM files of bwa and of the mapper, by name in that order."""
        ref = self.reference(reference)
        values: dict[str, Any] = {"ref": ref, "index": self.folder / f"{reference}.fa.readmap", "options": [*options]}
        values |= {"reads": [*reads], "r1": reads[0], "r2": reads[-1]}
        self.make(f"{reference}.fa.bwa-index", BWA_INDEX, **values)
        bwa = self.make(f"{stem}.bwa.sam", BWA, **values)
        if self.index:
            self.make(f"{reference}.fa.readmap-index", self.index, keep=False, **values)
        return {"bwa": bwa, self.mapper: self.make(f"{stem}.{self.mapper}.sam", self.search, keep=False, **values)}
