"""Outputs of commands by their names."""

from __future__ import annotations

from readmap.bam.blocks import block_codec
from readmap.formats.bgzf import LEVEL, BgzfOutput
from readmap.formats.output import ByteSink, open_output

BAM_ENDING = ".bam"

#: Endings of names of compressed outputs, BAM among them.
COMPRESSED = (BAM_ENDING, ".gz", ".bgz")


def open_plain(path: str | None, threads: int, level: int | None = None) -> ByteSink:
    """The output as it is written, or compressed where its name says so; level: as open_blocks has it."""
    return open_blocks(path, threads, level) if path and path.endswith(COMPRESSED) else open_output(path, threads)


def open_blocks(path: str, threads: int, level: int | None = None) -> BgzfOutput:
    """The output, compressed; level: libdeflate's, None for the usual one."""
    return BgzfOutput(open_output(path, threads), threads, level or LEVEL, block_codec())
