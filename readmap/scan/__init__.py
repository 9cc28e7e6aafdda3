"""A query against every sequence of a database, by Smith-Waterman.

Called as a function, `readmap.scan(queries, database)` is `readmap.scan.api.scan(queries, database)`: the two share a
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
        from readmap.scan.api import scan

        return scan(*sequences, **options)


sys.modules[__name__].__class__ = _Callable
