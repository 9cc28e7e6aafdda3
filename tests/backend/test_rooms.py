import re
import tomllib
from itertools import chain

from readmap.backend.compilation.sources import folder

ROOT = folder().parent


def test_kernels_include_downwards_only() -> None:
    """By the layers of the package, whose rooms the kernels share; below all of them is what is common."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in contracts[0]["layers"]] + [{"common"}]
    depth = {room: number for number, layer in enumerate(layers) for room in layer}
    for path in chain(folder().rglob("*.cu"), folder().rglob("*.cuh")):
        room = path.parent.name
        for included in re.findall(r'#include "(\w+)/', path.read_text()):
            assert included == room or depth[included] > depth[room], (path, included)
