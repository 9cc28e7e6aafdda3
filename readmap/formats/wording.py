"""Numbers, names and tables as text for messages and reports."""

import math
import os
import re
from collections.abc import Sequence

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def decode_name(name: bytes) -> str:
    """Return a name as text for messages and JSON; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    """Return text that any stream can encode: file names may contain bytes that are not UTF-8."""
    return decode_name(os.fsencode(text))


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 read" or "2,000 reads"; plural: default `noun` + "s"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_bytes(count: float) -> str:
    """Return a size in bytes, KiB, MiB or GiB."""
    for unit in ("bytes", "KiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} MiB" if count < 1024 else f"{count / 1024:.2f} GiB"


def parse_size(text: str) -> int:
    """Parse a size such as 500M or 1.5G, in powers of 1024, to bytes; raises ValueError if it is invalid."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if size < 1:
        raise ValueError(f"{text}: expected a size such as 8G or 500M")
    return size


def format_duration(seconds: float) -> str:
    """Return an estimated time in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def format_number(value: float) -> str:
    """Return four significant digits, or - for NaN."""
    return "-" if math.isnan(value) else f"{value:.4g}"


def format_percent(share: float) -> str:
    """Return a share in percent with two decimals."""
    return f"{100 * share:.2f}%"


def format_ratio(part: int, whole: int) -> str:
    """Return `part` of `whole` in percent with two decimals; 0.00% of nothing."""
    return f"{part / max(whole, 1):.2%}"


def format_percent_4(share: float) -> str:
    """Return a share in percent with four significant digits, or - for NaN."""
    return "-" if math.isnan(share) else f"{100 * share:.4g}%"


def format_percent_3(share: float) -> str:
    """Return a share in percent with three significant digits, or - for NaN."""
    return "-" if math.isnan(share) else f"{100 * share:.3g}%"


def format_si(value: float) -> str:
    """Return three significant digits with a prefix k, M or G; below 10,000 the number without a prefix."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size if unit == "k" else abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.4g}"


def format_table(rows: Sequence[tuple[str, ...]], alignments: str) -> str:
    """Return rows in columns; alignments: < or > for each column."""
    # Not by rich, which takes 40 s for 100,000 contigs and interprets their names as markup.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(alignments, widths, strict=True))
    return "\n".join(form.format(*row).rstrip() for row in rows)
