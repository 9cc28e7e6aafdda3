"""Outputs of commands by their names."""

from __future__ import annotations

from readmap.bam.blocks import block_codec
from readmap.formats.bgzf import BgzfOutput
from readmap.formats.output import ByteSink, open_output

BAM_ENDING = ".bam"

#: Endings of names of compressed outputs, BAM among them.
COMPRESSED = (BAM_ENDING, ".gz", ".bgz")


def open_plain(path: str | None, threads: int) -> ByteSink:
    """The output as it is written, or compressed where its name says so."""
    return open_blocks(path, threads) if path and path.endswith(COMPRESSED) else open_output(path, threads)


def open_blocks(path: str, threads: int) -> BgzfOutput:
    """The output, compressed."""
    return BgzfOutput(open_output(path, threads), threads, codec=block_codec())
