"""Letter codes of a scan, below 32, for proteins and nucleotides alike."""

import numpy as np
from numpy.typing import NDArray

from readmap.backend.compilation.declarations import constant
from readmap.pairwise.parameters import NO_CODE

#: The code of a stop (*), after the codes of A to Z, 0 to 25.
STOP = constant("database/scan_lanes.cuh", "LETTERS") - 1
#: The code of a column after the end of a sequence.
PAD = NO_CODE
#: The code of invalid letters.
NO_LETTER = 255

#: uint8 [256], the code of each byte, in upper or lower case.
CODE_OF_BYTE = np.full(256, NO_LETTER, np.uint8)
CODE_OF_BYTE[ord("A") : ord("Z") + 1] = CODE_OF_BYTE[ord("a") : ord("z") + 1] = np.arange(26)
CODE_OF_BYTE[ord("*")] = STOP

#: uint8 [27], the letter of each code.
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ*", np.uint8)

_TABLE = CODE_OF_BYTE.tobytes()


def codes_of(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the code of each letter, uint8 of the same shape; NO_LETTER for invalid letters."""
    # Takes a tenth of the time of indexing, for which NumPy widens the index to 64 bits.
    return np.frombuffer(bytearray(letters.tobytes().translate(_TABLE)), np.uint8).reshape(letters.shape)
