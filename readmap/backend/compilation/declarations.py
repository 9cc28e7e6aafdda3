"""What the kernels' sources declare: structures, constants and entry points, each written once, there.

A kernel's parameters, behind `begin` and `end`, and the members of a structure are each one of

    i32 stride                        an integer, or a bool
    const Window* windows OF(reads)   an array: of integers, or of structures, which travel as rows of words
    Queries queries                   a group: a structure of integers, arrays and groups, handed over by value

OF says how many elements an array has, by integers, + - * / << >> and parentheses. A name in it is an integer of the
same structure or of the kernel, `items` (over which the kernel is launched), a constant of the headers, or else a
dimension: all arrays that have it agree on it, and in one extent at least it stands alone. `some` is an extent that the
data decide. A structure may derive from another, and `using A = B;` gives one a second name.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend.compilation.sources import sources_of

#: The integers of the kernels, as common/portable.cuh names them.
DTYPES: dict[str, np.dtype[Any]] = {
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
}

#: Types that a kernel leaves open; the dtype of the first array so declared decides which variant is compiled.
GENERIC = {"suffix_t": ("u32", "u64")}

_COMMENT = re.compile(r"//[^\n]*")
_BODY = re.compile(r"\{[^{}]*\}")
_STRUCTURE = re.compile(r"^struct (?:alignas\((\d+)\) )?(\w+)(?: : (\w+))? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_ALIAS = re.compile(r"^using (\w+) = (\w+);", re.MULTILINE)
_CONSTANT = re.compile(r"^const \w+ (\w+ =[^;]+);", re.MULTILINE)
_ENUM = re.compile(r"^enum (?:\w+ )?\{(.*?)\};", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"(?:const )?(\w+) ?(\*?) ?(\w+)(?: OF\((.*)\))?")
_KERNEL = re.compile(r"\bKERNEL void (?:RESIDENT\(\d+\) )?(\w+)\(")
_LIST = re.compile(r"\b\w+_ARGUMENTS\b")
_MACRO = re.compile(r"^#define (\w+)(?:\([^)]*\))?((?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Member:
    """A parameter of a kernel, or a member of a structure: its name, its type, and the extent of an array."""

    name: str
    type: str
    extent: str | None = None

    @property
    def array(self) -> bool:
        """Whether it is an array."""
        return self.extent is not None


class Declarations:
    """What a file of kernels/ and the headers that it includes declare."""

    def __init__(self, path: str) -> None:
        """path: ROOM/NAME.cu or ROOM/NAME.cuh."""
        headers, text = sources_of(path)
        self._text = _COMMENT.sub("", text)
        whole = _COMMENT.sub("", "\n".join([*headers, text]))
        self._macros = dict(_MACRO.findall(whole))
        self._aliases = dict(_ALIAS.findall(whole))
        self._structures = {
            name: (int(align or 0), base, body) for align, name, base, body in _STRUCTURE.findall(whole)
        }
        self.constants = _constants(whole)

    @functools.cache  # noqa: B019  # as long-lived as the sources
    def members(self, structure: str) -> tuple[Member, ...]:
        """The members of a structure, those of its base first; KeyError where there is none."""
        _, base, body = self._structures[self._aliases.get(structure, structure)]
        while _BODY.search(body):
            body = _BODY.sub(";", body)  # methods
        found = list(self.members(base)) if base else []
        for statement in (" ".join(part.split()) for part in body.split(";")):
            first, *others = _split(statement)
            if "(" in first.partition(" OF(")[0] or not first or first.startswith("static "):
                continue
            found.append(_member(first))
            found += [Member(name, found[-1].type) for name in others]
        return tuple(found)

    def dtype(self, type_: str) -> np.dtype[Any]:
        """An element of an array: of integers, or the rows of a structure, whose own structures are flattened."""
        if type_ in DTYPES:
            return DTYPES[type_]
        fields = [(name, dtype) for name, dtype in self._fields(type_)]
        return np.dtype(fields, align=True)

    def words(self, type_: str) -> tuple[np.dtype[Any], int]:
        """The dtype in which elements travel, and how many of it are one."""
        if type_ in DTYPES:
            return DTYPES[type_], 1
        row = self.dtype(type_)
        unsigned = all(dtype.kind == "u" for dtype, *_ in (row.fields or {}).values())
        word = np.dtype({8: np.int64, 4: np.uint32 if unsigned else np.int32}[row.alignment])
        return word, row.itemsize // word.itemsize

    def kernels(self) -> dict[str, tuple[Member, ...]]:
        """The parameters of every entry point that the file itself declares, without `begin` and `end`."""
        body = _MACRO.sub("", self._text)
        for macro, definition in self._macros.items():
            if "KERNEL void" in definition:
                one_line = definition.replace("\\\n", " ")
                for name in re.findall(rf"^{macro}\((\w+)", body, re.MULTILINE):
                    body += "\n" + re.sub(r"(KERNEL void (?:RESIDENT\(\d+\) )?)\s*name\(", rf"\g<1>{name}(", one_line)
        body = " ".join(body.split())
        while _LIST.search(body):
            body = _LIST.sub(lambda found: " ".join(self._macros[found[0]].replace("\\\n", " ").split()), body)
        return {found[1]: _parameters(found[1], body[found.end() :]) for found in _KERNEL.finditer(body)}

    def _fields(self, structure: str) -> list[tuple[str, np.dtype[Any]]]:
        fields = []
        for member in self.members(structure):
            fields += [(member.name, DTYPES[member.type])] if member.type in DTYPES else self._fields(member.type)
        return fields


@functools.cache
def declarations(path: str) -> Declarations:
    """The declarations of one file and its headers."""
    return Declarations(path)


def constant(path: str, name: str) -> int:
    """The value of a constant or an enumerator of a header; KeyError where it has none of that name."""
    return declarations(path).constants[name]


def row_dtype(path: str, structure: str) -> np.dtype[Any]:
    """The fields of a structure of which arrays travel as rows of words: `rows.view(dtype)` names them on the host."""
    return declarations(path).dtype(structure)


def _member(text: str) -> Member:
    words = _MEMBER.fullmatch(text)
    if words is not None and words[2] and words[4] is None:
        return Member(words[3], words[1], "some")
    if words is None or bool(words[2]) != (words[4] is not None):
        raise ValueError(f"cannot read the declaration {text!r}: expected TYPE NAME, or TYPE* NAME OF(EXTENT)")
    return Member(words[3], words[1], words[4])


def _parameters(kernel: str, text: str) -> tuple[Member, ...]:
    """text: what follows the opening parenthesis."""
    depths = itertools.accumulate(((letter == "(") - (letter == ")") for letter in text), initial=1)
    end = next(i for i, depth in enumerate(depths) if not depth) - 1
    members = [_member(part) for part in _split(text[:end])]
    if [member.name for member in members[:2]] != ["begin", "end"]:
        raise ValueError(f"{kernel}: a kernel's first parameters are begin and end")
    return tuple(members[2:])


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _constants(text: str) -> dict[str, int]:
    """All constants whose values are known without the compiler; those that use its types or conditions are not."""
    values: dict[str, int] = {}
    for found in sorted([*_CONSTANT.finditer(text), *_ENUM.finditer(text)], key=lambda match: match.start()):
        following = 0
        for part in _split(" ".join(found[1].split())):
            name, _, value = (word.strip() for word in part.partition("="))
            try:
                if value:
                    following = eval(as_python(value), {"__builtins__": {}}, values)
            except (SyntaxError, NameError, TypeError):
                continue
            if name:
                values[name], following = following, following + 1
    return values


def as_python(expression: str) -> str:
    """An expression of C++ integers as Python writes it."""
    return re.sub(r"\b(0x[0-9A-Fa-f]+|\d+)u?(?:ll)?\b", r"\1", expression.replace("(i64)", "")).replace("/", "//")
