"""Tests of the notebook: its cells run and give the stored results."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text())


def stored_result(cell: dict[str, Any]) -> str | None:
    """Return the stored value of the last expression of a cell as text, or None."""
    results = [output["data"]["text/plain"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
    return "".join(results[0]) if results else None


def test_cells_run(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    monkeypatch.chdir(DOCS)
    names: dict[str, Any] = {}
    figures = 0
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "notebook", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names) if last else None
        expected = stored_result(cell)
        if expected is not None and not hasattr(value, "to_html"):  # the width of a table depends on the terminal
            assert repr(value) == expected
        figures += any("image/png" in output.get("data", {}) for output in cell["outputs"])
    matplotlib.pyplot.close("all")
    assert figures == 2


def test_outputs_are_stored() -> None:
    """The notebook can be read without running it."""
    assert all(cell.get("id") for cell in NOTEBOOK["cells"])
    assert sum(bool(cell.get("outputs")) for cell in NOTEBOOK["cells"]) >= 7
