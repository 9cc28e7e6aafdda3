"""Imported before NumPy by the command, which multiplies no matrices.

NumPy's OpenBLAS starts a thread for each processor, and they spin: two seconds of CPU a command on sixteen processors.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
