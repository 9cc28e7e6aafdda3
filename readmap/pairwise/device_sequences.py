"""Concatenated sequences as codes on a device."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Array, Backend, Kernel
from readmap.backend.compilation.declarations import constant
from readmap.errors import UsageError
from readmap.pairwise.parameters import CODES

#: Bytes after the last letter that kernels may read.
PAD = constant("pairwise/encode.cu", "PAD")

_ENCODE = Kernel("pairwise/encode", "encode_letters")

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class DeviceSequences:
    """Concatenated sequences on a device.

    codes: uint8 [letters + PAD] on the device. For MatchScores 0 to 3 for A, C, G and T, and 4 for other letters; for
    SubstitutionScores the codes of its matrix. offsets: int64 [sequences + 1] on the device: sequence i is
    codes[offsets[i]:offsets[i + 1]]. lengths: int64 [sequences] on the host. longest: maximum length, or 0.
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
    """Encode nucleotides, ASCII of either case, for MatchScores; UsageError for invalid offsets."""
    given = backend.to_device(letters)
    codes = backend.full(len(letters) + PAD, 0, np.uint8)
    backend.launch(_ENCODE, len(letters), letters=given, codes=codes)
    return _from_device_codes(codes, offsets, backend)


def sequences_from_codes(codes: Bytes, offsets: Integers, backend: Backend) -> DeviceSequences:
    """Copy codes of a substitution matrix, uint8 below CODES (else ValueError), to the device."""
    if len(codes) and (highest := int(codes.max())) >= CODES:
        raise ValueError(f"a code is {highest}, expected less than {CODES}")
    return _from_device_codes(backend.to_device(np.concatenate([codes, np.zeros(PAD, np.uint8)])), offsets, backend)


def _from_device_codes(codes: Array, offsets: Integers, backend: Backend) -> DeviceSequences:
    """Return sequences of padded codes on the device; UsageError if the offsets are invalid."""
    lengths = checked_lengths(offsets, len(codes) - PAD)
    return DeviceSequences(codes, backend.to_device(offsets), lengths, int(lengths.max(initial=0)))


def checked_lengths(offsets: Integers, count: int) -> Integers:
    """Return the lengths of sequences; UsageError unless offsets ascend from 0 to `count`, the number of letters."""
    lengths = np.diff(offsets)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != count or np.any(lengths < 0):
        raise UsageError(f"expected offsets that ascend from 0 to {count}, the number of letters")
    return lengths


def sequences_from_texts(texts: Iterable[str | bytes], backend: Backend) -> DeviceSequences:
    """Encode nucleotides given as text for MatchScores."""
    return sequences_from_letters(*concatenate_texts(texts), backend)


def concatenate_texts(texts: Iterable[str | bytes]) -> tuple[Bytes, Integers]:
    """Return all letters of texts, uint8, and their offsets, int64 [texts + 1]."""
    parts = [text.encode("ascii", "replace") if isinstance(text, str) else bytes(text) for text in texts]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), offsets
