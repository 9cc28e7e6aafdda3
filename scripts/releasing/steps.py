"""The steps of a release: what is checked before, a trial in a clone, the commit and its tag."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version

from releasing import claims
from releasing.edits import VERSION_FILE, version_in

BRANCH = "main"


class Refused(Exception):
    """Why there is no release, a line a reason."""


def git(root: Path, *words: str) -> str:
    """What a git command prints; raises Refused with what it complains of."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"git {words[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def problems(root: Path, version: str) -> Iterator[str]:
    """Every reason against a release of this version, its texts apart."""
    yield from _of_version(root, version)
    if (branch := git(root, "rev-parse", "--abbrev-ref", "HEAD")) != BRANCH:
        yield f"the branch is {branch}, not {BRANCH}"
    yield from _of_tree(root)
    if not _can_commit(root):
        yield "git does not know who commits: set user.name and user.email"
    yield from claims.problems(root)


def _of_tree(root: Path) -> Iterator[str]:
    if changed := git(root, "status", "--porcelain").splitlines():
        shown = ", ".join(line.split()[-1] for line in changed[:3])
        yield f"the tree is not clean: {shown}{f' and {len(changed) - 3} more' if len(changed) > 3 else ''}"


def _of_version(root: Path, version: str) -> Iterator[str]:
    try:
        asked = Version(version)
    except InvalidVersion:
        yield f"{version!r} is no version that PEP 440 knows"
        return
    if str(asked) != version or asked.local:
        yield f"{version} is not written as PEP 440 wants it: {asked.public}"
    current = version_in((root / VERSION_FILE).read_text()) if (root / VERSION_FILE).is_file() else None
    if current is None:
        yield f"{VERSION_FILE} says no version"
    elif asked < Version(current):
        yield f"{version} is older than {current}, which {VERSION_FILE} says"
    released = [Version(tag[1:]) for tag in git(root, "tag", "--list", "v*").split() if re.match(r"v\d", tag)]
    if released and asked <= max(released):
        yield f"{version} is not newer than {max(released)}, which is tagged"


def _can_commit(root: Path) -> bool:
    try:
        git(root, "var", "GIT_COMMITTER_IDENT")
    except Refused:
        return False
    return True


def difference(root: Path, texts: dict[str, str]) -> str:
    """What changes, as `diff -u` shows it."""
    return "".join(
        line
        for name, text in sorted(texts.items())
        for line in difflib.unified_diff(
            (root / name).read_text().splitlines(True), text.splitlines(True), f"a/{name}", f"b/{name}", n=0
        )
    )


def write(root: Path, texts: dict[str, str]) -> None:
    """The new texts in their files."""
    for name, text in texts.items():
        (root / name).write_text(text)


def clone(root: Path, folder: Path, texts: dict[str, str]) -> None:
    """The release as it would be, in a folder of its own: what it is tried in leaves nothing in the checkout."""
    git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(folder))
    write(folder, texts)


def run_tests(folder: Path) -> None:
    """scripts/test of a clone, in its own environment."""
    _run(folder, str(folder / "scripts/test"), what="scripts/test fails")


def build(folder: Path, out: Path, version: str) -> list[Path]:
    """The wheels and the sdist of a clone, in a new folder; raises Refused where they are not all of this version."""
    _run(folder, sys.executable, "scripts/wheels", "--out", str(out), what="scripts/wheels fails")
    files = sorted(out.iterdir()) if out.is_dir() else []
    for ending, kind in ((".whl", "wheel"), (".tar.gz", "sdist")):
        if not any(file.name.endswith(ending) for file in files):
            raise Refused(f"no {kind} was built")
    for file in files:
        if file.name.endswith((".whl", ".tar.gz")) and not re.match(
            rf"readmap-{re.escape(version)}(-|\.tar)", file.name
        ):
            raise Refused(f"{file.name} is not of {version}")
    return files


def _run(folder: Path, *command: str, what: str) -> None:
    """A command whose output is shown; raises Refused with `what` where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    if code := subprocess.run(command, cwd=folder, env=environment).returncode:
        raise Refused(f"{what}: exit code {code}")


def record(root: Path, version: str, texts: dict[str, str], before: str) -> None:
    """The commit and its annotated tag, both or neither; before: the commit that was checked."""
    if git(root, "rev-parse", "HEAD") != before or [*_of_tree(root)]:
        raise Refused("the checkout has changed since it was checked")
    try:
        write(root, texts)
        git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *texts)
        git(root, "tag", "--annotate", "--message", f"readmap {version}", f"v{version}")
    except (Refused, OSError):
        git(root, "reset", "--quiet", "--hard", before)
        raise


def keep(files: list[Path], folder: Path) -> list[Path]:
    """What was built, moved to where it stays."""
    folder.mkdir(exist_ok=True)
    return [Path(shutil.move(file, folder / file.name)) for file in files]
