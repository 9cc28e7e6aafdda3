"""Files and folders that replace their target atomically: under its name is the old or the new one, complete.

Until then they are next to the target under a temporary name, and locked. The next run removes unlocked ones, which
killed runs left.
"""

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

#: Characters of the target's name in a temporary name: names have at most 255 bytes, a character at most four.
NAME_CHARACTERS = 48

UNFINISHED = ".unfinished"
#: Constants of renameat2(2).
AT_FDCWD, RENAME_EXCHANGE = -100, 2
#: Suffix of a folder while it is replaced on a file system that cannot exchange two names.
REPLACED = ".replaced"


def _prefix(target: str | Path) -> str:
    return f".{os.path.basename(target)[:NAME_CHARACTERS]}."


def _remove_abandoned(target: str | Path) -> None:
    """Remove temporary files and folders that killed runs left next to the target."""
    folder = os.path.dirname(target) or "."
    ours = re.compile(re.escape(_prefix(target)) + r"\w+" + re.escape(UNFINISHED))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if ours.fullmatch(name):
                _remove_if_abandoned(os.path.join(folder, name))


def _remove_if_abandoned(path: str) -> None:
    """Remove a file or folder, unless a running process has locked it."""
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


def _lock_new(descriptor: int, path: str) -> bool:
    """Lock a file or folder just created at `path`; return False if another run has removed it."""
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.path.exists(path)


def create_temporary_file(target: str) -> tuple[int, str]:
    """Create a temporary file next to `target`, locked while open; return its descriptor and path. Raises OSError."""
    _remove_abandoned(target)
    while True:
        path = f"{_prefix(target)}{secrets.token_hex(4)}{UNFINISHED}"
        path = os.path.join(os.path.dirname(target), path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if _lock_new(descriptor, path):
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
    """Yield a new locked folder next to `target`, or in `parent`; remove it and its contents at exit."""
    home = parent or os.path.dirname(target) or "."
    _remove_abandoned(os.path.join(home, os.path.basename(target)))
    folder, descriptor = "", None
    try:
        while descriptor is None:
            folder = os.path.join(home, f"{_prefix(target)}{secrets.token_hex(8)}{UNFINISHED}")
            os.mkdir(folder, 0o700)
            descriptor = os.open(folder, os.O_RDONLY)
            if not _lock_new(descriptor, folder):
                os.close(descriptor)
                descriptor = None
        yield Path(folder)
    finally:
        _remove_whole(folder)
        if descriptor is not None:
            os.close(descriptor)


def _remove_whole(folder: str) -> None:
    """Remove a folder if it exists, completely even if interrupted."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def replace_folder(new: Path, target: Path) -> None:
    """Rename a folder to `target`; an existing target is exchanged with `new`, or else removed. Raises OSError."""
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        _replace_in_turn(new, target)


def _exchange(new: Path, target: Path) -> bool:
    """Exchange two paths atomically; return False if the file system cannot. Raises OSError for other errors."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if rename(AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(target), RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(error, os.strerror(error), str(target))


def _replace_in_turn(new: Path, target: Path) -> None:
    """Move `target` away, rename `new` to `target`, and remove the old folder; restore it after an error."""
    replaced = _replaced_path(target)
    shutil.rmtree(replaced, ignore_errors=True)
    try:
        os.rename(target, replaced)
        os.rename(new, target)
    except BaseException:  # also a signal between the two
        restore_folder(target)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Rename a folder back to `target`, if a killed run had moved it away and `target` is missing."""
    if not target.exists() and (replaced := _replaced_path(target)).is_dir():
        with contextlib.suppress(OSError):
            os.rename(replaced, target)


def restore_folders(ending: str) -> None:
    """Restore all such folders in the current folder whose names end with `ending`."""
    for replaced in Path().glob(f".*{ending}{REPLACED}"):
        restore_folder(Path(replaced.name[1 : -len(REPLACED)]))


def _replaced_path(target: Path) -> Path:
    return target.with_name(f".{target.name}{REPLACED}")
