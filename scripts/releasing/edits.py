"""The texts of a release: what its version and its date change in the checkout."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

#: The file of the version, of which the others follow.
VERSION_FILE = "readmap/version.py"
_VERSION = r'^__version__ = "([^"]+)"$'

#: Files beside it that name the version: the pattern of the line, with the version as its group.
NAMED: dict[str, str] = {
    "CITATION.cff": r"^version: (\S+)$",
    "scripts/recipes/conda/meta.yaml": r'^\{% set version = "(\S+)" %\}$',
    "scripts/recipes/nf-core/readmap/index/environment.yml": r"^  - bioconda::readmap=(\S+)$",
    "scripts/recipes/nf-core/readmap/index/main.nf": r'^    container "readmap:(\S+)"$',
    "scripts/recipes/nf-core/readmap/search/environment.yml": r"^  - bioconda::readmap=(\S+)$",
    "scripts/recipes/nf-core/readmap/search/main.nf": r'^    container "readmap:(\S+)"$',
    "scripts/recipes/snakemake/index/environment.yaml": r"^  - readmap =(\S+)$",
    "scripts/recipes/snakemake/search/environment.yaml": r"^  - readmap =(\S+)$",
}

#: The section of the CHANGELOG that is being written, and any section.
_UNRELEASED = re.compile(r"^## (\S+) \(unreleased\)$", re.MULTILINE)
_SECTION = re.compile(r"^## (\S+).*$", re.MULTILINE)


def version_in(text: str) -> str | None:
    """The version that readmap/version.py says."""
    found = re.search(_VERSION, text, re.MULTILINE)
    return found[1] if found else None


def edited(root: Path, version: str, date: str) -> tuple[dict[str, str], list[str]]:
    """The files that change, with their new texts, and why some cannot be made; date: as 2026-11-25."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    for name, edit in _edits(version, date).items():
        if not (root / name).is_file():
            problems.append(f"{name} is missing")
            continue
        before = (root / name).read_text()
        try:
            after = edit(before)
        except ValueError as error:
            problems.append(f"{name}: {error}")
            continue
        if after != before:
            texts[name] = after
    return texts, problems


def _edits(version: str, date: str) -> dict[str, Callable[[str], str]]:
    """What makes the new text of each file of its old one."""
    edits = {name: partial(_replace, pattern=pattern, version=version) for name, pattern in NAMED.items()}
    edits[VERSION_FILE] = partial(_replace, pattern=_VERSION, version=version)
    own = {
        "CITATION.cff": partial(citation, version=version, date=date),
        "CHANGELOG.md": partial(changelog, version=version, date=date),
    }
    return {**edits, **own}


def citation(text: str, version: str, date: str) -> str:
    """The CITATION.cff of a release: its version, and its date in the line behind."""
    text = _replace(text, NAMED["CITATION.cff"], version)
    text = re.sub(r"^date-released: .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^(version: .*\n)", rf"\g<1>date-released: {date}\n", text, count=1, flags=re.MULTILINE)


def changelog(text: str, version: str, date: str) -> str:
    """The CHANGELOG with its unreleased section named after the release; raises ValueError where it cannot be."""
    first = _SECTION.search(text)
    top = _UNRELEASED.search(text)
    if top is None or first is None or first.start() != top.start():
        raise ValueError(f"the first section is not an unreleased one: write '## {version} (unreleased)' above it")
    rest = _SECTION.search(text, top.end())
    if any(found[1] == version for found in _SECTION.finditer(text, top.end())):
        raise ValueError(f"a section of {version} is there already")
    section = text[top.end() : rest.start() if rest else len(text)]
    if not section.strip():
        raise ValueError("the unreleased section is empty")
    if "alignment" not in section.lower():
        raise ValueError("the unreleased section does not say whether alignments changed")
    return f"{text[: top.start()]}## {version} ({date}){text[top.end() :]}"


def _replace(text: str, pattern: str, version: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"expected one line like {pattern}, found {len(found)}")
    return re.sub(pattern, lambda line: line[0].replace(line[1], version), text, flags=re.MULTILINE)
