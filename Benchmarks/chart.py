#!/usr/bin/env python3
"""Draws the results of bench.py as an SVG image: a bar for each row, and a mark at its target."""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

OK, MISSED, WITHOUT_TARGET, MARK = "#0072b2", "#d55e00", "#999999", "#000000"
# Longer bars are cut off; their value is written next to them.
LONGEST = 1.6
# Inches.
WIDTH, ROW, HEAD = 10.5, 0.25, 0.7


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", default=".build/bench.json", help="JSON of bench.py (%(default)s)")
    parser.add_argument("image", nargs="?", default="Images/benchmarks.svg", help="SVG to write (%(default)s)")
    arguments = parser.parse_args()
    results = json.loads(pathlib.Path(arguments.results).read_text())
    rows = [row for row in results["workloads"] if row["ours"]]
    titles = {"nghttpd": "CPU per push, divided by nghttpd's", "apns-mock": "With a feature, divided by without it",
              None: "Times and memory, divided by the target"}
    panels = [(title, [row for row in rows if row["compared_with"] == other]) for other, title in titles.items()]
    panels = [(title, rows) for title, rows in panels if rows]
    # The same figures give the same file. Text stays text, in a font that most machines have: outlines would make the
    # file four times as large.
    pyplot.rcParams.update({"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9,
                            "font.family": ["DejaVu Sans", "sans-serif"], "savefig.facecolor": "white"})
    heights = [len(rows) * ROW + HEAD for _, rows in panels]
    figure, axes = pyplot.subplots(
        len(panels), figsize=(WIDTH, sum(heights)), height_ratios=heights, squeeze=False, layout="constrained")
    for axis, (title, rows) in zip(axes.flat, panels):
        draw(axis, title, rows)
    machine, runs = results["machine"], max(row["details"]["runs"] for _, rows in panels for row in rows)
    figure.supxlabel(
        f"Medians of {runs} runs. {machine['cpu']}, {machine['cores']} cores, {results['began'][:10]}. "
        "Black line: the target. Blue: met, orange: missed, grey: no target.", fontsize=8)
    figure.savefig(arguments.image, metadata={"Date": None})


def draw(axis, title, rows):
    axis.set_title(title, loc="left", fontweight="bold", fontsize=10)
    for place, row in enumerate(rows):
        value, target, text = figures(row)
        color = WITHOUT_TARGET if target is None else OK if row["verdict"] == "ok" else MISSED
        axis.barh(place, min(value, LONGEST), height=0.62, color=color)
        if target is not None:
            axis.plot([target, target], [place - 0.42, place + 0.42], color=MARK, linewidth=2)
        end = max(min(value, LONGEST), target or 0)
        if row["missed"]:
            text += f", {row['missed']}"
        axis.annotate(text, (end, place), xytext=(5, 0), textcoords="offset points", va="center", in_layout=False)
    axis.set_yticks(range(len(rows)), [row["about"] for row in rows])
    axis.invert_yaxis()
    # The right half is for the labels.
    axis.set_xlim(0, LONGEST * 2)
    axis.set_xticks([0, 0.5, 1, 1.5])
    axis.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.spines["bottom"].set_bounds(0, LONGEST)
    axis.margins(y=0.02)
    axis.tick_params(axis="y", length=0)


def figures(row):
    """Returns the length of a row's bar, the place of its mark, and its label."""
    if row["ratio"] is None:
        value, unit = row["ours"]["median"], row["unit"]
        digits = 0 if value >= 100 else 1
        return value / row["target"], 1, f"{value:,.{digits}f} {unit} (at most {row['target']:g})"
    value, target = row["ratio"]["median"], row["target"]
    bound = "" if target is None else f" (at {'least' if row['is_least'] else 'most'} {target:g})"
    return value, target, f"{value:.2f}{bound}{', pushes per second' if row['unit'] == '/s' else ''}"


if __name__ == "__main__":
    main()
