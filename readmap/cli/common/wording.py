"""Numbers, names and tables as a user reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from readmap.backend import Backend


def format_bytes(count: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "KiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} MiB" if count < 1024 else f"{count / 1024:.2f} GiB"


def format_duration(seconds: float) -> str:
    """A time that is not known exactly, in words."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def percent(part: int, whole: int) -> str:
    """A part of a whole in percent."""
    return f"{part / max(whole, 1):.2%}"


def device_in_words(backend: Backend) -> str:
    """A device and, where they are several, the threads that compute."""
    return f"cpu with {backend.threads} threads" if backend.name == "cpu" and backend.threads > 1 else backend.name


def devices_in_words(backends: Sequence[Backend]) -> str:
    """The same of devices that work together."""
    return ", ".join(map(device_in_words, backends))


def printable(text: str) -> str:
    """Text that any stream takes: file names may hold bytes that are no UTF-8."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def table(rows: Sequence[tuple[str, ...]], alignments: str) -> str:
    """Rows in columns. Not by rich, which takes 40 s for 100,000 contigs and finds markup in their names."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(alignments, widths, strict=True))
    return "\n".join(form.format(*row).rstrip() for row in rows)
