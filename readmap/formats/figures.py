"""What the pictures have in common: their colours, their style, and how names and counts are written.

Needs matplotlib, which readmap[plot] brings.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from readmap.formats.wording import decode_name

# Okabe and Ito's colours, which the colour-blind tell apart too.
BLUE, GREEN, YELLOW, RED = "#0072B2", "#009E73", "#E69F00", "#D55E00"
BLACK, GREY, SILVER = "#222222", "#666666", "#DDDDDD"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": BLACK,
    "axes.edgecolor": SILVER,
    "axes.labelcolor": GREY,
    "axes.labelpad": 8,
    "axes.axisbelow": True,
    "grid.color": "#F2F2F2",
    "grid.linewidth": 0.8,
    "xtick.color": SILVER,
    "ytick.color": SILVER,
    "xtick.labelcolor": GREY,
    "ytick.labelcolor": GREY,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
    "legend.frameon": False,
    "legend.labelcolor": GREY,
    # Text stays text, and the same alignments give the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "readmap",
}
FORM: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "pad_inches": 0.3}
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}

#: Characters of a name.
LONGEST_NAME = 40


def render_figure(figure: Callable[[], Figure], form: str) -> bytes:
    """A figure as a file; it is made in the style. form: png, svg or pdf."""
    written = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure().savefig(written, format=form, metadata=METADATA.get(form), **FORM)
    return written.getvalue()


def label_text(name: bytes) -> str:
    """A name as matplotlib takes it, which is cut where it is too long."""
    text = decode_name(name)
    # A dollar would begin a formula.
    short = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}\u2026"
    return short.replace("$", r"\$")
