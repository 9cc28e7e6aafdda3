"""Codecs of BGZF, libdeflate on the CPU and nvCOMP on GPUs, and outputs compressed by them."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property, partial

import numpy as np

from readmap.backend import Backend
from readmap.backend.base import Kernel
from readmap.backend.cpu import host_backend
from readmap.backend.libdeflate import libdeflate
from readmap.errors import BackendError
from readmap.formats.bgzf import (
    BLOCK_BYTES,
    HEADER_START,
    LEVEL,
    BgzfOutput,
    BlockOutput,
    Blocks,
    Bytes,
    Codec,
    Compress,
    compress_with_package,
)
from readmap.formats.output import ByteSink, open_output

_COMPRESS = Kernel("bam/libdeflate_blocks", "compress_blocks")

BAM_ENDING = ".bam"
#: Name endings of compressed text.
COMPRESSED_ENDINGS = (".gz", ".bgz")
#: Capacity for a stored block with header and trailer, and what libdeflate needs after the last block.
MAX_BLOCK_BYTES, SLACK_BYTES = 1 << 16, 1 << 10
#: From this level on libdeflate's files are smaller than nvCOMP's.
SMALLER_LEVEL = 6


class CodecName(StrEnum):
    """The values of --codec."""

    AUTO = "auto"
    LIBDEFLATE = "libdeflate"
    NVCOMP = "nvcomp"


def choose_codec(name: str, level: int, backends: Sequence[Backend]) -> Codec:
    """Return the codec `name`; auto is nvCOMP if available and `level` is below SMALLER_LEVEL. Raises BackendError."""
    by_threads = backends[0].name == "cpu" or level >= SMALLER_LEVEL
    if name == CodecName.LIBDEFLATE or (name == CodecName.AUTO and by_threads):
        return libdeflate_codec()
    from readmap.bam.nvcomp_codec import open_nvcomp_codec

    try:
        return open_nvcomp_codec(backends)
    except BackendError:
        if name == CodecName.NVCOMP:
            raise
        return libdeflate_codec()


def libdeflate_codec() -> Codec:
    return Codec("libdeflate", partial(BgzfOutput, compress=block_compressor()))


def block_compressor() -> Compress:
    """Return a function (parts, level) -> Blocks that calls libdeflate in a kernel, or else its Python package."""
    library, backend = libdeflate(), host_backend("bam/libdeflate_blocks", 1)
    if library is None or backend is None:
        return compress_with_package
    header = np.frombuffer(HEADER_START, np.uint8)

    def compress_part(data: Bytes, level: int) -> tuple[Bytes, list[int]]:
        count = -(-len(data) // BLOCK_BYTES)
        blocks = np.empty(count * MAX_BLOCK_BYTES + SLACK_BYTES, np.uint8)
        sizes = np.empty(count, np.int64)
        shape = {"size": len(data), "header_bytes": len(header), "capacity": len(blocks), "count": count}
        arrays = {"data": data, "header": header, "blocks": blocks, "sizes": sizes, "library": library}
        backend.launch(_COMPRESS, 1, **arrays, **shape, block_bytes=BLOCK_BYTES, level=level)
        if (sizes < 0).any():
            raise MemoryError("to compress")
        return blocks[: int(sizes.sum())], sizes.tolist()

    def compress(parts: Sequence[Bytes], level: int) -> Blocks:
        made = [compress_part(part, level) for part in parts]
        return Blocks([data for data, _ in made], [size for _, sizes in made for size in sizes])

    return compress


class Compression:
    """The compression of all outputs of a run, opened for the first compressed output. level: of libdeflate."""

    def __init__(self, open_codec: Callable[[], Codec] = libdeflate_codec, level: int | None = None) -> None:
        self._open = open_codec
        self.level = level or LEVEL

    @cached_property
    def codec(self) -> Codec:
        return self._open()

    @property
    def codec_name(self) -> str | None:
        """The name of the codec, or None if no output has been compressed."""
        return self.codec.name if "codec" in vars(self) else None


def open_by_ending(path: str | None, threads: int, compression: Compression | None = None) -> ByteSink:
    """Open an output, with compression if its name has an ending of compressed text."""
    if path and path.lower().endswith(COMPRESSED_ENDINGS):
        return open_bgzf(path, threads, compression or Compression())
    return open_output(path, threads)


def open_bgzf(path: str | None, threads: int, compression: Compression) -> BlockOutput:
    return compression.codec.open(open_output(path, threads), threads, compression.level)
