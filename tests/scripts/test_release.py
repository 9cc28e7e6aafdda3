"""Manual pages and completions cover all commands, bump-my-version finds every file, and named figures exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from readmap.cli import COMMANDS, application

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

GROUP = typer.main.get_command(application(COMMANDS))
LISTED = {name: command for name, command in GROUP.commands.items() if not command.hidden}  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("click_man", reason="click-man is not installed: pip install -e '.[release]'")
    from distribution.share import write_share

    folder = tmp_path_factory.mktemp("share")
    write_share(folder)
    return folder


def test_every_command_has_a_page_with_its_options(share: Path) -> None:
    pages = share / "man/man1"
    assert {page.stem for page in pages.iterdir()} == {"readmap", *(f"readmap-{name}" for name in LISTED)}
    for name, command in LISTED.items():
        text = (pages / f"readmap-{name}.1").read_text().replace(r"\-", "-").replace(r"\fB", "")
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        missing = [word for one in options for word in one.opts if not re.search(rf"(^|\W){word}\b", text)]
        assert missing == []


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_shows_the_pages_without_warnings(share: Path) -> None:
    for page in (share / "man/man1").iterdir():
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), page.name


def test_bash_completes_commands_and_options(share: Path, tmp_path: Path) -> None:
    (tmp_path / "readmap").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m readmap "$@"\n')
    (tmp_path / "readmap").chmod(0o755)
    program = f"""
        source {share}/bash-completion/completions/readmap
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _readmap_completion {tmp_path}/readmap
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    for words, expected in ((["se"], ["search"]), (["search", "--sort-"], ["--sort-order", "--sort-memory"])):
        done = subprocess.run(["bash", "-c", program, "bash", "readmap", *words], capture_output=True, text=True)
        assert (done.stdout.split(), done.stderr) == (expected, "")


def test_bump_my_version_changes_every_file(tmp_path: Path) -> None:
    pytest.importorskip("bumpversion", reason="bump-my-version is not installed: pip install -e '.[release]'")
    for name in ("pyproject.toml", "readmap/version.py", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "scripts/recipes", tmp_path / "scripts/recipes")
    for version in ("98.0.0", "99.0.0"):
        changelog = (tmp_path / "CHANGELOG.md").read_text()
        (tmp_path / "CHANGELOG.md").write_text(changelog.replace("\n## ", f"\n## {version} (unreleased)\n\n## ", 1))
        command = [sys.executable, "-m", "bumpversion", "bump", "--no-commit", "--no-tag", "--new-version", version]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    changed = {path for path in tmp_path.rglob("*") if path.is_file() and "99.0.0" in path.read_text()}
    recipes = [path for path in (tmp_path / "scripts/recipes").rglob("*") if "readmap" in path.parent.parent.name]
    named = [path for path in recipes if path.name in ("main.nf", "environment.yml")]
    named += (tmp_path / "scripts/recipes/snakemake").glob("*/environment.yaml")
    expected = {*named, *(tmp_path / name for name in ("pyproject.toml", "readmap/version.py", "CITATION.cff"))}
    assert changed == expected | {tmp_path / "CHANGELOG.md", tmp_path / "scripts/recipes/conda/meta.yaml"}
    assert re.search(r"^## 99.0.0 \(\d{4}-\d\d-\d\d\)$", (tmp_path / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = (tmp_path / "CITATION.cff").read_text()
    assert re.search(r"^version: 99.0.0\ndate-released: \d{4}-\d\d-\d\d\nlicense: ", citation, re.MULTILINE)


def test_named_figures_exist() -> None:
    """Files of figures that the documents name, as a path or by the file's name, exist."""
    folders = ("data/benchmarks", "data/attacks")
    pattern = (
        rf"\b((?:{'|'.join(folders)})/[\w.-]+\.(?:json|png|svg|tsv))\b|`(\d+\.\d+\.\d+-[\w.-]+\.(?:json|png|tsv))`"
    )
    for text in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for path, name in re.findall(pattern, text.read_text()):
            paths = [ROOT / path] if path else [ROOT / folder / name for folder in folders]
            assert any(each.is_file() for each in paths), (text, path or name)
