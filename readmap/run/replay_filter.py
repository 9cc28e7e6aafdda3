"""Blocks that are made again after a device has failed: outputs receive only the bytes that they do not have yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from readmap.run.writer import Block


class ReplayFilter:
    """Counts the bytes that outputs have received for some reads, whose blocks may be made again."""

    def __init__(self) -> None:
        self._ahead = Counter[int]()

    def missing(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the bytes of blocks that the outputs do not have. Raises the error of a device that fails before all
        bytes are copied; then all these blocks are made again."""
        given = Counter[int]()
        for block in blocks:
            known = min(self._ahead[block.output], len(block.bytes))
            self._ahead[block.output] -= known
            given[block.output] += known
            if known and known == len(block.bytes):
                continue
            rest = replace(block, bytes=block.bytes[known:]) if known else block
            yield rest
            if rest.error:
                given[block.output] += rest.copied
                self._ahead += given
                raise rest.error
            given[block.output] += len(rest.bytes)
