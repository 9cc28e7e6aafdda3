"""Access points: positions in gzip data where decompression can start, collected during one full decompression.

text      |             member 1             |   member 2
points    ^          ^           ^           ^
          a member   a deflate block, with the window of text that it may refer to
"""

import zlib
from dataclasses import dataclass

#: The largest distance of a deflate back-reference (RFC 1951).
WINDOW_BYTES = 1 << 15


@dataclass(frozen=True)
class AccessPoint:
    """A position where decompression can start: a gzip member, or a deflate block inside a member."""

    text: int  # offset in the decompressed text
    bit: int  # offset in the file, in bits, of the block or the header of the member
    member: int  # offset of the enclosing member in the file, in bytes
    member_text: int  # offset of the enclosing member in the text
    checksum: int = 0  # CRC-32 of the member's text before the point
    window: bytes = b""  # the last 32 KiB of that text, compressed with zlib

    @property
    def is_member(self) -> bool:
        return self.bit == 8 * self.member

    @property
    def skipped(self) -> int:
        """The bytes of text between the start of the member and the point."""
        return self.text - self.member_text

    def inflated_window(self) -> bytes:
        return zlib.decompressobj().decompress(self.window, WINDOW_BYTES) if self.window else b""


class AccessPoints:
    """The access points of a file, ascending from its first member, collected while the file is decompressed."""

    def __init__(self, spacing: int) -> None:
        """spacing: the minimum bytes of text between two points."""
        self.found: list[AccessPoint] = []
        self._spacing = spacing

    def is_due(self, text: int) -> bool:
        """Return True if a point at this offset of the text is far enough from the last point."""
        return not self.found or text >= self.found[-1].text + self._spacing

    def add(self, point: AccessPoint) -> None:
        self.found.append(point)

    def at_member(self, position: int, text: int) -> None:
        """Add the member that starts at a byte of the file and of the text, if a point is due."""
        if self.is_due(text):
            self.add(AccessPoint(text, 8 * position, position, text))
