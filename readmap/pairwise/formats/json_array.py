"""A JSON array with an object a pair; null stands for what is unknown or not there."""

from __future__ import annotations

import json

from readmap.pairwise.formats.fields import NAMES, values
from readmap.pairwise.results import Result


def record(result: Result) -> bytes:
    """An object, in one line."""
    return json.dumps(dict(zip(NAMES, values(result), strict=True))).encode()
