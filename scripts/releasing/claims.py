"""What the texts of the checkout claim of it: commands, and the figures that benchmarks have left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: The commands that the README begins with.
FIRST_COMMANDS = ("scripts/demo", "scripts/test")

#: Where benchmarks and attacks leave their figures.
FIGURES = ("data/benchmarks", "data/attacks")

_PATH = re.compile(rf"\b(?:{'|'.join(FIGURES)})/[\w.-]+\.(?:json|png|svg|tsv)\b")
_NAME = re.compile(r"`(\d+\.\d+\.\d+-[\w.-]+\.(?:json|png|svg|tsv))`")


def problems(root: Path) -> Iterator[str]:
    """Every claim that does not hold."""
    yield from _first_commands(root)
    yield from _figures(root)


def texts(root: Path) -> list[Path]:
    """The texts for people: those of the root, and the pages of docs/."""
    return [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))]


def _first_commands(root: Path) -> Iterator[str]:
    readme = root / "README.md"
    if not readme.is_file():
        yield "README.md is missing"
        return
    lines = (line for line in readme.read_text().splitlines() if line.startswith("    ") and line.strip())
    first = tuple(line.split()[0] for line, _ in zip(lines, FIRST_COMMANDS, strict=False))
    if first != FIRST_COMMANDS:
        yield f"README.md: its first commands are {' and '.join(first) or 'none'}, not {' and '.join(FIRST_COMMANDS)}"
    for command in FIRST_COMMANDS:
        if not os.access(root / command, os.X_OK):
            yield f"{command} is not there, or cannot be executed"


def _figures(root: Path) -> Iterator[str]:
    for text in texts(root):
        content = text.read_text()
        named = dict.fromkeys(_PATH.findall(content))
        for figure in named:
            if not (root / figure).is_file():
                yield f"{text.relative_to(root)} names {figure}, which is missing"
        for name in dict.fromkeys(_NAME.findall(content)):
            if not any((root / folder / name).is_file() for folder in FIGURES):
                yield f"{text.relative_to(root)} names {name}, which is in none of {', '.join(FIGURES)}"
