"""Matplotlib figures -> files: the colours and style of all plots. matplotlib comes with readmap[plot]."""

import io
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from readmap.formats.wording import decode_name

# The palette of Okabe and Ito, distinguishable with colour blindness.
BLUE, GREEN, YELLOW, RED = "#0072B2", "#009E73", "#E69F00", "#D55E00"
BLACK, GREY, SILVER = "#222222", "#666666", "#DDDDDD"
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), SILVER),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor", "legend.labelcolor"), GREY),
    **dict.fromkeys(("lines.solid_capstyle", "lines.solid_joinstyle"), "round"),
    "font.size": 9,
    "text.color": BLACK,
    "axes.labelpad": 8,
    "axes.axisbelow": True,
    "grid.color": "#F2F2F2",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    # Keep text as text, and make the same alignments give the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "readmap",
}
SAVE_OPTIONS: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "pad_inches": 0.3}
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
#: Characters of a name in a label.
MAX_LABEL_LENGTH = 40


def render_figure(figure: Callable[[], Figure], file_format: str) -> bytes:
    """Call `figure` with readmap's style and return the file; file_format: png, svg or pdf."""
    written = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure().savefig(written, format=file_format, metadata=METADATA.get(file_format), **SAVE_OPTIONS)
    return written.getvalue()


def label_text(name: bytes) -> str:
    """Return a name as the text of a label: truncated, and without mathematical mode."""
    text = decode_name(name)
    short = text if len(text) <= MAX_LABEL_LENGTH else f"{text[: MAX_LABEL_LENGTH - 1]}\u2026"
    return short.replace("$", r"\$")
