"""Blocked gzip files (BGZF), written with zlib."""

import struct
import zlib

BLOCK = 65280
EOF_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def blocked(data: bytes, block: int = BLOCK) -> bytes:
    """Compress data as bgzip does; block: plain bytes per block."""
    blocks = []
    for start in range(0, len(data), block):
        piece = data[start : start + block]
        body = zlib.compress(piece, 1, -15)
        head = struct.pack("<4sIBBH2sHH", b"\x1f\x8b\x08\x04", 0, 0, 255, 6, b"BC", 2, len(body) + 25)
        blocks.append(head + body + struct.pack("<II", zlib.crc32(piece), len(piece)))
    return b"".join(blocks) + EOF_BLOCK
