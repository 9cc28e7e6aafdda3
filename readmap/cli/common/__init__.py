"""Parts that commands share. This module is imported before NumPy.

NumPy's OpenBLAS would start a thread on each processor, and these threads spin: 2 s of CPU time a command on 16
processors. No command multiplies matrices.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
