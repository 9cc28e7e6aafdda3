"""Tests of the documentation: examples run, links exist, MkDocs builds the site, and README stays short."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from readmap.cli import ALIASES, COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")


class Command(NamedTuple):
    """A shell command with its continuation lines, and its output in the page, "" if the page shows none."""

    line: str
    output: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and text of each fenced block; Python text keeps its line numbers of the page."""
    text = page.read_text()
    found = [(one[1], one[2], text.count("\n", 0, one.start(2))) for one in BLOCK.finditer(text)]
    return [(language, "\n" * line + block if language == "python" else block) for language, block, line in found]


def commands(block: str) -> Iterator[Command]:
    """Yield the commands of a console block: lines after "$ ", a backslash at the end of a line, and here-documents."""
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"expected a command, found {line!r}"
        text = line.removeprefix("$ ")
        while text.endswith("\\"):
            text += "\n" + lines.pop(0)
        if found := HERE_DOCUMENT.search(text):
            while not text.endswith("\n" + found[1]):
                text += "\n" + lines.pop(0)
        output = ""
        while lines and not lines[0].startswith("$ "):
            output += lines.pop(0) + "\n"
        yield Command(text, output)


def run_commands(block: str, capfd: pytest.CaptureFixture[str]) -> None:
    for command in commands(block):
        lexer = shlex.shlex(command.line.replace("\\\n", ""), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        if words[0] == "readmap" and not any(re.fullmatch(r"[();<>|&]+", word) for word in words):
            code = main(words[1:])  # a new process would take half a second more
        else:
            words = ["bash", "-c", f"set -euo pipefail\n{command.line}"]
            code = subprocess.run(words, stdin=subprocess.DEVNULL).returncode
        captured = capfd.readouterr()
        assert code == 0, f"{command.line}\n{captured.err}"
        assert command.output in ("", captured.out), command.line


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1500


def test_readme_begins_with_the_two_scripts() -> None:
    indented = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("    ")]
    assert [line.split()[0] for line in indented[:2]] == ["scripts/demo", "scripts/test"]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_first_line_of_text_block_is_a_comment(page: Path) -> None:
    """The first line of a block that is not run says what it is."""
    for language, text in blocks(page):
        assert language in ("console", "python", "text")
        assert language != "text" or re.match(r"(#|//|\()", text), text


@pytest.mark.parametrize(
    "page", [page for page in PAGES if {"console", "python"} & {kind for kind, _ in blocks(page)}], ids=name_of
)
def test_examples_run(page: Path, example_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Run the examples of a page in order; Python blocks share their variables."""
    names: dict[str, object] = {"__name__": "example"}
    for language, text in blocks(page):
        if language == "console":
            run_commands(text, capfd)
        elif language == "python":
            exec(compile(text, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_exist(page: Path) -> None:
    """Check the links inside the repository; MkDocs checks the anchors."""
    text = BLOCK.sub("", page.read_text())
    targets = [target.partition("#")[0] for target in LINK.findall(text) if ":" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_command_has_its_options() -> None:
    text = (ROOT / "docs/reference/options.md").read_text()
    assert set(re.findall(r"<!-- options of (\w+) -->", text)) == COMMANDS.keys() - ALIASES.keys()


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed")
def test_mkdocs_builds_the_site(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    options = (tmp_path / "site/reference/options.html").read_text()
    assert "--barcode-name" in options
    assert "<!-- options" not in options
