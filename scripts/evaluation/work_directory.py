"""The work folder: the peers' files and the inputs are made once and kept, the mapper's are made once in every run.

Until a file is whole its name has the number of the process, so that several may work in one folder.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from evaluation import libraries

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("READMAP_SHARED") or ROOT.parent / "shared").absolute()
FAMILIES = "{python} {shared}/tools/families.py --seed 3 -o {part}"
# Followed by shell commands that move the files of the folder, a closing quote, the output path, and options.
HUMAN_SCALE = 'sh -c \'"{python}" "{shared}/tools/human_scale.py" "$0.folder" "$@" && cd "$0.folder" && '
LARGE_GENOME = f'{HUMAN_SCALE}mv ref.fa "$0" && rm -r "$0.folder"\' {{part}} --reads 0 --size'
# A command, or a function followed by the references that are its first arguments; its last is the output path.
REFERENCES: dict[str, str | tuple[Callable[..., None], *tuple[str, ...]]] = {
    "A10": "{python} {shared}/tools/simulate.py genome --size 10000000 --seed 11 -o {part}",
    "D100": "{python} {shared}/tools/simulate.py genome --size 100000000 --seed 77 --chroms 4 -o {part}",
    "human": "gzip -dc {shared}/data/human/human_21mbp.fa.gz",
    "mg1655": "gzip -dc {shared}/data/ecoli/mg1655.fa.gz",
    "sacCer3": "gzip -dc {shared}/data/yeast/sacCer3.fa.gz",
    "families0": f"{FAMILIES} --divergence 0",
    "families0.5": f"{FAMILIES} --divergence 0.005",
    "families2": f"{FAMILIES} --divergence 0.02",
    "origin": (libraries.around_origin, "mg1655"),
    "guests": (libraries.with_guest, "sacCer3", "mg1655"),
    "alternatives": (libraries.with_alternatives, "human"),
    "H400": f"{LARGE_GENOME} 4e8",
    "H3100": f"{LARGE_GENOME} 3.1e9",
}
BWA_INDEX = "bwa index {ref}"
BWA = "bwa mem -K 100000000 -t {threads} {options} {ref} {reads}"  # -K: the same batches for any number of threads
MINIBWA_INDEX = "{minibwa} index -t {threads} {ref} {ref}.minibwa"
MINIBWA = "{minibwa} map -t {threads} {options} {ref}.minibwa {reads}"
INDEX = "{python} -m readmap index {ref} -o {index} --force"
SEARCH = "{python} -m readmap search -x {index} {options} {reads} -o {part} --device {device} -t {threads}"


def missing(*programs: str) -> str:
    """Return a reason to skip, or ""."""
    absent = [program for program in programs if not shutil.which(program)]
    return f"{' and '.join(absent)} not installed" if absent else ""


def fill_in(template: str, values: dict[str, Any]) -> list[str]:
    """Return the words of a command; a placeholder of a list becomes a word for each element."""
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
        # The commands that index and map, by name.
        self.peers = {"bwa": (BWA_INDEX, BWA)} | ({"minibwa": (MINIBWA_INDEX, MINIBWA)} if options.minibwa else {})
        self.made: set[Path] = set()
        self.folder.mkdir(parents=True, exist_ok=True)

    def part(self, name: str) -> Path:
        return self.folder / f"part.{os.getpid()}.{name}"

    def attempt(
        self, name: str, template: str, keep: bool = True, codes: Collection[int] = (0,), **values: Any
    ) -> bool:
        """Write a file by a command, to {part} or, without that word, from standard output; return success."""
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
        """Write a file by a command unless it exists, and return its path; exit if the command fails."""
        if not self.attempt(name, template, keep, codes, **values):
            sys.exit(f"evaluate: {name} could not be made; see {self.folder / name}.log")
        return self.folder / name

    def write(self, names: Sequence[str], write: Callable[[list[Path]], None]) -> list[Path]:
        """Write files by a function unless they all exist, and return their paths."""
        targets, parts = [self.folder / name for name in names], [self.part(name) for name in names]
        if not all(path.exists() for path in targets):
            write(parts)
            for part, path in zip(parts, targets, strict=True):
                part.replace(path)
        return targets

    def reference(self, name: str) -> Path:
        made = REFERENCES[name]
        if isinstance(made, str):
            return self.make(f"{name}.fa", made)
        function, *sources = made
        return self.write([f"{name}.fa"], lambda parts: function(*map(self.reference, sources), *parts))[0]

    def align(
        self,
        reference: str,
        stem: str,
        reads: Sequence[Path],
        options: Sequence[str] = (),
        peers: Sequence[str] = ("bwa",),
    ) -> dict[str, Path]:
        """Return the SAM files of the peers and then of the mapper, by name."""
        ref = self.reference(reference)
        values: dict[str, Any] = {"ref": ref, "index": self.folder / f"{reference}.fa.readmap", "options": [*options]}
        values |= {"reads": [*reads], "r1": reads[0], "r2": reads[-1]}
        sams = {}
        for peer in peers:
            index, search = self.peers[peer]
            self.make(f"{reference}.fa.{peer}-index", index, **values)
            sams[peer] = self.make(f"{stem}.{peer}.sam", search, **values)
        if self.index:
            self.make(f"{reference}.fa.readmap-index", self.index, keep=False, **values)
        return sams | {self.mapper: self.make(f"{stem}.{self.mapper}.sam", self.search, keep=False, **values)}
