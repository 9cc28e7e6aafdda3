"""Blocks that are made again, since a device failed before they were copied: outputs are given what they lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from readmap.run.writer import Block


class ReplayFilter:
    """What outputs have been given of reads whose blocks may come again, in others, but with the same bytes."""

    def __init__(self) -> None:
        self._ahead = Counter[int]()

    def missing(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """What outputs lack of some blocks, which have all been copied in the end.

        Raises the error of a device that has failed before; then all of these come again.
        """
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
