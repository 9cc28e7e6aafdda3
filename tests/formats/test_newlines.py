"""Line ends found in blocks, compared with methods of bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.formats import newlines
from readmap.formats.newlines import end_of_text, last_line_start, line_ends


@settings(max_examples=100, deadline=None)
@given(st.text("A>\n\r", max_size=50).map(str.encode), st.integers(1, 9))
def test_lines(data: bytes, block: int) -> None:
    array = np.frombuffer(data, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newlines, "BLOCK_BYTES", block)
        assert line_ends(array).tolist() == [place for place, byte in enumerate(data) if byte == 10]
        assert end_of_text(array) == len(data.rstrip(b"\r\n"))
        assert last_line_start(array, ord(">")) == data.rfind(b"\n>") + 1
