"""Smith-Waterman of two sequences of any length, and of batches of pairs.

Called as a function, `readmap.compare(query, target)` is `readmap.compare.api.compare(query, target)`: the two share a
name, and a package that is imported would hide the function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """This package, as a function too."""

    def __call__(self, *sequences: Any, **options: Any) -> Any:
        # Loaded when asked for, as all public names are.
        from readmap.compare.api import compare

        return compare(*sequences, **options)


sys.modules[__name__].__class__ = _Callable
