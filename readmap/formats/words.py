"""Names and counts in words."""

from __future__ import annotations


def decode_name(name: bytes) -> str:
    """A name as messages and JSON have it: it may hold bytes that are no UTF-8."""
    return name.decode("utf-8", "backslashreplace")


def pluralize(count: int, what: str, several: str = "") -> str:
    """A number of things; several: of more or less than one, where that is not `what` with an s."""
    return f"{count:,} {what if count == 1 else several or what + 's'}"
