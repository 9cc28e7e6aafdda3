import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from readmap.formats import atomic_files
from readmap.formats.atomic_files import (
    UNFINISHED,
    create_temporary_file,
    replace_folder,
    restore_folder,
    restore_folders,
    temporary_folder,
)
from readmap.formats.output import open_output


def make(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "file").write_text(text)
    return folder


def interrupt_call(monkeypatch: pytest.MonkeyPatch, name: str, call: int, is_before: bool) -> list[str]:
    """Let the given call of a function raise KeyboardInterrupt, before or after its effect; return the calls made."""
    module, attribute = name.split(".")
    usual, calls = getattr(sys.modules[module], attribute), list[str]()

    def interrupted(*given: Any, **named: Any) -> Any:
        calls.append(name)
        number = len(calls)
        done = None if is_before and number == call else usual(*given, **named)
        if number == call:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(name, interrupted)
    return calls


@pytest.fixture(params=["exchanged", "in turn"])
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems that support, and do not support, exchanging two folders."""
    if request.param == "in turn":
        monkeypatch.setattr(atomic_files, "_exchange", lambda new, target: False)


def test_a_folder_is_replaced(exchange: None, tmp_path: Path) -> None:
    new, target = make(tmp_path / "new", "new"), make(tmp_path / "target", "old")
    replace_folder(new, target)
    assert (target / "file").read_text() == "new"
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_leaves_the_old_or_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, before: bool
) -> None:
    """Without an exchange, a signal may arrive before or after each of two renames."""
    new, target = make(tmp_path / "new", "new"), make(tmp_path / "target", "old")
    monkeypatch.setattr(atomic_files, "_exchange", lambda new, target: False)
    interrupt_call(monkeypatch, "os.rename", call, before)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(new, target)
    assert (target / "file").read_text() == ("new" if call == 2 and not before else "old")


def test_restoring_a_folder_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.readmap", "b.readmap"):
        make(tmp_path / f".{name}.replaced", name)
    make(tmp_path / "b.readmap", "new")
    restore_folder(tmp_path / "a.readmap")
    assert (tmp_path / "a.readmap" / "file").read_text() == "a.readmap"
    os.rename(tmp_path / "a.readmap", tmp_path / ".a.readmap.replaced")
    monkeypatch.chdir(tmp_path)
    restore_folders(".readmap")
    assert (tmp_path / "a.readmap" / "file").read_text() == "a.readmap"
    assert (tmp_path / "b.readmap" / "file").read_text() == "new"


KILLED = """
import os, signal, sys
from readmap.formats.output import open_output
from readmap.formats.atomic_files import temporary_folder
with open_output(sys.argv[1]) as output, temporary_folder(sys.argv[2]) as folder:
    output.write(b"half")
    (folder / "array.npy").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    file, folder = tmp_path / "out.sam", tmp_path / "ref.readmap"
    subprocess.run([sys.executable, "-c", KILLED, str(file), str(folder)], check=False)
    assert len(list(tmp_path.glob(f".*{UNFINISHED}"))) == 2
    (tmp_path / ".out.sam.notes").write_text("a user's")
    with open_output(str(file)) as first, temporary_folder(folder) as beside, open_output(str(file)) as second:
        assert len(list(tmp_path.glob(f".*{UNFINISHED}"))) == 3  # files of running processes stay
        assert beside.is_dir()
        first.write(b"first")
        second.write(b"second")
        first.commit()
        second.commit()
    assert file.read_text() == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.sam.notes", "out.sam"]


def test_a_finished_file_is_not_removed_by_other_runs(tmp_path: Path) -> None:
    """It is closed, but stays locked until it is committed."""
    path = str(tmp_path / "out.sam")
    with open_output(path) as output:
        output.write(b"all")
        output.finish()
        os.close(create_temporary_file(path)[0])
        output.commit()
    assert (tmp_path / "out.sam").read_text() == "all"


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "behind"])
@pytest.mark.parametrize("name", ["os.mkdir", "os.open", "shutil.rmtree"])
def test_an_interrupted_removal_of_a_folder_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_before: bool
) -> None:
    calls = interrupt_call(monkeypatch, name, 1, is_before)
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path / "target") as folder:
        (folder / "file").touch()
    monkeypatch.undo()
    assert calls
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "behind"])
@pytest.mark.parametrize(("name", "call"), [("fcntl.flock", 1), ("os.open", 2), ("os.close", 1), ("os.unlink", 1)])
def test_an_interrupted_removal_of_a_file_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int, is_before: bool
) -> None:
    """os.open: the second call, after the one that checks the target."""
    calls = interrupt_call(monkeypatch, name, call, is_before)
    with pytest.raises(KeyboardInterrupt), open_output(str(tmp_path / "target")) as output:
        output.write(b"text")
    monkeypatch.undo()
    assert len(calls) >= call
    assert not [*tmp_path.iterdir()]
