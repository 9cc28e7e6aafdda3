"""scripts/man and the completions: every command and option is in them, and groff and the shells take them."""

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

from releasing.command_line import commands, plain  # noqa: E402
from releasing.completion import PLACES, write_completions  # noqa: E402
from releasing.man import escaped, literal, write_pages  # noqa: E402

NAMES = [name for name in COMMANDS if name != "map"]
PAGES = ["readmap", *(f"readmap-{name}" for name in NAMES)]


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man") / "man1"
    assert {page.name for page in write_pages(folder)} == {f"{page}.1" for page in PAGES}
    return folder


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    assert write_completions(folder) == [folder / place for place in PLACES.values()]
    return folder


def rendered(page: Path) -> str:
    """The words of a page as a terminal shows them, with one blank between."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=2000n", "-P-cbou", page], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return " ".join(done.stdout.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())


def declared(name: str) -> list[tuple[list[str], str]]:
    """The names and the help of all options that a command shows, as typer has them."""
    group = typer.main.get_command(application(COMMANDS))
    parameters = group.commands[name].params  # type: ignore[attr-defined]
    return [
        ([*each.opts, *each.secondary_opts], plain(each.help))
        for each in parameters
        if each.param_type_name == "option" and not each.hidden
    ]


@needs("groff")
@pytest.mark.parametrize("name", NAMES)
def test_pages_show_every_option_with_its_help(pages: Path, name: str) -> None:
    text = rendered(pages / f"readmap-{name}.1")
    assert text.startswith(f"READMAP-{name.upper()}(1) User Commands")
    for names, help in declared(name):
        assert help in text
        for option in names:
            assert re.search(rf"(^|[ ,]){re.escape(option)}[ ,]", text), option
    assert "--help" in text
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
        assert f" {section} " in text


@needs("groff")
def test_the_first_page_names_the_commands(pages: Path) -> None:
    text = rendered(pages / "readmap.1")
    for one in commands()[1:]:
        assert f"{one.name} {one.paragraphs[0]}" in text
        assert f"readmap-{one.name}(1)" in text
    assert "READMAP_CACHE" in text


@needs("man")
@pytest.mark.parametrize("page", PAGES)
def test_man_has_no_warnings(pages: Path, page: str) -> None:
    done = subprocess.run(["man", "--warnings", "-l", pages / f"{page}.1"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_pages_are_the_same_again(pages: Path, tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert all((tmp_path / page.name).read_bytes() == page.read_bytes() for page in pages.iterdir())


@pytest.mark.parametrize(
    ("text", "shown", "typed"),
    [
        ("Smith-Waterman, --sort-order", r"Smith-Waterman, \-\-sort\-order", r"Smith\-Waterman, \-\-sort\-order"),
        (r"'@RG\tID:a'", r"\(aq@RG\etID:a\(aq", r"\(aq@RG\etID:a\(aq"),
        (
            "~/.cache; 2^29; 3 \N{MULTIPLICATION SIGN} 4",
            r"\(ti/.cache; 2\(ha29; 3 \[u00D7] 4",
            r"\(ti/.cache; 2\(ha29; 3 \[u00D7] 4",
        ),
    ],
)
def test_roff_is_escaped(text: str, shown: str, typed: str) -> None:
    assert (escaped(text), literal(text)) == (shown, typed)


def test_the_script_says_what_it_wants(tmp_path: Path) -> None:
    for words, code in (([], 2), (["--help"], 0), ([str(tmp_path / "man1")], 0), (["/dev/null/man1"], 1)):
        done = subprocess.run([sys.executable, ROOT / "scripts/man", *words], capture_output=True, text=True)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
    assert len(list((tmp_path / "man1").iterdir())) == len(PAGES)


def completed(share: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    program = f"""
        source {share / PLACES["bash"]}
        compopt() {{ :; }}  # which wants a completion that readline has begun
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _readmap
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_bash_completes_commands_and_options(share: Path) -> None:
    assert completed(share, "readmap", "se") == ["search"]
    assert set(completed(share, "readmap", "")) == {*NAMES, "--version", "-h", "--help"}
    assert completed(share, "readmap", "search", "--sort-") == ["--sort-order", "--sort-memory"]
    for name in NAMES:
        known = {option for names, _ in declared(name) for option in names}
        assert known < set(completed(share, "readmap", name, "-"))


def test_bash_leaves_files_and_values(share: Path) -> None:
    """Nothing is offered where a file or a value is to come; files come then from readline."""
    for words in (["search", "re"], ["search", "-o", "-"], ["search", "--threads", "-"], ["nothing", "-"]):
        assert completed(share, "readmap", *words) == []


@needs("zsh")
def test_zsh_completes(share: Path) -> None:
    file = share / PLACES["zsh"]
    assert subprocess.run(["zsh", "-n", file]).returncode == 0
    # The function is run with the two functions that would ask the line editor; `words` and CURRENT are the editor's.
    program = f"""
        _arguments() {{ print -rl -- "$@" }}
        _describe() {{ print -rl -- "${{(@P)2}}" }}
        words=(readmap "$1" ""); CURRENT=$2
        source {file}
    """
    for name in NAMES:
        done = subprocess.run(["zsh", "-fc", program, "zsh", name, "3"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        offered = {line[1:].split("[")[0] for line in done.stdout.splitlines() if line.startswith("*-")}
        assert {option for names, _ in declared(name) for option in names} < offered


@needs("fish")
def test_fish_completes(share: Path) -> None:
    file = share / PLACES["fish"]

    def offered(line: str) -> set[str]:
        program = f"source {file}; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return {found.split("\t")[0] for found in done.stdout.splitlines()}

    assert offered("readmap se") == {"search"}
    assert offered("readmap search --sort-") == {"--sort-order", "--sort-memory"}
    assert {"-A", "-z", "--threads"} < offered("readmap mem -") | offered("readmap mem --")
