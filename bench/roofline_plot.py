#!/usr/bin/env python3
"""Draws the results of mlaprolog_bench as an SVG: time over tokens for each head count, against the machine's bounds.

Usage: roofline_plot.py <results.json> <picture.svg>
"""

import math
import sys

import bench_results

PANEL_WIDTH = 330
PANEL_HEIGHT = 330
LEFT = 62
GAP = 62
TOP = 84
ROW_HEIGHT = 17
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"

INK = "#222222"
GRID = "#e4e4e4"
# Colours that stay apart for the colour-blind.
SCENARIOS = {
    "non-quant": {"label": "bf16", "colour": "#0060a8", "dash": "", "marker": "circle"},
    "partial": {"label": "partial (int8)", "colour": "#c04a00", "dash": "6 4", "marker": "diamond"},
    "full-int8": {"label": "full int8", "colour": "#00785a", "dash": "2 3", "marker": "triangle"},
}
PEER = {"label": "oneDNN, bf16", "colour": "#555555", "marker": "square"}


def text(x, y, content, size=11, anchor="middle", colour=INK, weight="normal", extra=""):
    content = content.replace("&", "&amp;").replace("<", "&lt;")
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{colour}' "
            f"font-weight='{weight}' {FONT} {extra}>{content}</text>")


def line(x1, y1, x2, y2, colour, width=1.0, dash=""):
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' "
            f"stroke-width='{width}'{dashes}/>")


def marker(kind, x, y, colour):
    if kind == "circle":
        return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.2' fill='{colour}'/>"
    if kind == "diamond":
        return f"<path d='M{x:.1f} {y - 5.2:.1f}l5.2 5.2l-5.2 5.2l-5.2 -5.2z' fill='{colour}'/>"
    if kind == "triangle":
        return f"<path d='M{x:.1f} {y - 5.2:.1f}l5 9l-10 0z' fill='{colour}'/>"
    return (f"<rect x='{x - 4:.1f}' y='{y - 4:.1f}' width='8' height='8' fill='none' stroke='{colour}' "
            f"stroke-width='1.6'/>")


def bound_seconds(point):
    return max(point["memory_bound_seconds"], point["compute_bound_seconds"])


def ticks_between(low, high):
    """1, 2 and 5 times the powers of ten in [low, high]."""
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        ticks += [digit * 10.0**power for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


class Panel:
    """One head count."""

    def __init__(self, left, tokens, low, high):
        self.left = left
        self.tokens = tokens
        self.low, self.high = low, high

    def x(self, tokens):
        margin = 16
        first, last = math.log2(self.tokens[0]), math.log2(self.tokens[-1])
        share = (math.log2(tokens) - first) / (last - first) if last > first else 0.5
        return self.left + margin + share * (PANEL_WIDTH - 2 * margin)

    def y(self, milliseconds):
        share = math.log(milliseconds / self.low) / math.log(self.high / self.low)
        return TOP + PANEL_HEIGHT * (1 - share)

    def frame(self, heads):
        bottom = TOP + PANEL_HEIGHT
        parts = []
        for tick in ticks_between(self.low, self.high):
            y = self.y(tick)
            parts.append(line(self.left, y, self.left + PANEL_WIDTH, y, GRID))
            parts.append(text(self.left - 7, y + 4, f"{tick:g}", anchor="end"))
        for tokens in self.tokens:
            x = self.x(tokens)
            parts.append(line(x, TOP, x, bottom, GRID))
            parts.append(text(x, bottom + 16, str(tokens), size=10))
        parts.append(f"<rect x='{self.left}' y='{TOP}' width='{PANEL_WIDTH}' height='{PANEL_HEIGHT}' fill='none' "
                     f"stroke='{INK}'/>")
        parts.append(text(self.left + PANEL_WIDTH / 2, TOP - 9, f"N = {heads}", size=13, weight="bold"))
        parts.append(text(self.left - 7, bottom + 16, "T", size=11, anchor="end", weight="bold"))
        return parts

    def scenario(self, points, style, row):
        points = sorted(points, key=lambda point: point["tokens"])
        corners = [(self.x(point["tokens"]), self.y(1e3 * bound_seconds(point))) for point in points]
        parts = [line(*a, *b, style["colour"], 1.4, style["dash"]) for a, b in zip(corners, corners[1:])]
        if len(corners) == 1:
            x, y = corners[0]
            parts.append(line(x - 9, y, x + 9, y, style["colour"], 1.4, style["dash"]))
        bottom = TOP + PANEL_HEIGHT + 20 + ROW_HEIGHT * (row + 1)
        for point in points:
            x = self.x(point["tokens"])
            parts.append(marker(style["marker"], x, self.y(1e3 * point["ours"]["median_seconds"]), style["colour"]))
            parts.append(text(x, bottom, f"{point['efficiency']:.2f}".lstrip("0"), size=10, colour=style["colour"]))
        return parts

    def peer(self, points):
        return [marker(PEER["marker"], self.x(point["tokens"]), self.y(1e3 * point["peers"][0]["median_seconds"]),
                       PEER["colour"]) for point in points if point["peers"]]


def legend(points):
    """The parts, and where they end."""
    parts = []
    x = LEFT
    y = 44
    for name, style in SCENARIOS.items():
        if not any(point["scenario"] == name for point in points):
            continue
        parts.append(marker(style["marker"], x + 5, y - 4, style["colour"]))
        parts.append(text(x + 17, y, style["label"], anchor="start", size=12))
        x += 30 + 7.6 * len(style["label"])
        parts.append(line(x, y - 4, x + 30, y - 4, style["colour"], 1.4, style["dash"]))
        parts.append(text(x + 37, y, "its bound", anchor="start", size=12))
        x += 125
    if any(point["peers"] for point in points):
        parts.append(marker(PEER["marker"], x + 5, y - 4, PEER["colour"]))
        parts.append(text(x + 17, y, PEER["label"], anchor="start", size=12))
        x += 30 + 7.6 * len(PEER["label"])
    return parts, x


def draw(results):
    points = [point for point in results["points"] if point["scenario"] in SCENARIOS]
    if not points:
        sys.exit("roofline_plot.py: the results hold no point of " + ", ".join(SCENARIOS))
    heads = sorted({point["heads"] for point in points})
    tokens = sorted({point["tokens"] for point in points})
    times = [1e3 * bound_seconds(point) for point in points]
    times += [1e3 * point["ours"]["median_seconds"] for point in points]
    times += [1e3 * point["peers"][0]["median_seconds"] for point in points if point["peers"]]
    low, high = min(times) / 1.3, max(times) * 1.3

    rows = [name for name in SCENARIOS if any(point["scenario"] == name for point in points)]
    width = LEFT + len(heads) * PANEL_WIDTH + (len(heads) - 1) * GAP + 22
    height = TOP + PANEL_HEIGHT + 34 + ROW_HEIGHT * len(rows) + 26
    machine = results["machine"]
    title = f"Milliseconds per call over tokens T, {machine['threads']} threads, {machine['isa']}, {machine['cpu']}"
    legend_parts, legend_end = legend(points)
    width = max(width, 640, round(LEFT + 8.6 * len(title)), round(legend_end))
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        text(LEFT, 22, title, size=13, anchor="start", weight="bold"),
        *legend_parts,
    ]
    for index, count in enumerate(heads):
        panel = Panel(LEFT + index * (PANEL_WIDTH + GAP), tokens, low, high)
        parts += panel.frame(count)
        for row, name in enumerate(rows):
            parts += panel.scenario([p for p in points if p["heads"] == count and p["scenario"] == name],
                                    SCENARIOS[name], row)
        parts += panel.peer([p for p in points if p["heads"] == count])
        for row, name in enumerate(rows):
            parts.append(text(panel.left - 7, TOP + PANEL_HEIGHT + 20 + ROW_HEIGHT * (row + 1), "eff.", size=10,
                              anchor="end", colour=SCENARIOS[name]["colour"]))
    parts.append(text(LEFT, height - 12, "eff.: bound / median; the bound is max(bytes / read bandwidth, operations / peak), "
                      "measured in the same rounds", size=10, anchor="start"))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    bench_results.convert(draw, __doc__)
