"""Line ends by counts of blocks, against bytes' own methods."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readmap.formats import lines
from readmap.formats.lines import LineIndex, end_of_text, last_line_start


@settings(max_examples=100, deadline=None)
@given(st.text("A>\n\r", max_size=50).map(str.encode), st.integers(1, 9))
def test_lines(data: bytes, block: int) -> None:
    array = np.frombuffer(data, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        index = LineIndex(array)
        ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == 10)]
        assert index.total == len(ends) - 1
        assert [index.end(count) for count in range(len(ends))] == ends
        assert [index.count_before(place) for place in range(len(data) + 1)] == [
            data[:place].count(b"\n") for place in range(len(data) + 1)
        ]
        assert end_of_text(array) == len(data.rstrip(b"\r\n"))
        assert last_line_start(array, ord(">")) == data.rfind(b"\n>") + 1
