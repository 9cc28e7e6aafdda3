"""Alter bytes at random: flip, cut, double, move, or insert tokens that are special to formats."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

#: Numbers of alterations to draw from; a case without alterations must be accepted.
TIMES = (0, *(1,) * 20, *(2,) * 10, *(3,) * 8, 5, 5, 5, 8, 8, 13, 40)

#: Tokens that are special to some text format.
TOKENS = (
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\0",
    b"@",
    b">",
    b"+",
    b" ",
    b"\t",
    b"*",
    b"N",
    b"\x7f",
    b"\xff",
    b"-",
    b"=",
)
TOKENS += (b"/1", b"/2", b"\xef\xbb\xbf", b"0", b"-1", b"4294967296", b"9223372036854775808", b"1e308", b"nan", b"%s")

#: Integers that may overflow, in the sizes of binary formats.
INTEGERS = [
    struct.pack(form, value)
    for form, bits in (("<B", 8), ("<H", 16), ("<I", 32), ("<Q", 64))
    for value in {0, 1, 2, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2**bits - 2, 2 ** (bits // 2)}
]

Operation = Callable[[Random, bytearray, Sequence[bytes]], bytearray]


def mutate(
    draw: Random,
    data: bytes,
    tokens: Sequence[bytes] = TOKENS,
    fields: Sequence[int] = (),
    times: int | None = None,
) -> tuple[bytes, bool]:
    """Alter the data `times` times; return them, and True if they differ from the original.

    tokens: byte strings to insert. fields: offsets of integers, which are altered more often than other bytes.
    """
    times = draw.choice(TIMES) if times is None else times
    changed = bytearray(data)
    for _ in range(times):
        if fields and draw.random() < 0.5:
            integer = draw.choice(INTEGERS)
            place = draw.choice(fields)
            changed[place : place + len(integer)] = integer
        else:
            changed = draw.choice(OPERATIONS)(draw, changed, tokens)
    return bytes(changed), bytes(changed) != data


def _place(draw: Random, data: bytearray) -> int:
    return draw.randrange(len(data) + 1)


def _span(draw: Random, data: bytearray) -> slice:
    """Return a random slice, usually of few bytes."""
    start = _place(draw, data)
    return slice(start, start + draw.choice((1, 1, 2, 3, 8, 30, 200)))


def _flip(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def _set(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    if data:
        data[draw.randrange(len(data))] = draw.randrange(256)
    return data


def _put_integer(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    integer, place = draw.choice(INTEGERS), _place(draw, data)
    data[place : place + len(integer)] = integer
    return data


def _remove(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    del data[_span(draw, data)]
    return data


def _double(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    place = _place(draw, data)
    data[place:place] = data[_span(draw, data)] * draw.choice((1, 1, 2, 20))
    return data


def _insert(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    place = _place(draw, data)
    data[place:place] = draw.choice(tokens) * draw.choice((1, 1, 1, 2, 300))
    return data


def _replace(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    data[_span(draw, data)] = draw.choice(tokens)
    return data


def _truncate(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    del data[_place(draw, data) :]
    return data


def _remove_front(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    del data[: draw.choice((1, 2, 4, _place(draw, data)))]
    return data


def _append(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    return data + draw.choice((bytes(data), draw.randbytes(draw.randrange(40)), draw.choice(tokens), bytes(100)))


def _lines(draw: Random, data: bytearray, tokens: Sequence[bytes]) -> bytearray:
    """Remove, double, empty, split or move a line."""
    lines = data.split(b"\n")
    number = draw.randrange(len(lines))
    line = lines.pop(number)
    middle = len(line) // 2
    for new in draw.choice(([], [line, line], [b""], [line[:middle], line[middle:]], [line + b"\r"], None)) or ():
        lines.insert(number, new)
    if draw.random() < 0.2:
        lines.insert(draw.randrange(len(lines) + 1), line)
    return bytearray(b"\n").join(lines)


OPERATIONS: tuple[Operation, ...] = (
    *(_flip, _set, _put_integer, _remove, _double, _insert, _insert),
    *(_replace, _truncate, _remove_front, _append, _lines, _lines),
)
