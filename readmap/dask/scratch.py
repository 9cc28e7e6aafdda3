"""Folders of what tasks have made: a task that runs twice changes nothing, and what it made is not made again."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from readmap.errors import UsageError
from readmap.formats.atomic_files import temporary_folder

Made = TypeVar("Made")

#: Of what a task has told, beside what it has written.
TOLD = "told"


def make_once(target: Path, make: Callable[[Path], Made]) -> Made:
    """What `make` returns, which fills a folder that gets its name when it is whole.

    Where it has that name, some task has made it before: what that returned. Raises UsageError where this machine does
    not see the job's folder.
    """
    told = target / TOLD
    if not target.parent.is_dir():
        raise UsageError(f"{os.uname().nodename} does not see {target.parent}: -o has to be where all workers see it")
    if not told.exists():
        with temporary_folder(target) as folder:
            made = make(folder)
            (folder / TOLD).write_bytes(pickle.dumps(made))
            try:
                os.rename(folder, target)
            except OSError:
                if not told.exists():  # nor has another worker made it meanwhile
                    raise
    made_before: Made = pickle.loads(told.read_bytes())
    return made_before
