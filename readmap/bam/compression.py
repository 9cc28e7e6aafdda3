"""Outputs of commands by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from readmap.bam.codecs import libdeflate_codec
from readmap.formats.bgzf import LEVEL, BlockOutput, Codec
from readmap.formats.output import ByteSink, open_output

BAM_ENDING = ".bam"

#: Endings of names of compressed text.
COMPRESSED_ENDINGS = (".gz", ".bgz")


class Compression:
    """How the outputs of a run are compressed.

    level: libdeflate's.
    """

    def __init__(self, open_codec: Callable[[], Codec] = libdeflate_codec, level: int | None = None) -> None:
        """open_codec: called for the first output that is compressed. level: None for the usual one."""
        self._open = open_codec
        self.level = level or LEVEL

    @cached_property
    def codec(self) -> Codec:
        """What compresses, one for all outputs."""
        return self._open()

    @property
    def codec_name(self) -> str | None:
        """The name of the codec; None where nothing is compressed."""
        return self.codec.name if "codec" in vars(self) else None


def open_by_ending(path: str | None, threads: int, compression: Compression | None = None) -> ByteSink:
    """The output as it is written, or compressed where its name says so."""
    if path and path.lower().endswith(COMPRESSED_ENDINGS):
        return open_bgzf(path, threads, compression or Compression())
    return open_output(path, threads)


def open_bgzf(path: str | None, threads: int, compression: Compression) -> BlockOutput:
    """The output, compressed."""
    return compression.codec.open(open_output(path, threads), threads, compression.level)
