"""SVG charts for the HTML report, whose style sheet has the colours: lines, bands and bars."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 14, 46

#: Minimum distance of two ticks of an axis, in units of the plot.
TICK_WIDTH, TICK_HEIGHT = 70, 42

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A line, interrupted at NaN, with a band from low to high if not None; colour: its class in the style sheet."""

    name: str
    values: Values
    colour: str
    low: Values | None = None
    high: Values | None = None
    is_dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """The title and number format of an axis. low, high: values that are always visible."""

    name: str
    form: Callable[[float], str] = "{:,g}".format
    low: float | None = None
    high: float | None = None


def line_chart(title: str, x_values: Values, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Return a line chart as SVG; x_values: ascending, [points]. It has a legend if there are several lines."""
    plot = _Plot(x_values, lines, x, y)
    parts = [plot.axes(x, y)]
    for line in lines:
        if line.low is not None and line.high is not None:
            parts.append(f'<path class="band {line.colour}" d="{plot.band(line.low, line.high)}"/>')
    for line in lines:
        dash = " dashed" if line.is_dashed else ""
        parts.append(f'<path class="line {line.colour}{dash}" d="{plot.path(line.values)}"/>')
    parts.append(plot.hints(lines, x, y))
    return _figure(title, parts, lines if len(lines) > 1 else [])


def bar_chart(title: str, x_values: Values, counts: Values, x: Axis, y: Axis) -> str:
    """Return a bar chart as SVG; the bars are as wide as the distance of the x values."""
    bars = Line(y.name, counts, "c1")
    plot = _Plot(x_values, [bars], x, y, is_bars=True)
    return _figure(title, [plot.axes(x, y), plot.bars(counts), plot.hints([bars], x, y)], [])


class _Plot:
    """The scales of a chart, and shapes drawn to scale."""

    def __init__(self, x_values: Values, lines: Sequence[Line], x: Axis, y: Axis, is_bars: bool = False) -> None:
        self._x_values = x_values
        step = float(x_values[1] - x_values[0]) if len(x_values) > 1 else 1.0
        self._half = step / 2 if is_bars else 0.0
        self._first, self._last = float(x_values[0]) - self._half, float(x_values[-1]) + self._half
        if self._last <= self._first:
            self._last = self._first + 1
        drawn = [each for line in lines for each in (line.values, line.low, line.high) if each is not None]
        shown = np.concatenate([*drawn, [one for one in (y.low, y.high) if one is not None], [0.0] if is_bars else []])
        shown = shown[~np.isnan(shown)]
        low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
        self._ticks = _ticks(low, high if high > low else low + 1, (HEIGHT - TOP - BOTTOM) // TICK_HEIGHT)
        self._low, self._high = min(low, self._ticks[0]), max(high, self._ticks[-1])

    def x(self, x_value: float) -> float:
        return LEFT + (x_value - self._first) / (self._last - self._first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self._low) / (self._high - self._low) * (HEIGHT - TOP - BOTTOM)

    def axes(self, x: Axis, y: Axis) -> str:
        """Return the grid, ticks, numbers and titles of both axes as SVG."""
        bottom, parts = HEIGHT - BOTTOM, []
        for tick in self._ticks:
            at = self.y(tick)
            parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{at + 4:.1f}">{escape(y.form(tick))}</text>')
        for tick in _ticks(self._first, self._last, (WIDTH - LEFT - RIGHT) // TICK_WIDTH):
            if self._first <= tick <= self._last:
                at = self.x(tick)
                parts.append(f'<path class="grid" d="M{at:.1f} {bottom}v5"/>')
                parts.append(f'<text class="tick middle" x="{at:.1f}" y="{bottom + 18}">{escape(x.form(tick))}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(f'<text class="name middle" x="{middle:.1f}" y="{HEIGHT - 8}">{escape(x.name)}</text>')
        across = (TOP + bottom) / 2
        turned = f"translate(14 {across:.1f}) rotate(-90)"
        parts.append(f'<text class="name across middle" transform="{turned}">{escape(y.name)}</text>')
        return "".join(parts)

    def path(self, values: Values) -> str:
        """Return the path of a line through all values except NaN."""
        drawn, command = [], "M"
        for x_value, value in zip(self._x_values, values, strict=True):
            if not math.isnan(value):
                drawn.append(f"{command}{self.x(x_value):.1f} {self.y(value):.1f}")
            command = "M" if math.isnan(value) else "L"
        return "".join(drawn)

    def band(self, low: Values, high: Values) -> str:
        """Return the path of the area between two lines where both have values."""
        known = ~(np.isnan(low) | np.isnan(high))
        x_values = self._x_values[known]
        corners = [*zip(x_values, high[known], strict=True), *zip(x_values[::-1], low[known][::-1], strict=True)]
        drawn = "L".join(f"{self.x(x_value):.1f} {self.y(value):.1f}" for x_value, value in corners)
        return f"M{drawn}Z" if drawn else ""

    def bars(self, counts: Values) -> str:
        zero, drawn = self.y(0), []
        for x_value, count in zip(self._x_values, counts, strict=True):
            if count > 0:
                left, right = self.x(x_value - self._half), self.x(x_value + self._half)
                gap = min(0.6, (right - left) / 8)
                drawn.append(f"M{left + gap:.1f} {zero:.1f}V{self.y(count):.1f}H{right - gap:.1f}V{zero:.1f}Z")
        return f'<path class="bars c1" d="{"".join(drawn)}"/>'

    def hints(self, lines: Sequence[Line], x: Axis, y: Axis) -> str:
        """Return the tooltips of all x values as SVG."""
        edges = np.concatenate([[self._first], (self._x_values[1:] + self._x_values[:-1]) / 2, [self._last]])
        parts = []
        for number, x_value in enumerate(self._x_values):
            rows = [
                (f"{line.name}: " if len(lines) > 1 else "") + y.form(float(line.values[number]))
                for line in lines
                if not math.isnan(line.values[number])
            ]
            left, right = self.x(edges[number]), self.x(edges[number + 1])
            text = escape("\n".join([f"{x.name} {x.form(float(x_value))}", *rows]))
            parts.append(
                f'<rect class="hint" x="{left:.1f}" y="{TOP}" width="{max(right - left, 0.1):.1f}" '
                f'height="{HEIGHT - TOP - BOTTOM}"><title>{text}</title></rect>'
            )
        return "".join(parts)


def _figure(title: str, parts: Sequence[str], legend: Sequence[Line]) -> str:
    """Return the SVG picture of these parts, followed by a legend if there are lines for it."""
    keys = "".join(
        f'<li><svg viewBox="0 0 24 8" aria-hidden="true"><path class="line {line.colour}'
        f'{" dashed" if line.is_dashed else ""}" d="M0 4H24"/></svg>{escape(line.name)}</li>'
        for line in legend
    )
    picture = f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    return f"{picture}{''.join(parts)}</svg>" + (f'<ul class="legend">{keys}</ul>' if keys else "")


def _ticks(low: float, high: float, max_ticks: int) -> list[float]:
    """Return about `max_ticks` round numbers that enclose [low, high]."""
    rough = (high - low) / max(max_ticks, 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    step = scale * next(factor for factor in (1, 2, 5, 10) if factor * scale >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
