"""Contents of the wheel and the sdist, and runs of the wheel outside the checkout."""

import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pysam
import pytest
from packaging.requirements import Requirement
from session import Once

from readmap.backend.compilation import cache, host_compiler
from readmap.backend.compilation.signatures import GENERIC, generic_types
from readmap.backend.compilation.sources import modules

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files_under(folder: str, suffixes: tuple[str, ...]) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.suffix in suffixes}


def build(target: str, source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (product,) = folder.iterdir()
    return product


@pytest.fixture(scope="session")
def wheel(once: Once) -> pathlib.Path:
    (product,) = once("wheel", lambda folder: build("wheel", ROOT, folder)).iterdir()
    return product


@pytest.fixture(scope="session")
def installed(wheel: pathlib.Path, once: Once) -> dict[str, str]:
    """Return the environment of a process that imports the installed wheel instead of the checkout.

    It uses the normal cache: kernels compiled without a missing header would not be found there.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    site = once("site", lambda site: subprocess.run([*pip, "--target", str(site), str(wheel)], check=True))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("READMAP_", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(site), "READMAP_CACHE": str(cache.folder())}


def python(environment: dict[str, str], folder: pathlib.Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_the_package_and_the_kernels(wheel: pathlib.Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    kernels = {f"readmap/{name}" for name in files_under("kernels", (".cu", ".cuh", ".cpp"))}
    assert kernels
    published = {f"readmap/database/published/{name}" for name in ("BLOSUM62", "proteins.tsv", "nucleotides.tsv")}
    assert kernels | published | files_under("readmap", (".py", ".typed")) <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"readmap"}


def test_wheel_has_a_bill_of_its_materials(wheel: pathlib.Path) -> None:
    """The bill names readmap and all requirements in pyproject.toml, at the path of PEP 770."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        bom = json.loads(archive.read(f"readmap-{version}.dist-info/sboms/readmap.cdx.json"))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    own = bom["metadata"]["component"]
    assert (own["name"], own["version"], own["purl"]) == ("readmap", version, f"pkg:pypi/readmap@{version}")
    assert own["licenses"] == [{"expression": project["license"]}]
    needed = {"": project["dependencies"], **project["optional-dependencies"]}
    asked = {(extra, Requirement(line)) for extra, lines in needed.items() for line in lines}
    found = {
        (each["name"].removeprefix("readmap:requirement").lstrip(":"), Requirement(each["value"])): component
        for component in bom["components"]
        for each in component["properties"]
    }
    assert found.keys() == asked
    for (_, requirement), component in found.items():
        assert (component["name"], component["purl"]) == (requirement.name, f"pkg:pypi/{requirement.name}")
        is_needed = requirement in map(Requirement, project["dependencies"])
        assert component["scope"] == ("required" if is_needed else "optional")
    (dependencies,) = bom["dependencies"]
    assert dependencies == {"ref": own["bom-ref"], "dependsOn": [each["bom-ref"] for each in bom["components"]]}


def test_wheel_with_compiled_kernels(
    tmp_path: pathlib.Path, demo_index: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel as built by scripts/wheels has a platform tag, and neither compiles nor writes files."""
    compiled, share = tmp_path / "compiled", tmp_path / "share"
    compiled.mkdir()
    for module in modules(for_gpu=False):
        for types in itertools.product(*(GENERIC[name] for name in generic_types(module))):
            shutil.copy2(host_compiler.library(module, tuple(zip(generic_types(module), types, strict=True))), compiled)
    (share / "man/man1").mkdir(parents=True)
    (share / "man/man1/readmap.1").write_text(".TH READMAP 1\n")
    for name, value in (("COMPILED", compiled), ("SHARE", share), ("PLATFORM", "manylinux_2_17_x86_64")):
        monkeypatch.setenv(f"READMAP_{name}", str(value))
    wheel = build("wheel", ROOT, tmp_path / "wheel")
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"readmap/compiled/{file.name}" for file in compiled.iterdir()} <= set(names)
    assert any(name.endswith(".data/data/share/man/man1/readmap.1") for name in names)
    site, bare = tmp_path / "site", tmp_path / "bare"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    bare.mkdir()
    given = {"PYTHONPATH": str(site), "PATH": str(bare), "READMAP_CACHE": str(bare), "HOME": "/nonexistent"}
    reads = str(ROOT / "data/demo.fq.gz")
    records = python(given, tmp_path, "-m", "readmap", "search", reads, "-x", str(demo_index), "--device", "cpu", "-q")
    assert records.count("\n") == 5006
    assert list(bare.iterdir()) == []


def test_wheel_built_from_the_sdist_is_the_same(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # missing in Python 3.11.3
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    assert {"scripts/demo", "data/demo.fa.gz", "tests/conftest.py", "LICENSE", "README.md"} <= {
        str(path.relative_to(source)) for path in source.rglob("*")
    }
    again = build("wheel", source, tmp_path / "wheel")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_version_is_the_same_everywhere(wheel: pathlib.Path, installed: dict[str, str], tmp_path: pathlib.Path) -> None:
    version = python(installed, tmp_path, "-c", "import readmap; print(readmap.__version__)").strip()
    assert version in python(installed, tmp_path, "-m", "readmap", "--version").split()
    assert wheel.name.split("-")[1] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_wheel_maps_reads_outside_the_checkout(installed: dict[str, str], tmp_path: pathlib.Path) -> None:
    where = python(installed, tmp_path, "-c", "import readmap; print(readmap.__file__)").strip()
    assert pathlib.Path(where).is_relative_to(installed["PYTHONPATH"])

    letters = random.Random(1)
    contigs = {name: "".join(letters.choices("ACGT", k=3_000)) for name in ("one", "two")}
    (tmp_path / "ref.fa").write_text("".join(f">{name}\n{sequence}\n" for name, sequence in contigs.items()))
    places = [(name, start, strand) for name in contigs for start in range(0, 2_901, 145) for strand in (False, True)]
    complement = str.maketrans("ACGT", "TGCA")
    with (tmp_path / "reads.fq").open("w") as reads:
        for i, (name, start, reverse) in enumerate(places):
            sequence = contigs[name][start : start + 100]
            if reverse:
                sequence = sequence.translate(complement)[::-1]
            reads.write(f"@{i}\n{sequence}\n+\n{'I' * 100}\n")

    python(installed, tmp_path, "-m", "readmap", "index", "ref.fa", "-q")
    python(installed, tmp_path, "-m", "readmap", "search", "reads.fq", "--device", "cpu", "-q", "-o", "out.sam")
    with pysam.AlignmentFile(str(tmp_path / "out.sam")) as sam:
        found = [(record.reference_name, record.reference_start, record.is_reverse) for record in sam]
    assert found == places


def test_the_command_keeps_the_threads_of_numpys_libraries_to_one() -> None:
    """Only the command sets the variable, before NumPy is loaded."""
    program = "import sys, os, readmap{}; print('numpy' in sys.modules, os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for module, expected in (("", "False None"), (".cli.common", "True 1"), (", numpy", "True None")):
        command = [sys.executable, "-c", program.format(module)]
        output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        assert output.strip() == expected
