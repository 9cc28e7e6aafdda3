"""Run one samtools command, as a program that imports nothing of readmap: samtools_process.py PARENT sort -m 1G -."""

import ctypes
import os
import signal
import sys

#: Option of prctl(2): the signal sent to this process when its parent ends.
PR_SET_PDEATHSIG = 1


def main(parent: str, command: str, *arguments: str) -> int:
    """Run the command and return the exit code; print its error messages. parent: ID of the process to end with."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # the parent has ended already
            return 1
    import pysam
    from pysam.utils import SamtoolsError

    try:
        getattr(pysam.samtools, command)(*arguments, catch_stdout=False)
    except SamtoolsError as error:
        print(str(error.value).partition("stderr=")[2], file=sys.stderr)
        return 1
    except OSError as error:  # from pysam's temporary files
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
