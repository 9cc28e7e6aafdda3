"""Sequences for a comparison, as codes on the device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError
from readmap.pairwise.parameters import CODES

#: Bytes behind the last letter that kernels may read.
PAD = constant("pairwise/letters.cuh", "PAD")

_ENCODE = Kernel("pairwise/letters", "encode_letters")

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class DeviceSequences:
    """Sequences behind each other.

    Attributes:
        codes: uint8 [letters + PAD] on the device. Where Scores are theirs, 0 to 3 for A, C, G and T, 4 for any other,
            which matches none; where a SubstitutionScores is, its codes.
        offsets: int64 [sequences + 1] on the device: sequence i is [offsets[i], offsets[i + 1]).
        lengths: int64 [sequences] on the host; longest: of them, 0 where there are none.
    """

    codes: Array
    offsets: Array
    lengths: Integers
    longest: int

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def count(self) -> int:
        """Letters of all sequences."""
        return len(self.codes) - PAD


def sequences_from_letters(letters: Bytes, offsets: Integers, backend: Backend) -> DeviceSequences:
    """Sequences as one array of ASCII letters, uint8, of either case, U for T.

    offsets: int64 [sequences + 1], ascending from 0 to the number of letters; UsageError where they are not so.
    """
    given = backend.to_device(letters)
    codes = backend.full(len(letters) + PAD, 0, np.uint8)
    backend.launch(_ENCODE, len(letters), letters=given, codes=codes)
    return _letters(codes, offsets, backend)


def sequences_from_codes(codes: Bytes, offsets: Integers, backend: Backend) -> DeviceSequences:
    """Sequences as one array of the codes of a SubstitutionScores, uint8, less than CODES.

    offsets: as in sequences_from_letters. Raises ValueError where a code is none.
    """
    if len(codes) and (most := int(codes.max())) >= CODES:
        raise ValueError(f"a code is {most}, expected less than {CODES}")
    return _letters(backend.to_device(np.concatenate([codes, np.zeros(PAD, np.uint8)])), offsets, backend)


def _letters(codes: Array, offsets: Integers, backend: Backend) -> DeviceSequences:
    """The sequences of these codes, with their pad; UsageError as in sequences_from_letters."""
    lengths = checked_lengths(offsets, len(codes) - PAD)
    return DeviceSequences(codes, backend.to_device(offsets), lengths, int(lengths.max(initial=0)))


def checked_lengths(offsets: Integers, count: int) -> Integers:
    """The lengths of sequences; UsageError where offsets do not ascend from 0 to the number of all letters."""
    lengths = np.diff(offsets)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != count or np.any(lengths < 0):
        raise UsageError(f"expected offsets that ascend from 0 to the number of letters, {count}")
    return lengths


def sequences_from_texts(texts: Iterable[str | bytes], backend: Backend) -> DeviceSequences:
    """Sequences as text."""
    return sequences_from_letters(*concatenate_texts(texts), backend)


def concatenate_texts(texts: Iterable[str | bytes]) -> tuple[Bytes, Integers]:
    """All letters of texts, and their offsets, as in sequences_from_letters."""
    parts = [text.encode("ascii", "replace") if isinstance(text, str) else bytes(text) for text in texts]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), offsets
