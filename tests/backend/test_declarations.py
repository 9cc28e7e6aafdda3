"""Parsing of the declarations in kernel sources."""

import re
from pathlib import Path

import numpy as np
import pytest
from tiny_module import ADD, ROOT, TINY

from readmap.backend import Kernel, cpu, open_backend
from readmap.backend.compilation import declarations, signatures, sources
from readmap.backend.compilation.declarations import Member


def test_signatures_of_a_module(tiny: Path) -> None:
    assert set(signatures.kernel_signatures(TINY)) == {"add", "take", "measure", "read_all", "doubled", "doubled_again"}
    assert [parameter.name for parameter in ADD.signature.parameters] == ["numbers", "sums", "visits", "shift"]
    doubled = signatures.signature(TINY, "doubled_again")
    assert doubled.kernel == "doubled_again"
    assert [parameter.name for parameter in doubled.parameters] == ["numbers", "out"]
    assert signatures.generic_types(TINY) == ("suffix_t",)
    with pytest.raises(KeyError):
        signatures.signature(TINY, "missing")


def test_members_of_structures(tiny: Path) -> None:
    declared = declarations.declarations(f"{TINY}.cuh")
    assert declared.members("Table") == [
        Member("", "Limits"),
        Member("values", "i32", "rows * width"),
        Member("marks", "u8", "rows"),
        Member("width", "i16"),
        Member("doubled", "bool"),
    ]
    assert declared.members("Canvas") == declared.members("Scene")
    assert [member.name for member in declared.members("Scene")] == ["table", "points", "colour", "shade"]


def test_constants(tiny: Path) -> None:
    """The values that C++ computes, in the file itself and in its headers."""
    values = {"NOTHING": 2**32 - 1, "MASK": 15, "ROUND": 0, "SQUARE": 4, "LARGE": 5, "CODES": 4, "TWICE": 8}
    for name, value in values.items():
        assert declarations.constant(f"{TINY}.cuh", name) == declarations.constant(f"{TINY}.cu", name) == value
    with pytest.raises(KeyError):
        declarations.constant(f"{TINY}.cuh", "WIDTH")


def test_rows_have_the_layout_of_the_compiler(tiny: Path, backends: str) -> None:
    """A member after a nested structure starts after its padding."""
    backend = open_backend(backends)
    dtype = declarations.row_dtype(f"{TINY}.cuh", "Corner")
    corners = np.array([(5, 6, 7), (8, 9, -1)], dtype)
    sizes = backend.empty(8, np.int64)
    rows = backend.to_device(corners.view(np.int64).reshape(2, -1))
    backend.launch(Kernel(TINY, "measure"), 2, corners=rows, sizes=sizes)
    assert backend.to_host(sizes).tolist() == [dtype.itemsize, 5, 6, 7, dtype.itemsize, 8, 9, -1]


@pytest.mark.parametrize(
    "text",
    [
        *("const u8* (*f) OF(items)", "u8* bytes[4]", "u8* *rows OF(items)", "i32 number OF(items)", "u8 bytes[4]"),
        *("u8* bytes", "Missing group", "const Missing* rows OF(items)", "const u8* bytes OF(items +)", "i32"),
    ],
)
def test_invalid_declarations(tiny: Path, text: str) -> None:
    (tiny / "tiny.cu").write_text(f"KERNEL void broken(Items items, {text}) {{}}\n")
    with pytest.raises((ValueError, KeyError, SyntaxError)):
        signatures.signature(TINY, "broken")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("i64 count, const u8* bytes OF(items)", "a kernel's first parameter is Items, WarpItems, OrderedWarpItems or"),
        ("Items items, const u8* a OF(2 * rows), const u8* b OF(rows + 1)", "no array has the extent rows alone"),
        (
            "Items items, const u8* a OF(rows), const u8* b OF(items)",
            "only one array has the extent rows, which checks",
        ),
        ("Items items, Limits limits, const u8* a OF(high), i64 high", "2 integers have the name high, by which"),
    ],
)
def test_useless_or_ambiguous_extents(tiny: Path, parameters: str, message: str) -> None:
    (tiny / "tiny.cu").write_text(f'#include "common/tiny.cuh"\nKERNEL void broken({parameters}) {{}}\n')
    with pytest.raises(ValueError, match=f"^broken: {message}"):
        signatures.signature(TINY, "broken")


@pytest.mark.parametrize("module", sources.modules(for_gpu=True))
def test_all_kernels_are_declared_and_compiled(module: str, backends: str) -> None:
    """Every declared kernel is a symbol of the compiled module."""
    found = signatures.kernel_signatures(module)
    text = (ROOT / "kernels" / f"{module}.cu").read_text()
    written = set(re.findall(r"KERNEL void (?:MIN_BLOCKS\(\d+\) )?(\w+)\(", text)) - {"name"}
    assert written <= set(found)
    assert found
    if backends == "cpu" and module in sources.modules(for_gpu=False):
        kinds = signatures.generic_types(module)
        library = cpu._library(module, tuple((kind, declarations.GENERIC[kind][0]) for kind in kinds))
        for name in found:
            getattr(library, f"launch_{name}")


def test_kernels_named_in_python_exist() -> None:
    named = [
        found
        for path in (ROOT / "readmap").rglob("*.py")
        for found in re.findall(r'Kernel\("([\w/]+)", "(\w+)"\)', path.read_text())
    ]
    assert len(named) > 10
    for module, name in named:
        signatures.signature(module, name)
