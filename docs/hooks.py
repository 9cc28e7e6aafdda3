"""What mkdocs does beside Markdown: the options come from the commands, and links may leave docs/.

A page says `<!-- options of COMMAND -->` where the options of a command go. Files of the repository that pages link to
are published under repository/; links to its other files and folders become plain words.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

#: The folder of the site for files that lie outside docs/.
PUBLISHED = "repository"

#: These files, by their paths in the repository.
OUTSIDE = (
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "data/README.md"),
    *(f"data/benchmarks/{path.name}" for path in sorted((ROOT / "data/benchmarks").iterdir())),
)

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
OPTIONS = re.compile(r"<!-- options of (\w+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages, and the files outside docs/."""
    for path in OUTSIDE:
        # Without their ending LICENSE and CITATION.cff are no type that a browser shows.
        name = path if "." in path and not path.endswith(".cff") else f"{path}.txt"
        files.append(File.generated(config, f"{PUBLISHED}/{name}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page's text with the options of commands, and with links that hold on the site."""
    source = page.file.src_uri
    outside = source.startswith(f"{PUBLISHED}/")
    place = source.removeprefix(f"{PUBLISHED}/") if outside else f"docs/{source}"

    def mended(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        published = _published(path)
        if published is None:
            return link["text"]
        relative = os.path.relpath(published, posixpath.dirname(source) or ".")
        return f"{link['image']}[{link['text']}]({relative}{'#' + anchor if anchor else ''})"

    markdown = LINK.sub(mended, markdown)
    return OPTIONS.sub(lambda found: "\n".join(options_of(found[1])), markdown)


def _published(path: str) -> str | None:
    """Where a file of the repository is on the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    name = path if "." in path and not path.endswith(".cff") else f"{path}.txt"
    return f"{PUBLISHED}/{name}" if path in OUTSIDE else None


def options_of(name: str) -> Iterator[str]:
    """Lines of Markdown: the usage of a command, its arguments, and its options by the panels of its help."""
    import typer

    from readmap.cli import COMMANDS, application

    program: Any = typer.main.get_command(application(COMMANDS))
    command = program.commands[name]
    above = program.context_class(program, info_name="readmap", **program.context_settings)
    context = command.context_class(command, info_name=name, parent=above, **command.context_settings)
    usage = command.collect_usage_pieces(context)
    yield f"`{' '.join([f'readmap {name}', *usage])}`"
    yield from ("", *(_plain(part) for part in (command.help or "").split("\n")))
    panels: dict[str, list[Any]] = {}
    for parameter in command.get_params(context):
        is_argument = parameter.param_type_name == "argument"
        if not getattr(parameter, "hidden", False):
            usual = "Arguments" if is_argument else "Options"
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(parameter)
    for panel, parameters in panels.items():
        yield from ("", f"**{panel}**", "", "| option | value | meaning |", "|---|---|---|")
        for one in parameters:
            yield f"| {_names(one)} | {_value(one)} | {_plain(one.help or '')} |"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    # The short names first, as in a usage line.
    return ",&nbsp;".join(f"`{name}`" for name in sorted([*parameter.opts, *parameter.secondary_opts], key=len))


def _value(parameter: Any) -> str:
    if parameter.param_type_name == "argument" or not parameter.metavar:
        return ""
    return f"`{parameter.metavar}`"


def _plain(text: str) -> str:
    """A help text without rich's markup, its letters safe in a cell of Markdown's tables."""
    from rich.text import Text

    return re.sub(r"([\\`*_|<>])", r"\\\1", Text.from_markup(text.replace("\b", "")).plain.strip())
