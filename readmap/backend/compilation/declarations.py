"""Parse the declarations in the kernels' sources: structures, constants and kernels.

A kernel's first parameter is `items`, whose type says whether a thread, warp or block takes an item (ITEM_TYPES).
Each further parameter, and each member of a structure, is one of

    i32 stride                        an integer, or a bool
    const Window* windows OF(reads)   an array of integers, or of structures, which are passed as rows of words
    Queries queries                   a group: a structure of integers, arrays and groups, passed by value

OF gives the number of elements of an array (its extent) by integers, + - * / << >> and parentheses. A name in it is

    a constant      of the file or of a header
    an integer      of the same structure, of the kernel, or of one of its groups
    items           the number of items of the launch
    a dimension     any other name: its value is the size of an array whose extent is this name alone
    any             not checked: the number of elements depends on the data

A structure may have a base, and `using A = B;` defines a second name. Methods, static members and templates are
ignored. A constant is `const TYPE NAME = VALUE;` or an enumerator, at the start of a line.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend.compilation.sources import included, source

#: The integer types of common/portable.cuh.
DTYPES: dict[str, np.dtype[Any]] = {
    f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for size in (1, 2, 4, 8) for kind in "iu"
} | {"bool": np.dtype(np.bool_)}

#: Types of a kernel's `items`: an item is taken by a thread, a warp, a warp in the order of the items, or a block.
ITEM_TYPES = ("Items", "WarpItems", "OrderedWarpItems", "BlockItems")

#: Generic types and their choices; the dtype of the first array declared so selects the variant to compile.
GENERIC = {"suffix_t": ("u32", "u64")}

_COMMENT = re.compile(r"//[^\n]*")
_BODY = re.compile(r"\{[^{}]*\}")
_STRUCTURE = re.compile(r"^struct (?:alignas\(\d+\) )?(\w+)(?: : (\w+))? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_ALIAS = re.compile(r"^using (\w+) = (\w+);", re.MULTILINE)
_CONSTANT = re.compile(r"^const (\w+) (\w+ =[^;]+);|^enum (?:\w+ )?\{(.*?)\};", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\b(0x[0-9A-Fa-f]+|\d+)u?(?:ll)?\b")
_DECLARATION = re.compile(r"(?:const )?(\w+) ?(\*?) ?(\w+)(?: OF\((.*)\))?")
_NO_MEMBER = re.compile(r"(?:static|typedef|template|using)\b|(?:(?! OF\().)*\(|$")
_BALANCED = functools.reduce(lambda inner, _: rf"(?:[^()]|\({inner}\))*", range(4), "")
_KERNEL = re.compile(rf"\bKERNEL void (?:MIN_BLOCKS\(\d+\) )?(\w+)\(({_BALANCED})\)")
_MACRO = re.compile(r"^#define (\w+)(?:\(([^)]*)\))?((?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Member:
    """A parameter of a kernel or a member of a structure; extent: None unless it is an array."""

    name: str
    type: str
    extent: str | None = None


class Declarations:
    """The declarations of a file of kernels/ and of all headers that it includes."""

    def __init__(self, path: str) -> None:
        """path: FOLDER/NAME.cu or FOLDER/NAME.cuh."""
        self._text = _COMMENT.sub("", source(path))
        self._structures: dict[str, tuple[str, str]] = {}
        self.aliases: dict[str, str] = {}  # structure names by their second names
        self._macros: dict[str, tuple[list[str], str]] = {}
        self.constants: dict[str, int] = {}  # values that can be computed without the compiler
        for header in map(declarations, included(path)):
            self._structures |= header._structures
            self.aliases |= header.aliases
            self._macros |= header._macros
            self.constants |= header.constants
        self._structures |= {name: (base, body) for name, base, body in _STRUCTURE.findall(self._text)}
        self.aliases |= _ALIAS.findall(self._text)
        for name, parameters, text in _MACRO.findall(self._text):
            self._macros[name] = [one.strip() for one in parameters.split(",")], text.replace("\\\n", " ")
        _add_constants(self._text, self.constants)

    def members(self, structure: str) -> list[Member]:
        """Return the members of a structure, the first without a name if it is the base. Raises KeyError if unknown."""
        base, body = self._structures[self.aliases.get(structure, structure)]
        while _BODY.search(body):
            body = _BODY.sub(";", body)  # methods
        found = [Member("", base)] if base else []
        for statement in (" ".join(part.split()) for part in body.split(";")):
            if not _NO_MEMBER.match(statement):
                first, *others = statement.split(",")
                found.append(_parse_member(first))
                found += [Member(name.strip(), found[-1].type) for name in others]
        return found

    def element_dtype(self, structure: str) -> np.dtype[Any]:
        """Return the dtype of array elements of a structure; fields of nested structures are its own fields."""
        members = [(one.name, DTYPES.get(one.type) or self.element_dtype(one.type)) for one in self.members(structure)]
        nested = np.dtype(members, align=True)
        fields = [
            (inner, dtype, outer + offset)
            for name, (held, outer, *_) in (nested.fields or {}).items()
            for inner, (dtype, offset, *_) in (held.fields or {name: (held, 0)}).items()
        ]
        names, formats, offsets = zip(*fields, strict=True)
        size = nested.itemsize
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size}, align=True)

    def word_layout(self, type_: str) -> tuple[np.dtype[Any], int]:
        """Return how arrays store elements of a type: the dtype of a word, and the words per element."""
        if type_ in DTYPES:
            return DTYPES[type_], 1
        row = self.element_dtype(type_)
        unsigned = all(dtype.kind == "u" for dtype, *_ in (row.fields or {}).values())
        word = np.dtype({8: np.int64, 4: np.uint32 if unsigned else np.int32}[row.alignment])
        return word, row.itemsize // word.itemsize

    def kernels(self) -> dict[str, tuple[str, list[Member]]]:
        """Return the kernels that the file itself declares: {name: (item type, parameters after the items)}."""
        body = _MACRO.sub("", self._text)
        for macro, (parameters, definition) in self._macros.items():
            if "KERNEL void" in definition:  # MACRO(NAME, ...) at the start of a line declares a kernel
                for call in re.findall(rf"^{macro}\((.*)\)", body, re.MULTILINE):
                    expanded = definition
                    for parameter, argument in zip(parameters, call.split(","), strict=True):
                        expanded = re.sub(rf"\b{parameter}\b", argument.strip(), expanded)
                    body += "\n" + expanded
        body = " ".join(body.split())
        return {name: _parse_parameters(name, text) for name, text in _KERNEL.findall(body)}


@functools.cache
def declarations(path: str) -> Declarations:
    return Declarations(path)


def constant(path: str, name: str) -> int:
    """Return the value of a constant or enumerator of a file of kernels/. Raises KeyError if it is unknown."""
    return declarations(path).constants[name]


def row_dtype(path: str, structure: str) -> np.dtype[Any]:
    """Return the dtype with a structure's fields: on the host, `rows.view(dtype)` gives access to an array's fields."""
    return declarations(path).element_dtype(structure)


def as_python(expression: str) -> str:
    """Translate an expression of C++ integers to Python."""
    return _NUMBER.sub(r"\1", expression.replace("(i64)", "")).replace("/", "//")


def _parse_member(text: str) -> Member:
    """Parse `TYPE NAME` or `TYPE* NAME OF(EXTENT)`. Raises ValueError for any other text."""
    words = _DECLARATION.fullmatch(text)
    if words is None or bool(words[2]) != (words[4] is not None):
        raise ValueError(f"cannot read the declaration {text!r}: expected TYPE NAME, or TYPE* NAME OF(EXTENT)")
    return Member(words[3], words[1], words[4])


def _parse_parameters(kernel: str, text: str) -> tuple[str, list[Member]]:
    """Parse a kernel's parameter list; return the item type and the other parameters. Raises ValueError."""
    items, *members = (_parse_member(part.strip()) for part in text.split(","))
    if items.type not in ITEM_TYPES or items.name != "items":
        expected = f"{', '.join(ITEM_TYPES[:-1])} or {ITEM_TYPES[-1]}"
        raise ValueError(f"{kernel}: a kernel's first parameter is {expected}, named items")
    return items.type, members


def _add_constants(text: str, values: dict[str, int]) -> None:
    """Add a file's constants to `values`, except those that only the compiler can evaluate."""
    for type_, constant, enumerators in _CONSTANT.findall(text):
        following = 0
        for part in (constant or enumerators).split(","):
            name, _, value = (word.strip() for word in part.partition("="))
            try:
                number = eval(as_python(value), {"__builtins__": {}}, values) if value else following
            except (SyntaxError, NameError, TypeError):
                continue
            if type_.startswith("u"):
                number %= 1 << 8 * DTYPES[type_].itemsize
            if name:
                values[name], following = number, number + 1
