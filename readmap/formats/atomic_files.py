"""Files and folders that take a name only when they are whole: at any moment the old one or the new one has it.

Until then they are beside it, under a name of their own and locked. What a killed run left there is not locked any
more, and the next run removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

#: A file's name may have 255 bytes; the temporary one adds some, and a character may take four.
NAME_CHARACTERS = 48

UNFINISHED = ".unfinished"

#: Of renameat2 of Linux.
AT_FDCWD, RENAME_EXCHANGE = -100, 2

#: Where a folder is that is being replaced, on a file system that cannot exchange two.
ASIDE = ".replaced"


def _prefix(target: str | Path) -> str:
    """How the temporary names of a file or folder begin; they end in .tmp."""
    return f".{os.path.basename(target)[:NAME_CHARACTERS]}."


def _remove_abandoned(target: str | Path) -> None:
    """Remove what killed runs left beside a file or folder."""
    folder = os.path.dirname(target) or "."
    ours = re.compile(re.escape(_prefix(target)) + r"\w+" + re.escape(UNFINISHED))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if ours.fullmatch(name):
                _remove_if_abandoned(os.path.join(folder, name))


def _remove_if_abandoned(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        finally:
            os.close(descriptor)


def _claim(descriptor: int, path: str) -> bool:
    """Lock what has just been made at `path`, as long as it is open; False where another run removed it meanwhile."""
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.path.exists(path)


def create_temporary_file(target: str) -> tuple[int, str]:
    """A new file beside `target`, locked as long as it is open: its descriptor and its path; or OSError."""
    _remove_abandoned(target)
    while True:
        path = f"{_prefix(target)}{secrets.token_hex(4)}{UNFINISHED}"
        path = os.path.join(os.path.dirname(target), path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if _claim(descriptor, path):
                return descriptor, path
            os.close(descriptor)
        except FileExistsError:
            continue
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise


@contextlib.contextmanager
def temporary_folder(target: str | Path, parent: str | Path | None = None) -> Iterator[Path]:
    """A new folder beside `target`, or in another folder, that is removed in the end, with all that is in it then."""
    home = parent or os.path.dirname(target) or "."
    _remove_abandoned(os.path.join(home, os.path.basename(target)))
    folder, descriptor = "", None
    try:
        while descriptor is None:
            folder = os.path.join(home, f"{_prefix(target)}{secrets.token_hex(8)}{UNFINISHED}")
            os.mkdir(folder, 0o700)
            descriptor = os.open(folder, os.O_RDONLY)
            if not _claim(descriptor, folder):
                os.close(descriptor)
                descriptor = None
        yield Path(folder)
    finally:
        _remove_whole(folder)
        if descriptor is not None:
            os.close(descriptor)


def _remove_whole(folder: str) -> None:
    """Remove a folder that may be there; an interrupt waits for that."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def replace_folder(new: Path, target: Path) -> None:
    """Give a folder its name. What had it is at the new one's former place then, or is removed. Raises OSError."""
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        _replace_in_turn(new, target)


def _exchange(new: Path, target: Path) -> bool:
    """Whether the two could change their names at once."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if rename(AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(target), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(target))


def _replace_in_turn(new: Path, target: Path) -> None:
    aside = _aside(target)
    shutil.rmtree(aside, ignore_errors=True)
    try:
        os.rename(target, aside)
        os.rename(new, target)
    except BaseException:  # a signal too may come between the two
        restore_folder(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Bring back the folder that a killed run was about to replace."""
    if not target.exists() and (aside := _aside(target)).is_dir():
        with contextlib.suppress(OSError):
            os.rename(aside, target)


def restore_folders(ending: str) -> None:
    """The same of all folders in the current one whose names end so."""
    for aside in Path().glob(f".*{ending}{ASIDE}"):
        restore_folder(Path(aside.name[1 : -len(ASIDE)]))


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}{ASIDE}")
