"""What the tests of a run share."""

import pathlib
from collections.abc import Callable

#: Makes a folder by its name, by whichever of the parallel workers asks for it first.
Once = Callable[[str, Callable[[pathlib.Path], object]], pathlib.Path]

#: One is compiled for by default: what does not compile for it seldom compiles for another.
ARCHITECTURES = ["sm_90", "sm_80", "sm_100", "sm_120", "compute_90"]
