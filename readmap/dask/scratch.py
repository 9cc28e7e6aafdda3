"""Folders that tasks fill: a task that runs again finds the finished folder and returns the same result."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from readmap.errors import UsageError
from readmap.formats.atomic_files import temporary_folder

Made = TypeVar("Made")
#: The file of a task's result in its folder.
RESULT = "result"


def make_once(target: Path, make: Callable[[Path], Made]) -> Made:
    """Let `make` fill a folder, which is renamed to `target` when it is complete, and return the result of `make`. If
    `target` exists, return the result of the task that made it. Raises UsageError if this machine does not see the
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
