"""Completions of bash, zsh and fish, made of what the command line declares.

The files complete by themselves: to ask readmap for words at every TAB would take a third of a second.

    python scripts/releasing/completion.py FOLDER        (a prefix's share/, where shells look for them)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = map(str, Path(__file__).resolve().parents[1:3])  # scripts/, and this checkout

from releasing.command_line import Command, Parameter, commands

#: Where each shell looks for the completions of a command, in a prefix's share/.
PLACES = {
    "bash": "bash-completion/completions/readmap",
    "zsh": "zsh/site-functions/_readmap",
    "fish": "fish/vendor_completions.d/readmap.fish",
}

_BASH = """\
# bash completion of readmap; scripts/releasing/completion.py writes it.

_readmap() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} options="" valued="" paths=""
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "{first}" -- "$word")
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
        *) return ;;
    esac
    # Names of files come where nothing else does, by complete -o default.
    if [[ " $paths " == *" $previous "* ]]; then
        return
    elif [[ " $valued " == *" $previous "* ]]; then
        compopt +o default
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    fi
}}

complete -o default -F _readmap readmap
"""

_ZSH = """\
#compdef readmap
# zsh completion of readmap; scripts/releasing/completion.py writes it.

_readmap() {{
    local -a commands
    commands=(
{commands}
    )
    if ((CURRENT == 2)); then
        _arguments {own} && return
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
{cases}
    esac
}}

_readmap "$@"
"""


def write_completions(folder: Path) -> list[Path]:
    """The files of all shells, written where they look for them in `folder`, a prefix's share/."""
    known = commands()
    files = []
    for shell, text in (("bash", bash(known)), ("zsh", zsh(known)), ("fish", fish(known))):
        file = folder / PLACES[shell]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        files.append(file)
    return files


def bash(known: list[Command]) -> str:
    """The completion of bash; known: all commands, the first of which is readmap itself."""
    first = [one.name for one in known[1:]] + _names(known[0].options)
    cases = [line for one in known[1:] for line in _bash_case(one)]
    return _BASH.format(first=" ".join(first), cases="\n".join(cases))


def _bash_case(command: Command) -> Iterator[str]:
    valued = [option for option in command.options if option.metavar]
    yield f"        {command.name})"
    yield f'            options="{" ".join(_names(command.options))}"'
    yield f'            valued="{" ".join(_names(valued))}"'
    yield f'            paths="{" ".join(_names(option for option in valued if option.takes_path))}"'
    yield "            ;;"


def zsh(known: list[Command]) -> str:
    """The completion of zsh."""
    names = [f"        {_quoted(f'{one.name}:{_brief(one.paragraphs[0])}')}" for one in known[1:]]
    cases = [line for one in known[1:] for line in _zsh_case(one)]
    own = " ".join(_zsh_option(option) for option in known[0].options)
    return _ZSH.format(commands="\n".join(names), cases="\n".join(cases), own=own)


def _zsh_case(command: Command) -> Iterator[str]:
    yield f"        {command.name})"
    yield "            _arguments \\"
    for option in command.options:
        yield f"                {_zsh_option(option)} \\"
    yield "                '*:file:_files'"
    yield "            ;;"


def _zsh_option(option: Parameter) -> str:
    text = re.sub(r"([][:])", r"\\\1", _brief(option.help))
    value = f":{option.metavar}:{'_files' if option.takes_path else ' '}" if option.metavar else ""
    words = [_quoted(f"*{name}[{text}]{value}") for name in option.names]
    return " ".join(words)


def fish(known: list[Command]) -> str:
    """The completion of fish."""
    lines = ["# fish completion of readmap; scripts/releasing/completion.py writes it."]
    for one in known[1:]:
        text = _quoted(_brief(one.paragraphs[0]), fish=True)
        lines.append(f"complete -c readmap -f -n __fish_use_subcommand -a {one.name} -d {text}")
    lines += [_fish_option("__fish_use_subcommand", option) for option in known[0].options]
    for one in known[1:]:
        lines += [_fish_option(f"'__fish_seen_subcommand_from {one.name}'", option) for option in one.options]
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, option: Parameter) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = [] if not option.metavar else ["-r"] if option.takes_path else ["-x"]
    words = ["complete -c readmap -n", condition, *names, *value, "-d", _quoted(_brief(option.help), fish=True)]
    return " ".join(words)


def _names(options: Iterable[Parameter]) -> list[str]:
    return [name for option in options for name in option.names]


def _brief(text: str) -> str:
    """The first sentence, without what stands in brackets at its end: a line of a list."""
    sentence = re.split(r"(?<=\w)[.;] |\.$| \(default:", text, maxsplit=1)[0]
    return sentence if len(sentence) <= 76 else sentence[:73].rsplit(" ", 1)[0] + "..."


def _quoted(text: str, fish: bool = False) -> str:
    """Text in single quotes; a shell has no other sign in them than those, and fish backslashes."""
    return "'" + (text.replace("\\", r"\\").replace("'", r"\'") if fish else text.replace("'", "'\\''")) + "'"


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for written in write_completions(Path(sys.argv[1])):
        print(written)
