"""Types and constants of the shared fixtures."""

import pathlib
from collections.abc import Callable

#: The type of the fixture `once`.
Once = Callable[[str, Callable[[pathlib.Path], object]], pathlib.Path]

#: By default only the first is compiled for: code that compiles for one seldom fails for another.
ARCHITECTURES = ["sm_90", "sm_80", "sm_100", "sm_120", "compute_90"]
