"""What all tasks of a distributed search need, as one value, and the folders that tasks fill."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from readmap.bam.codecs import COMPRESSED_ENDINGS
from readmap.duplicates.marker import DuplicateRules
from readmap.errors import UsageError
from readmap.formats.atomic_files import temporary_folder
from readmap.formats.bgzf import LEVEL
from readmap.formats.sam import PROGRAM, ReadGroupInfo, program_name, read_groups
from readmap.index.index import Index
from readmap.run.config import SearchConfig
from readmap.run.file_checks import InputFiles

#: The names of a shard's outputs: its records, and its unmapped reads.
RECORDS, UNMAPPED = "records", "unmapped"
#: The file of a task's result in its folder.
RESULT = "result"

Made = TypeVar("Made")


@dataclass(frozen=True)
class Job:
    """A distributed search. config: its lanes and its index have absolute paths, which all workers see. groups: the
    read groups of the header. program: ID of readmap's @PG line in the header. folder: where tasks write, on a file
    system that all workers see. tasks: the number of shards, once it is known."""

    config: SearchConfig
    files: InputFiles
    contig_lengths: tuple[int, ...]
    groups: tuple[ReadGroupInfo, ...] = ()
    program: str = PROGRAM
    folder: str = ""
    tasks: int = 0

    @classmethod
    def of(cls, config: SearchConfig, files: InputFiles, path: Path, index: Index, header: list[str]) -> Job:
        """Return a job with absolute paths. path: index folder; header: lines in addition to read groups."""
        lanes = [replace(lane, files=tuple(map(os.path.abspath, lane.files))) for lane in files.lanes]
        groups = dict.fromkeys(lane.group.line.decode() for lane in lanes if lane.group.line)
        own = replace(config, index=str(path.absolute()), sample_model=None, is_lenient=True)
        lengths = tuple(contig.length for contig in index.reference.contigs)
        return cls(own, InputFiles(lanes, True), lengths, tuple(read_groups([*groups, *header])), program_name(header))

    @property
    def is_sorted(self) -> bool:
        return self.config.sort

    @property
    def rules(self) -> DuplicateRules | None:
        return self.config.duplicate_rules if self.config.marks_duplicates else None

    @property
    def level(self) -> int:
        return self.config.level or LEVEL

    @property
    def outputs(self) -> list[str]:
        return [RECORDS, *([UNMAPPED] if self.config.unmapped is not None else [])]

    def is_compressed(self, name: str) -> bool:
        if name == RECORDS:
            return self.config.is_binary or (self.config.output or "").lower().endswith(COMPRESSED_ENDINGS)
        return (self.config.unmapped or "").lower().endswith(COMPRESSED_ENDINGS)

    def shard(self, index: int) -> Path:
        return Path(self.folder) / f"shard-{index}"

    def range(self, index: int) -> Path:
        return Path(self.folder) / f"range-{index}"

    @property
    def marks(self) -> Path:
        return Path(self.folder) / "marks"


def make_once(target: Path, make: Callable[[Path], Made]) -> Made:
    """Call `make` with a new folder, rename it to `target` when complete, and return the result of `make`. If `target`
    exists, return the result of the task that made it. Raises UsageError if this machine does not see the
    job's folder."""
    result = target / RESULT
    if not target.parent.is_dir():
        raise UsageError(
            f"{os.uname().nodename} does not see {target.parent}: all workers must see the folder of the output"
        )
    if not result.exists():
        with temporary_folder(target) as folder:
            made = make(folder)
            (folder / RESULT).write_bytes(pickle.dumps(made))
            try:
                os.rename(folder, target)
            except OSError:
                if not result.exists():  # and no other worker has made it meanwhile
                    raise
    made_before: Made = pickle.loads(result.read_bytes())
    return made_before
