"""What compresses blocks, by the name that a user gives it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from readmap.backend import Backend
from readmap.bam.codecs import libdeflate_codec
from readmap.errors import BackendError
from readmap.formats.bgzf import Codec

#: The level from which on files are smaller than nvCOMP's.
SMALLER_LEVEL = 6


class CodecName(StrEnum):
    """What compresses."""

    AUTO = "auto"
    LIBDEFLATE = "libdeflate"
    NVCOMP = "nvcomp"


def choose_codec(name: str, level: int, backends: Sequence[Backend]) -> Codec:
    """The codec of a name; of `auto` the devices' where nvCOMP is there and the level is below SMALLER_LEVEL.

    Raises BackendError where nvcomp is named and is not there.
    """
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
