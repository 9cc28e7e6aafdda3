"""Runs one command of samtools: `python samtools_process.py PARENT sort -m 1G -`. It imports nothing of readmap."""

import ctypes
import os
import signal
import sys

#: Of Linux's prctl: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def main(parent: str, command: str, *arguments: str) -> int:
    """The exit code; what the command says on standard error is printed there once it has failed.

    parent: the number of the process whose end is this one's too, however it ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it had ended before
            return 1
    import pysam
    from pysam.utils import SamtoolsError

    try:
        getattr(pysam.samtools, command)(*arguments, catch_stdout=False)
    except SamtoolsError as error:
        print(str(error.value).partition("stderr=")[2], file=sys.stderr)
        return 1
    except OSError as error:  # of pysam's own files
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
