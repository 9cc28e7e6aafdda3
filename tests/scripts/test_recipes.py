"""The recipes agree with the checkout, and their commands run; workflow modules run without the workflow system."""

from __future__ import annotations

import fnmatch
import os
import random
import re
import runpy
import shlex
import string
import subprocess
import sys
import textwrap
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pysam
import pytest
from examples import draw_pairs, fasta, fastq, random_bases
from packaging.requirements import Requirement

from readmap import __version__
from readmap.backend.compilation import cache

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "scripts/recipes"

#: conda's names of PyPI packages, if they differ.
CONDA = {"isal": "python-isal"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
Requirements = dict[str, str]


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions (word, arguments) with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (RECIPES / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line.strip()]


def test_dockerfile_copies_what_is_there() -> None:
    """Copied paths exist and are not excluded by .dockerignore."""
    let_in = [line[1:] for line in (RECIPES / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"]
    sources = [
        source
        for word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    ]
    assert set(sources) == set(let_in)
    for source in sources:
        assert (ROOT / source).exists()
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [PROJECT["readme"], *PROJECT["license-files"], *hook["only-include"], hook["hooks"]["custom"]["path"]]
    for path in needed:
        assert path.split("/")[0] in sources


def test_dockerfile_runs_bash() -> None:
    runs = [rest for word, rest in instructions() if word == "RUN"]
    assert runs
    for run in runs:
        assert subprocess.run(["bash", "-n", "-c", run]).returncode == 0


def test_image_is_of_one_user_and_read_only() -> None:
    """The image runs as non-root, without a compiler, with kernels in READMAP_CACHE."""
    found = instructions()
    last = found[max(i for i, (word, _) in enumerate(found) if word == "FROM") :]
    words = dict(last)
    (compiled,) = (
        re.search(r"readmap compile --into (\S+)", rest) for word, rest in found if "readmap compile" in rest
    )
    assert compiled is not None
    assert f"READMAP_CACHE={compiled[1]}" in words["ENV"]
    assert f"--from=build {compiled[1]} {compiled[1]}" in [rest for word, rest in last if word == "COPY"]
    assert words["USER"] == "1000:1000"
    assert words["ENTRYPOINT"] == '["readmap"]'
    assert "g++" not in words["RUN"]
    extras = PROJECT["optional-dependencies"]
    named = re.findall(r"EXTRA=(\w+)|or (cuda\d+)", (RECIPES / "Dockerfile").read_text())
    assert {one or other for one, other in named} == {"cuda12", "cuda13"} <= extras.keys()


def listed(text: str) -> Requirements:
    """Return the version specifiers of a YAML list of packages."""
    lines = re.findall(r"^ +- ([\w.-]+) ?((?:[<>=~!]=?[^#\n]*)?)(?:\s+#.*)?$", text, re.MULTILINE)
    return {name: specifier.strip() for name, specifier in lines}


def wanted(lines: list[str]) -> Requirements:
    """Return the version specifiers of requirements of pyproject.toml by conda's package names."""
    known = map(Requirement, lines)
    return {CONDA.get(each.name, each.name): str(each.specifier) for each in known}


def test_conda_wants_what_pyproject_wants() -> None:
    recipe = (RECIPES / "conda/meta.yaml").read_text()
    host, run = re.search(r"  host:\n(.*)  run:\n(.*)\ntest:", recipe, re.DOTALL).groups()  # type: ignore[union-attr]
    needed = wanted(PROJECT["dependencies"]) | {"python": PROJECT["requires-python"]}
    assert listed(run) == needed
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert listed(host) == needed | wanted(build) | {"pip": ""}
    (entry_point,) = re.findall(r"- (\w+ = \S+)$", recipe, re.MULTILINE)
    assert entry_point == f"readmap = {PROJECT['scripts']['readmap']}"


def test_environment_has_what_pyproject_wants() -> None:
    found = listed((RECIPES / "environment.yml").read_text())
    needed = wanted(PROJECT["dependencies"]) | {"python": PROJECT["requires-python"]}
    assert {name: found.get(name) for name in needed} == needed


def test_conda_puts_kernels_where_the_package_looks() -> None:
    script = (RECIPES / "conda/build.sh").read_text()
    assert f'"$SP_DIR/{cache.SHIPPED.relative_to(cache.SHIPPED.parents[1])}"' in script
    assert os.access(RECIPES / "conda/build.sh", os.X_OK)
    assert subprocess.run(["bash", "-n", RECIPES / "conda/build.sh"]).returncode == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference, and pairs, a tenth of them duplicated."""
    folder = tmp_path_factory.mktemp("recipes")
    draw = random.Random(3)
    contigs = {"one": random_bases(draw, 20_000), "two": random_bases(draw, 15_000)}
    (folder / "genome.fa").write_bytes(fasta(contigs))
    pairs = draw_pairs(draw, contigs, 200)
    for mate in range(2):
        reads = [pair[mate] for pair in pairs]
        again = [replace(read, name=f"again{read.name}") for read in reads[::10]]
        (folder / f"a.{mate + 1}.fq").write_bytes(fastq([*reads, *again]))
    return folder


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a bash script in a folder, with this environment's commands and without GPUs."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def run(text: str, folder: Path) -> str:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def duplicates(path: Path) -> int:
    with pysam.AlignmentFile(str(path)) as alignments:
        return sum(record.is_duplicate for record in alignments)


class Named(list[str]):
    """Files of a rule by index and by name, as Snakemake provides them."""

    def __init__(self, **files: Any) -> None:
        super().__init__(file for each in files.values() for file in ([each] if isinstance(each, str) else each))
        self.files = files

    def __getattr__(self, name: str) -> Any:
        return self.files[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.files.get(name, default)


class Quoted(string.Formatter):
    """Snakemake's format: lists separated by blanks, and the conversion `q`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        words = [str(each) for each in (value if isinstance(value, list) else [value])]
        return " ".join(map(shlex.quote, words) if format_spec == "q" else words)


def wrap(name: str, run: Callable[..., str], folder: Path, **rule: Any) -> None:
    """Run a wrapper as Snakemake runs it for a rule."""

    def shell(text: str) -> None:
        run(Quoted().vformat(text, (), sys._getframe(1).f_globals), folder)

    module = types.ModuleType("snakemake.shell")
    module.shell = shell  # type: ignore[attr-defined]
    log = types.SimpleNamespace(log_fmt_shell=lambda stdout, stderr: "> log 2>&1")
    given = types.SimpleNamespace(**{"params": {}, "resources": {}, "threads": 2, **vars(log), **rule})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "snakemake", types.ModuleType("snakemake"))
        patch.setitem(sys.modules, "snakemake.shell", module)
        runpy.run_path(str(RECIPES / f"snakemake/{name}/wrapper.py"), {"snakemake": given})


def test_snakemake_wrappers(data: Path, tmp_path: Path, shell: Callable[..., str]) -> None:
    wrap("index", shell, tmp_path, input=Named(ref=str(data / "genome.fa")), output=Named(index="genome.readmap"))
    reads = [str(data / f"a.{mate}.fq") for mate in (1, 2)]
    written = Named(aln="a b.bam", idx="a b.bam.bai", metrics="a.txt", report="a.html", json="a.json")
    params = {"sort": "coordinate", "duplicates": "mark", "extra": r"-R '@RG\tID:a\tSM:a'"}
    given = {"input": Named(reads=reads, idx="genome.readmap"), "resources": {"mem_mb": 2000}}
    wrap("search", shell, tmp_path, output=written, params=params, **given)
    for file in written:
        assert (tmp_path / file).stat().st_size > 0
    assert duplicates(tmp_path / "a b.bam") >= 30
    given["input"] = Named(reads=reads[0], idx="genome.readmap")
    wrap("search", shell, tmp_path, output=Named(first="a.cram"), params={"sort": "queryname"}, **given)
    assert (tmp_path / "a.cram").exists()


@pytest.mark.parametrize(
    ("params", "reads", "message"),
    [
        ({"sort": "name"}, ["1"], "params.sort: expected none, coordinate, queryname, found 'name'"),
        ({"duplicates": "mark"}, ["1"], 'mark and remove require params.sort="coordinate"'),
        ({}, ["1", "2", "3"], "expected one or two files, found 3"),
    ],
)
def test_snakemake_wrapper_refuses(
    tmp_path: Path, shell: Callable[..., str], params: dict[str, str], reads: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        wrap("search", shell, tmp_path, input=Named(reads=reads, idx="i"), output=Named(aln="a.bam"), params=params)


def module(name: str) -> tuple[str, str, dict[str, tuple[str, bool]]]:
    """Return the script and the stub of a Nextflow module, and the pattern and optionality of each output."""
    text = (RECIPES / f"nf-core/readmap/{name}/main.nf").read_text()
    script, stub = re.findall(r'^    """\n(.*?)^    """$', text, re.DOTALL | re.MULTILINE)
    outputs = re.findall(r'path\(?\s*"([^"]+)"\)?, emit: (\w+)(, optional: true)?$', text, re.MULTILINE)
    return script, stub, {emit: (pattern, bool(optional)) for pattern, emit, optional in outputs}


def evaluated(text: str, values: Mapping[str, str]) -> str:
    """Return Groovy text without its indentation and with its variables replaced."""
    text = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda found: values[found[1]], textwrap.dedent(text))
    return text.replace("\\\\", "\\").replace("\\$", "$")


def expect_outputs(name: str, folder: Path, present: set[str]) -> None:
    """Expect the mandatory outputs and `present`, and a description of each output."""
    outputs = module(name)[2]
    files = os.listdir(folder)
    found = {emit for emit, (pattern, _) in outputs.items() if fnmatch.filter(files, pattern)}
    assert found == present | {emit for emit, (_, optional) in outputs.items() if not optional}
    text = (RECIPES / f"nf-core/readmap/{name}/meta.yml").read_text()
    described = re.findall(r"^  (\w+):$", text[text.index("\noutput:") : text.index("\nauthors:")], re.MULTILINE)
    assert described == list(outputs)
    versions = (folder / "versions.yml").read_text()
    assert versions == f'"READMAP":\n    readmap: {__version__}\n'


def test_nf_core_modules(data: Path, tmp_path: Path, shell: Callable[..., str]) -> None:
    process = {"task.process": "READMAP", "task.cpus": "2", "args": "", "prefix": "genome", "suffix": "bam"}
    for number in (0, 1):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        shell(evaluated(module("index")[number], {**process, "fasta": str(data / "genome.fa")}), folder)
        expect_outputs("index", folder, set())
    values = {**process, "index": str(tmp_path / "index0/genome.readmap"), "prefix": "a", "sorting": "", "metrics": ""}
    reads = [str(data / f"a.{mate}.fq") for mate in (1, 2)]
    sorting = {"sorting": "--sort --report a.html", "metrics": "--metrics a.metrics.txt"}
    runs: list[tuple[str, dict[str, str], set[str]]] = [
        ("single", {"reads": reads[0]}, {"bam"}),
        ("pairs", {"reads": " ".join(reads), "args": "--markdup", **sorting}, {"bam", "bai", "report", "metrics"}),
        ("cram", {"reads": " ".join(reads), "suffix": "cram", **sorting, "metrics": ""}, {"cram", "crai", "report"}),
    ]
    for name, more, present in runs:
        (tmp_path / name).mkdir()
        shell(evaluated(module("search")[0], {**values, **more}), tmp_path / name)
        expect_outputs("search", tmp_path / name, present)
    assert duplicates(tmp_path / "pairs/a.bam") >= 30


def test_nf_core_stub(tmp_path: Path, shell: Callable[..., str]) -> None:
    sorted_files = {"sorted": "touch a.bam.bai a.html", "metrics": "touch a.metrics.txt"}
    values = {"task.process": "READMAP", "prefix": "a", "suffix": "bam", **sorted_files}
    shell(evaluated(module("search")[1], values), tmp_path)
    expect_outputs("search", tmp_path, {"bam", "bai", "report", "metrics"})
