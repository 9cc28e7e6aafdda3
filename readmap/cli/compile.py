"""readmap compile: compile the kernels before their first use."""

import errno
import functools
import itertools
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from readmap.backend.compilation import cache, nvrtc
from readmap.backend.compilation import host_compiler as compiler
from readmap.backend.compilation.declarations import GENERIC
from readmap.backend.compilation.signatures import generic_types
from readmap.backend.compilation.sources import modules
from readmap.backend.machine import available_processors
from readmap.cli.common.options import choice, command, declared, flag, option, option_group
from readmap.cli.common.report import Report, ReportOptions
from readmap.cli.common.shared_options import threads_option
from readmap.errors import UsageError
from readmap.formats.wording import format_bytes

EXAMPLES = """[bold]Example[/], lines of a Dockerfile
  RUN readmap compile --into /opt/readmap
  ENV READMAP_CACHE=/opt/readmap"""

#: Compiles one file if it does not exist, and returns its path.
Job = Callable[[], Path]


@option_group()
class CompileOptions:
    """All options of readmap compile."""

    into: str | None = option("--into", "Output folder (default: $READMAP_CACHE or ~/.cache/readmap).", "DIR")
    cpu: bool = flag("--cpu/--no-cpu", "Compile for all CPUs of an architecture (default: yes).", default=True)
    machine: str | None = choice(
        "--machine",
        "x86_64 or aarch64 (default: of this machine); others need a cross compiler in $CXX.",
        compiler.LEVELS,
    )
    gpu: bool | None = flag("--gpu/--no-gpu", "Compile for GPUs (default: if NVRTC is installed).", default=None)
    arch: str = declared(
        typer.Option(
            ",".join(nvrtc.ARCHITECTURES),
            "--arch",
            metavar="SM,...",
            help="GPU architectures; compute_NN is PTX, which the drivers of newer GPUs compile.",
        )
    )
    threads: int | None = threads_option()
    report: ReportOptions


@command
def compile(context: typer.Context, options: CompileOptions) -> None:
    """Compile all kernels, for example for a container image, and print the names of the files.

    With READMAP_CACHE=DIR, readmap then needs neither a C++ compiler nor NVRTC, and DIR may be read-only.
    """
    architectures = _architectures(options.arch)
    folder = Path(options.into) if options.into else cache.folder()
    _make_writable(folder)
    with Report(context.obj, options.report) as report:
        jobs = _jobs(compiler.library, compiler.levels(options.machine), folder, for_gpu=False) if options.cpu else []
        if options.gpu or (options.gpu is None and nvrtc.load_nvrtc()):
            jobs += _jobs(nvrtc.cubin, architectures, folder, for_gpu=True)
        elif options.gpu is None:
            report.say("nothing compiled for GPUs: NVRTC is not installed (pip install 'readmap[cuda13]', or cuda12)")
        with report.progress() as show:
            files = _run(jobs, options.threads or available_processors(), show)
        if options.report.prints:
            print("\n".join(map(str, files)))
        size = sum(file.stat().st_size for file in files)
        report.say(f"{len(files)} files, {format_bytes(size)}, in {folder}; READMAP_CACHE={folder.resolve()} uses them")
        report.finish({"folder": str(folder), "files": {file.name: file.stat().st_size for file in files}})


def _architectures(option: str) -> list[str]:
    """Return the GPU architectures of --arch; raise UsageError if a name is invalid."""
    names = option.split(",")
    wrong = [name for name in names if not re.fullmatch(r"sm_\d{2,3}[af]?|compute_\d{2,3}", name)]
    if wrong:
        raise UsageError(f"--arch {option}: expected names such as sm_90 with commas between, found {wrong[0]!r}")
    return names


def _make_writable(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "no permission to write there", str(folder))


def _jobs(compiled: Callable[..., Path], targets: list[str], folder: Path, for_gpu: bool) -> list[Job]:
    """Return a call of `compiled` for each module, combination of types and target (CPU level or GPU architecture)."""
    return [
        functools.partial(compiled, module, tuple(zip(names, types, strict=True)), target, folder)
        for module in modules(for_gpu=for_gpu)
        for names in [generic_types(module)]
        for types in itertools.product(*(GENERIC[name] for name in names))
        for target in targets
    ]


def _run(jobs: list[Job], threads: int, show: Callable[[str], None]) -> list[Path]:
    """Run all jobs in threads, show the progress, and return the files in the order of the jobs."""
    pool = ThreadPoolExecutor(threads)
    try:
        files = []
        for file in pool.map(lambda job: job(), jobs):
            files.append(file)
            show(f"compiling, {len(files)} of {len(jobs)} files")
        return files
    finally:
        pool.shutdown(cancel_futures=True)
