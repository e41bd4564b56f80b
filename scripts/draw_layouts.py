#!/usr/bin/env python3
"""Draws docs/layouts.svg: the order of bytes of FRACTAL_NZ weights, of the caches' pages, and of per-group rows.

Usage: draw_layouts.py [--check] <layouts.svg>

With --check nothing is written; the exit code says whether the file is what would be drawn.
"""

import sys

CELL = 22
COLOURS = ["#cfe3f7", "#f9ddc0", "#d3ecd0", "#ecd3ea"]
STYLE = "font-family: sans-serif; font-size: 12px;"


def text(x, y, words, anchor="start", size=12, weight="normal"):
    return (f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">{words}</text>')


def box(x, y, width, height, colour):
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}" stroke="#555"/>'


def grid(x, y, rows, columns, place, block_columns):
    """A matrix of rows x columns; each cell shows the place of its elements in memory."""
    parts = []
    for i in range(rows):
        for j in range(columns):
            colour = COLOURS[j // block_columns % len(COLOURS)]
            parts.append(box(x + j * CELL * 2, y + i * CELL, CELL * 2, CELL, colour))
            parts.append(text(x + j * CELL * 2 + CELL, y + i * CELL + 15, str(place(i, j)), "middle", 10))
    return parts


def picture():
    parts = [text(20, 28, "FRACTAL_NZ weight (k, n): blocks of C0 columns, one after the other", weight="bold", size=14),
             text(20, 48, "Each cell is one row of a block: C0 elements, 32 bytes. The number is its place in memory; a fractal is 16 rows.")]
    rows, blocks = 4, 3
    names = ["k = 0", "1", "...", "k - 1"]
    for i, name in enumerate(names):
        parts.append(text(66, 82 + i * CELL, name, "end", 11))
    for block in range(blocks):
        for i in range(rows):
            first = {0: "0", 1: "K", 2: "2K"}[block]
            label = {0: first, 1: f"{first}+1" if block else "1", 2: "...", 3: f"{first}+K-1" if block else "K-1"}[i]
            parts.append(box(74 + block * 120, 66 + i * CELL, 120, CELL, COLOURS[block]))
            parts.append(text(134 + block * 120, 81 + i * CELL, label, "middle", 11))
        parts.append(text(134 + block * 120, 66 + rows * CELL + 16, f"column block {block}", "middle", 11))
    parts.append(text(450, 82, "K = k rounded up to 16"))
    parts.append(text(450, 100, "C0 = 16 (bf16) or 32 (8-bit)"))
    parts.append(text(450, 118, "row-major has element (i, j)"))
    parts.append(text(450, 134, "at i * n + j instead"))

    top = 210
    parts.append(text(20, top, "A page of a cache: BlockSize = 4 slots, rows of W = 4 C0 elements", weight="bold", size=14))
    parts.append(text(20, top + 20, "Each cell is C0 elements, 32 bytes; the number is its place in the page."))
    for x, title, place in ((74, "rows: PA_BSND, PA_BLK_BSND, BSND, TND", lambda i, j: i * 4 + j),
                            (340, "NZ: PA_NZ, PA_BLK_NZ", lambda i, j: j * 4 + i)):
        parts.append(text(x, top + 44, title, size=12))
        parts += grid(x, top + 52, 4, 4, place, 1)
    for i in range(4):
        parts.append(text(66, top + 67 + i * CELL, f"slot {i}", "end", 11))

    top = 390
    parts.append(text(20, top, "A per-group row (kvCacheQuantMode 3), 656 bytes at Hckv = 512, Dr = 64", weight="bold", size=14))
    x = 20
    for width, words, colour in ((420, "512 bytes: cKV, 8 bits each", COLOURS[0]), (150, "128 bytes: kR, bf16", COLOURS[1]),
                                 (110, "16 bytes: scales", COLOURS[2])):
        parts.append(box(x, top + 14, width, 30, colour))
        parts.append(text(x + width / 2, top + 34, words, "middle", 11))
        x += width
    parts.append(text(20, top + 64, "One binary32 scale for each 128 values of cKV: value = 8-bit value * scale. FlashMLA keeps the scales before kR."))
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 475" width="720" height="475" style="{STYLE}">\n'
            f'<rect width="720" height="475" fill="white"/>\n{body}\n</svg>\n')


def main():
    arguments = sys.argv[1:]
    is_check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + is_check:
        sys.exit(__doc__.strip())
    drawn = picture()
    if is_check:
        with open(arguments[1], encoding="utf-8") as file:
            if file.read() != drawn:
                sys.exit(f"{arguments[1]} is not what scripts/draw_layouts.py draws; run it")
        return
    with open(arguments[0], "w", encoding="utf-8") as file:
        file.write(drawn)


if __name__ == "__main__":
    main()
