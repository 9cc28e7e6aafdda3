"""Manual pages in roff, made of what the command line declares: readmap.1, and readmap-COMMAND.1 of each command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from readmap.version import __version__
from releasing.command_line import OPTIONS, Command, Parameter, commands

#: The section of the manual, which commands of users have.
SECTION = 1

#: Letters that roff changes, or that begin what it executes.
_ROFF = {"\\": r"\e", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}

_EXIT_CODES = (
    ("0", "All is written."),
    ("1", "A file is broken or missing, a disk is full, the GPU's memory does not suffice, or a pipe was closed."),
    ("2", "The command line is wrong."),
    ("137", "The host's memory does not suffice: the message says how much was asked for."),
    ("128+N", "Signal N ended the process."),
)

_ENVIRONMENT = (
    ("READMAP_INDEX", "The index of search and info where none is named."),
    (
        "READMAP_CACHE",
        "The folder of the compiled kernels, in place of $XDG_CACHE_HOME/readmap or ~/.cache/readmap. It may be "
        "read-only; code in a folder that others can write is not run.",
    ),
    ("TMPDIR", "Where records go that exceed the memory for sorting, and BAM that has to be brought in order first."),
    ("CXX", "The C++ compiler of the kernels for CPUs."),
    ("REF_PATH", "Where samtools looks for references of CRAM; without it no server is asked."),
    ("CUDA_VISIBLE_DEVICES", "The GPUs that CUDA shows; --device cuda:0 is the first of them."),
)


def write_pages(folder: Path) -> list[Path]:
    """The pages of all commands, written into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    known = commands()
    pages = []
    for command in known:
        page = folder / f"{command.title}.{SECTION}"
        page.write_text(page_of(command, known), encoding="ascii")
        pages.append(page)
    return pages


def page_of(command: Command, known: list[Command]) -> str:
    """The page of a command; known: all commands, the first of which is readmap itself."""
    return "\n".join([*_opening(command), *_parameters(command), *_ending(command, known)]) + "\n"


def escaped(text: str) -> str:
    """Text as roff shows it unchanged: of hyphens, those of options stay minus signs."""
    text = "".join(_ROFF.get(letter, letter) for letter in text)
    text = re.sub(r"(?<![\w-])-[\w-]*", lambda found: found[0].replace("-", r"\-"), text)
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)


def literal(text: str) -> str:
    """Text to be typed: every hyphen is a minus sign."""
    return re.sub(r"(?<!\\)-", r"\-", escaped(text))


def _line(text: str) -> str:
    """A line of text, which roff must not take for a request."""
    return rf"\&{text}" if text[:1] in ".'" else text


def _opening(command: Command) -> Iterator[str]:
    yield r".\" scripts/man writes this page."
    yield f'.TH {literal(command.title.upper())} {SECTION} "" "readmap {__version__}" "User Commands"'
    yield from (".ad l", ".nh")  # options are broken nowhere, and words stand where they are looked for
    yield ".SH NAME"
    yield rf"{literal(command.title)} \- {escaped(command.paragraphs[0].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    words = [rf"\fBreadmap {literal(command.name)}\fR".replace(r" \fR", r"\fR")]
    if command.name:
        words += [r"[\fIOPTIONS\fR]", *map(_usage, command.arguments)]
    else:
        words += [r"[\fIOPTIONS\fR]", r"\fICOMMAND\fR", r"[\fIARGS\fR]..."]
    yield " ".join(words)
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(command.paragraphs):
        if number:
            yield ".PP"
        yield _line(escaped(paragraph))


def _usage(argument: Parameter) -> str:
    word = rf"\fI{literal(argument.metavar)}\fR"
    return (word if argument.required else f"[{word}]") + ("..." if argument.repeated else "")


def _parameters(command: Command) -> Iterator[str]:
    if command.arguments:
        yield ".SH ARGUMENTS"
        for argument in command.arguments:
            yield from _entry(rf"\fI{literal(argument.metavar)}\fR", argument.help)
    yield ".SH OPTIONS"
    for panel in sorted({option.panel: None for option in command.options}, key=lambda panel: panel != OPTIONS):
        if panel != OPTIONS:
            yield f".SS {escaped(panel)}"
        for option in command.options:
            if option.panel == panel:
                yield from _entry(_names(option), option.help + (" Required." if option.required else ""))


def _names(option: Parameter) -> str:
    names = ", ".join(rf"\fB{literal(name)}\fR" for name in option.names)
    return names + (rf" \fI{literal(option.metavar)}\fR" if option.metavar else "")


def _entry(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield term
    yield _line(escaped(text))


def _ending(command: Command, known: list[Command]) -> Iterator[str]:
    if not command.name:
        yield ".SH COMMANDS"
        for one in known[1:]:
            yield from _entry(rf"\fB{literal(one.name)}\fR", one.paragraphs[0])
        yield ".SH ENVIRONMENT"
        for name, text in _ENVIRONMENT:
            yield from _entry(rf"\fB{name}\fR", text)
    yield ".SH EXIT STATUS"
    for code, text in _EXIT_CODES:
        yield from _entry(code, text)
    yield ".PP"
    yield "Unless it is 0, no output has its name, nor is a part of one left."
    if command.examples:
        yield ".SH EXAMPLES"
        for example in command.examples:
            yield from (".PP", ".nf", r".RS", _line(literal(example)), ".RE", ".fi")
    yield ".SH SEE ALSO"
    others = [one for one in known if one is not command]
    yield ",\n".join(rf".BR {literal(one.title)} ({SECTION})" for one in others).replace(",\n", " ,\n")
