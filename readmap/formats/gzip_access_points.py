"""Places from which gzip data can be inflated, kept while all of it is inflated once.

text      |             member 1             |   member 2
points    ^          ^           ^           ^
          a member   a block, with the text in front of it that it may copy from
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

#: How far back a block copies from (RFC 1951).
WINDOW_BYTES = 1 << 15


@dataclass(frozen=True)
class AccessPoint:
    """Where inflating can begin: at a member, or at a block within one.

    Attributes:
        text: bytes of text in front of it.
        bit: of the file, where the block begins; where a member does, that of its header.
        member, member_text: where its member begins, a byte of the file and of the text.
        checksum: CRC-32 of the member's text in front of it.
        window: the last of that text, 32 KiB or all, compressed by zlib; none at a member.
    """

    text: int
    bit: int
    member: int
    member_text: int
    checksum: int = 0
    window: bytes = b""

    @property
    def is_member(self) -> bool:
        """Whether a member begins there."""
        return self.bit == 8 * self.member

    @property
    def skipped(self) -> int:
        """Text between its member's begin and here."""
        return self.text - self.member_text

    def inflated_window(self) -> bytes:
        """The text in front of it, 32 KiB at most; raises zlib.error where it is damaged."""
        return zlib.decompressobj().decompress(self.window, WINDOW_BYTES) if self.window else b""


class AccessPoints:
    """The points of a file, about one in so many bytes of text, filled while it is inflated.

    found: in their order. The first one is where the first member begins.
    """

    def __init__(self, spacing: int) -> None:
        """spacing: bytes of text from one point to the next, or more."""
        self.found: list[AccessPoint] = []
        self._spacing = spacing

    def is_due(self, text: int) -> bool:
        """Whether a point behind so many bytes of text is wanted."""
        return not self.found or text >= self.found[-1].text + self._spacing

    def add(self, point: AccessPoint) -> None:
        """Keep a point that is due; it lies behind all others."""
        self.found.append(point)

    def at_member(self, place: int, text: int) -> None:
        """A member begins at a byte of the file, behind so many bytes of text."""
        if self.is_due(text):
            self.add(AccessPoint(text, 8 * place, place, text))
