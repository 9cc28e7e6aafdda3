"""The letters of a scan, proteins' and nucleotides' alike, as codes below 32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readmap.backend.compilation.declarations import constant
from readmap.pairwise.parameters import NO_CODE

#: The code of a stop, behind those of A to Z, 0 to 25.
STOP = constant("database/scan_lanes.cuh", "LETTERS") - 1
#: The code of a column without a letter, behind a sequence's end.
PAD = NO_CODE
#: What is no letter has this one.
NO_LETTER = 255

#: uint8 [256]: of each byte, of either case, its code.
CODE_OF_BYTE = np.full(256, NO_LETTER, np.uint8)
CODE_OF_BYTE[ord("A") : ord("Z") + 1] = CODE_OF_BYTE[ord("a") : ord("z") + 1] = np.arange(26)
CODE_OF_BYTE[ord("*")] = STOP

#: uint8 [27]: of each code its letter.
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*", np.uint8)

_TABLE = CODE_OF_BYTE.tobytes()


def codes_of(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The code of each letter, uint8 as they are, in a new array; NO_LETTER for what is none."""
    # A tenth of the time of an index, which NumPy widens to 64 bits.
    return np.frombuffer(bytearray(letters.tobytes().translate(_TABLE)), np.uint8).reshape(letters.shape)
