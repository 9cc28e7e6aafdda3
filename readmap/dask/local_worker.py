"""What Dask has a worker of a cluster of this machine do when it begins."""

from __future__ import annotations

import logging
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave what ends the search to the search: a terminal interrupts workers too, and of tasks that are cancelled then
    Dask would warn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)
