"""Columns -> an Arrow stream: the C stream interface that PyArrow, Polars, pandas and DuckDB read without a copy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
    """A column of a table."""

    name: str
    values: np.ndarray[Any, Any]  # int8, uint8, int32 or int64 [rows]; or uint8, the concatenated UTF-8 of all rows
    valid: np.ndarray[Any, Any] | None = None  # bool [rows], False if a row is null
    offsets: np.ndarray[Any, Any] | None = None  # int64 [rows + 1], of text


def text_column(name: str, texts: Sequence[bytes], valid: np.ndarray[Any, Any] | None = None) -> Column:
    """Return a column of UTF-8 texts."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return Column(name, np.frombuffer(b"".join(texts), np.uint8), valid, offsets)


def stream_capsule(columns: Sequence[Column]) -> Any:
    """Return the capsule for `__arrow_c_stream__`: a stream of one table, which refers to the columns' memory."""
    import nanoarrow  # imported here: few programs ask for a table, and the import takes 40 ms
    from nanoarrow.c_array_stream import CArrayStream

    arrays, rows = list[Any](), 0
    for _, values, valid, offsets in columns:
        rows = len(values) if offsets is None else len(offsets) - 1
        type_name = values.dtype.name if offsets is None else "large_string"
        validity = None if valid is None else np.packbits(valid, bitorder="little")
        buffers = [values] if offsets is None else [offsets, values]
        contiguous = [validity, *map(np.ascontiguousarray, buffers)]
        arrays.append(nanoarrow.c_array_from_buffers(getattr(nanoarrow, type_name)(), rows, contiguous))
    schema = nanoarrow.struct({column.name: array.schema for column, array in zip(columns, arrays, strict=True)})
    table = nanoarrow.c_array_from_buffers(schema, rows, [None], null_count=0, children=arrays)
    return CArrayStream.from_c_arrays([table], table.schema).__arrow_c_stream__()
