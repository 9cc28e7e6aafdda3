"""Runs one command of samtools: `python samtools_process.py sort -m 1G -`. It imports nothing of readmap."""

import sys
from typing import Any

import pysam
from pysam.utils import SamtoolsError


def main(command: str, *arguments: str) -> int:
    """The exit code; what the command says on standard error is printed there once it has failed."""
    # pysam takes C's stdout away, by which head prints; the other commands write to the descriptor.
    output: dict[str, Any] = {"save_stdout": "/dev/stdout"} if command == "head" else {"catch_stdout": False}
    try:
        getattr(pysam.samtools, command)(*arguments, **output)
    except SamtoolsError as error:
        print(str(error.value).partition("stderr=")[2], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
