"""Hooks of mkdocs: generate the tables of options from the commands, and resolve links to files outside docs/.

The options of a command replace `<!-- options of COMMAND -->` in a page. Files of the repository that pages link to are
published under repository/; links to other files and folders outside docs/ become plain text.
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

#: Folder of the site for files outside docs/.
PUBLISHED = "repository"

#: Files outside docs/ that are published, by their paths in the repository.
OUTSIDE = (
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "data/README.md"),
    *(f"data/benchmarks/{path.name}" for path in sorted((ROOT / "data/benchmarks").iterdir())),
)

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
OPTIONS = re.compile(r"<!-- options of (\w+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/ to the files of the site."""
    for path in OUTSIDE:
        # Browsers show LICENSE and CITATION.cff only with the ending .txt.
        name = path if "." in path and not path.endswith(".cff") else f"{path}.txt"
        files.append(File.generated(config, f"{PUBLISHED}/{name}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the options of commands into a page, and resolve its links."""
    source = page.file.src_uri
    outside = source.startswith(f"{PUBLISHED}/")
    path_in_repository = source.removeprefix(f"{PUBLISHED}/") if outside else f"docs/{source}"

    def resolve(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path_in_repository), target))
        published = _published(path)
        if published is None:
            return link["text"]
        relative = os.path.relpath(published, posixpath.dirname(source) or ".")
        return f"{link['image']}[{link['text']}]({relative}{'#' + anchor if anchor else ''})"

    markdown = LINK.sub(resolve, markdown)
    return OPTIONS.sub(lambda found: "\n".join(options_of(found[1])), markdown)


def _published(path: str) -> str | None:
    """Return the path of a repository file on the site, or None if it is not published."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    name = path if "." in path and not path.endswith(".cff") else f"{path}.txt"
    return f"{PUBLISHED}/{name}" if path in OUTSIDE else None


def options_of(name: str) -> Iterator[str]:
    """Yield lines of Markdown: the usage of a command, its arguments, and its options by the panels of its help."""
    import typer

    from readmap.cli import COMMANDS, application

    program: Any = typer.main.get_command(application(COMMANDS))
    command = program.commands[name]
    parent = program.context_class(program, info_name="readmap", **program.context_settings)
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    usage = command.collect_usage_pieces(context)
    yield f"`{' '.join([f'readmap {name}', *usage])}`"
    yield from ("", *(_plain(part) for part in (command.help or "").split("\n")))
    panels: dict[str, list[Any]] = {}
    for parameter in command.get_params(context):
        is_argument = parameter.param_type_name == "argument"
        if not getattr(parameter, "hidden", False):
            default = "Arguments" if is_argument else "Options"
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or default, []).append(parameter)
    for panel, parameters in panels.items():
        yield from ("", f"**{panel}**", "", "| option | value | meaning |", "|---|---|---|")
        for one in parameters:
            yield f"| {_names(one)} | {_value(one)} | {_plain(one.help or '')} |"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    # Short names first, as in a usage line.
    return ",&nbsp;".join(f"`{name}`" for name in sorted([*parameter.opts, *parameter.secondary_opts], key=len))


def _value(parameter: Any) -> str:
    if parameter.param_type_name == "argument" or not parameter.metavar:
        return ""
    return f"`{parameter.metavar}`"


def _plain(text: str) -> str:
    """Remove the rich markup of a help text and escape it for a cell of a Markdown table."""
    from rich.text import Text

    return re.sub(r"([\\`*_|<>])", r"\\\1", Text.from_markup(text.replace("\b", "")).plain.strip())
