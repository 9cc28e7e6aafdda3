"""scripts/release: what it refuses, that a dry run leaves nothing, and what a release has written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "readmap/version.py": '"""The version."""\n\n__version__ = "0.1.0"\n',
    "README.md": """\
# readmap

    scripts/demo     # shows it
    scripts/test     # checks it

See `data/benchmarks/0.1.0-one.json`, `0.1.0-two.json`.
""",
    "CHANGELOG.md": """\
# Changes

## 0.2.0 (unreleased)

- Alignments are as before.

## 0.1.0 (2026-11-01)

- The first one.
""",
    "CITATION.cff": "title: readmap\nversion: 0.1.0\nreferences:\n  - date-released: 2022-12-31\n",
    "data/benchmarks/0.1.0-one.json": "{}\n",
    "data/benchmarks/0.1.0-two.json": "{}\n",
    "docs/index.md": "![GCUPS](../data/benchmarks/0.1.0-one.json)\n",
    "scripts/demo": "#!/bin/sh\n",
    "scripts/test": '#!/bin/sh\ngrep -c __version__ readmap/version.py >> "$TESTED"\n',
    "scripts/wheels": """\
import pathlib, re, sys
version = re.search('__version__ = "(.+)"', pathlib.Path("readmap/version.py").read_text())[1]
out = pathlib.Path(sys.argv[2])
out.mkdir()
for name in (f"readmap-{version}.tar.gz", f"readmap-{version}-py3-none-any.whl"):
    (out / name).touch()
""",
    "scripts/recipes/conda/meta.yaml": '{% set version = "0.1.0" %}\n',
    **{
        f"scripts/recipes/{name}": text
        for command in ("index", "search")
        for name, text in (
            (f"nf-core/readmap/{command}/environment.yml", "dependencies:\n  - bioconda::readmap=0.1.0\n"),
            (f"nf-core/readmap/{command}/main.nf", 'process X {\n    container "readmap:0.1.0"\n}\n'),
            (f"snakemake/{command}/environment.yaml", "dependencies:\n  - readmap =0.1.0\n"),
        )
    },
    ".gitignore": "__pycache__/\n/dist/\n",
}

#: The end of scripts/release in a project, by its words.
Release = Callable[..., "subprocess.CompletedProcess[str]"]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project of one commit."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # whoever runs the tests may sign commits, or have hooks
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("TESTED", str(tmp_path / "tested"))
    folder = tmp_path / "readmap"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(ROOT / "scripts/release", folder / "scripts")
    shutil.copytree(ROOT / "scripts/releasing", folder / "scripts/releasing", ignore=lambda *_: {"__pycache__"})
    for name in ("demo", "test"):
        (folder / "scripts" / name).chmod(0o755)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "user.name", "One")
    git(folder, "config", "user.email", "one@example.org")
    commit(folder)
    return folder


def commit(project: Path) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Something")


@pytest.fixture
def release(project: Path) -> Release:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, project / "scripts/release", *words]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd="/", capture_output=True, text=True, env=environment)

    return run


def state(project: Path) -> tuple[str, str, str]:
    return git(project, "rev-parse", "HEAD"), git(project, "tag"), git(project, "status", "--porcelain", "--ignored")


def test_a_release_is_committed_and_tagged(project: Path, release: Release, tmp_path: Path) -> None:
    done = release("0.2.0", "--date", "2026-12-01")
    assert done.returncode == 0, done.stderr
    assert git(project, "log", "-1", "--format=%s") == "Release 0.2.0"
    assert git(project, "for-each-ref", "--format=%(objecttype) %(refname) %(contents:subject)", "refs/tags") == (
        "tag refs/tags/v0.2.0 readmap 0.2.0"
    )
    assert git(project, "rev-parse", "v0.2.0^{commit}") == git(project, "rev-parse", "main")
    assert git(project, "status", "--porcelain") == ""
    assert '__version__ = "0.2.0"\n' in (project / "readmap/version.py").read_text()
    assert "\n## 0.2.0 (2026-12-01)\n\n- Alignments" in (project / "CHANGELOG.md").read_text()
    assert (project / "CITATION.cff").read_text() == (
        "title: readmap\nversion: 0.2.0\ndate-released: 2026-12-01\nreferences:\n  - date-released: 2022-12-31\n"
    )
    assert "readmap =0.2.0\n" in (project / "scripts/recipes/snakemake/index/environment.yaml").read_text()
    assert {file.name for file in (project / "dist").iterdir()} == {
        "readmap-0.2.0.tar.gz",
        "readmap-0.2.0-py3-none-any.whl",
    }
    assert (tmp_path / "tested").read_text() == "1\n"
    assert "git push --follow-tags" in done.stdout


def test_a_dry_run_writes_nothing(project: Path, release: Release, tmp_path: Path) -> None:
    before = state(project)
    done = release("0.2.0", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert state(project) == before
    assert '+__version__ = "0.2.0"' in done.stdout
    assert "neither committed nor tagged" in done.stdout
    assert (tmp_path / "tested").exists()


def test_what_is_skipped_is_said(project: Path, release: Release, tmp_path: Path) -> None:
    for words, lines in (
        (["--skip-tests"], ["skipped: scripts/test"]),
        (["--skip-build"], ["skipped: wheels and sdist"]),
        (["--skip-tests", "--skip-build"], ["skipped: scripts/test", "skipped: wheels and sdist"]),
    ):
        done = release("0.2.0", "--dry-run", *words)
        assert done.returncode == 0, done.stderr
        assert [line for line in done.stdout.splitlines() if line.startswith("skipped")] == lines
    assert (tmp_path / "tested").read_text() == "1\n"  # in the one run that skips the build alone


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        assert old in FILES[name]
        (project / name).write_text(FILES[name].replace(old, new))
        commit(project)

    return change


def removed(name: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        (project / name).unlink()
        commit(project)

    return change


def told(*words: str) -> Callable[[Path], None]:
    return lambda project: print(git(project, *words))


@pytest.mark.parametrize(
    ("version", "change", "message"),
    [
        ("two", None, "'two' is no version that PEP 440 knows"),
        ("0.2.0-rc1", None, "0.2.0-rc1 is not written as PEP 440 wants it: 0.2.0rc1"),
        ("0.0.9", None, "0.0.9 is older than 0.1.0, which readmap/version.py says"),
        ("0.2.0", told("tag", "v0.2.0"), "0.2.0 is not newer than 0.2.0, which is tagged"),
        ("0.2.0", told("checkout", "--quiet", "-b", "other"), "the branch is other, not main"),
        ("0.2.0", lambda project: (project / "new").touch(), "the tree is not clean: new"),
        ("0.2.0", told("config", "user.name", ""), "git does not know who commits"),
        (
            "0.2.0",
            replaced("CHANGELOG.md", "## 0.2.0 (unreleased)", "## 0.2.0 (2026-11-02)"),
            "CHANGELOG.md: the first section is not an unreleased one: write '## 0.2.0 (unreleased)' above it",
        ),
        ("0.2.0", replaced("CHANGELOG.md", "- Alignments are as before.\n", ""), "the unreleased section is empty"),
        ("0.2.0", replaced("CHANGELOG.md", "Alignments", "All"), "does not say whether alignments changed"),
        ("0.1.0", None, "CHANGELOG.md: a section of 0.1.0 is there already"),
        ("0.2.0", replaced("readmap/version.py", "__version__", "version"), "readmap/version.py says no version"),
        ("0.2.0", removed("CITATION.cff"), "CITATION.cff is missing"),
        ("0.2.0", replaced("CITATION.cff", "version: 0.1.0", "version 0.1.0"), "CITATION.cff: expected one line like"),
        (
            "0.2.0",
            replaced("README.md", "scripts/demo ", "scripts/show "),
            "its first commands are scripts/show and scripts/test, not scripts/demo and scripts/test",
        ),
        ("0.2.0", removed("scripts/demo"), "scripts/demo is not there, or cannot be executed"),
        (
            "0.2.0",
            removed("data/benchmarks/0.1.0-one.json"),
            "docs/index.md names data/benchmarks/0.1.0-one.json, which is missing",
        ),
        ("0.2.0", removed("data/benchmarks/0.1.0-two.json"), "README.md names 0.1.0-two.json, which is in none of"),
        ("0.2.0", replaced("scripts/test", "grep", "false; exit 3;"), "scripts/test fails: exit code 3"),
        ("0.2.0", replaced("scripts/wheels", "import", "sys.exit(4)"), "scripts/wheels fails: exit code 1"),
        ("0.2.0", replaced("scripts/wheels", ".whl", ".zip"), "no wheel was built"),
        ("0.2.0", replaced("scripts/wheels", "readmap-{version}.tar", "readmap-1.tar"), "readmap-1.tar.gz is not of"),
    ],
)
def test_a_release_is_refused(
    project: Path, release: Release, version: str, change: Callable[[Path], None] | None, message: str
) -> None:
    if change:
        change(project)
    before = state(project)
    done = release(version)
    assert done.returncode == 1, done.stdout
    assert done.stderr.splitlines()[-1].startswith("release: ")
    assert message in done.stderr
    assert state(project) == before


def test_all_reasons_are_told_at_once(project: Path, release: Release) -> None:
    (project / "new").touch()
    (project / "scripts/demo").chmod(0o644)
    done = release("0.0.1")
    assert [line.split(": ")[1].split(" ")[0] for line in done.stderr.splitlines()] == ["0.0.1", "the", "scripts/demo"]


def test_a_commit_that_fails_leaves_nothing(project: Path, release: Release) -> None:
    hook = project / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    before = state(project)
    done = release("0.2.0", "--skip-tests", "--skip-build")
    assert (done.returncode, done.stderr) == (1, "release: git commit: no\n")
    assert state(project) == before


def test_this_checkout_has_nothing_against_a_release_but_its_state() -> None:
    """Whatever is being worked on: the texts claim what is there, and the next version can be written into them."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from packaging.version import Version
    from releasing import claims
    from releasing.edits import NAMED, edited, version_in

    assert [*claims.problems(ROOT)] == []
    current = version_in((ROOT / "readmap/version.py").read_text())
    assert current is not None
    major, minor, _ = Version(current).release
    texts, problems = edited(ROOT, f"{major}.{minor + 1}.0", "2030-01-01")
    if "(unreleased)" in (ROOT / "CHANGELOG.md").read_text():
        assert problems == []
        assert texts.keys() == {*NAMED, "CHANGELOG.md", "readmap/version.py"}
