"""Draw the packages of isogloss and the way of a recipe through them: python docs/images/layers.py"""

from pathlib import Path

import matplotlib.pyplot as plt
from draw import follow_mode
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).parent
BLUE, ORANGE, INK = "#0b6cb3", "#cf5a00", "#222222"
LAYERS = (
    ("cli · api · study", "commands and the Python interface", "white"),
    ("using", "models in use: predict, evaluate, export", "white"),
    ("engine", "processes, Ray, Slurm", "#e7f0f8"),
    ("planning", "a recipe becomes runs", "#e7f0f8"),
    ("runs · functional", "runs call the functions that you can call", "#e7f0f8"),
    ("store · recipes · reports", "folders, TOML, tables and figures", "#e7f0f8"),
    ("methods · diagnostics · aligners · translators", "one part, one file", "#fbeadf"),
    (
        "similarity · training · tasks · encoders",
        "states, one training loop, labels, Hugging Face models",
        "#fbeadf",
    ),
    ("data · metrics · core", "corpora, scores, ids, records", "#fbeadf"),
)
"""From top to bottom: packages, their subject, and the colour of the band."""

FILES = {
    2: "writes .claims/ (leases)",
    3: "writes plan.json",
    4: "write ID/record.json, ID/model/",
    5: "read recipe.toml, write report.html",
}
"""Files of a study, next to the layer that reads or writes them."""


def draw(axes: Axes) -> None:
    """Draw a band for each layer, and the files of a study next to it."""
    for index, (packages, subject, colour) in enumerate(LAYERS):
        box = FancyBboxPatch((0, -index), 6, 0.8, boxstyle="round,pad=0.02", fc=colour, ec="#bbbbbb")
        axes.add_patch(box)
        axes.text(0.15, -index + 0.5, packages, color=INK, weight="bold", va="center", fontsize=8)
        axes.text(0.15, -index + 0.2, subject, color=INK, va="center", fontsize=7)
    for layer, files in FILES.items():
        middle_difference = 0.4 - layer
        arrow = FancyArrowPatch(
            (6.1, middle_difference),
            (6.6, middle_difference),
            arrowstyle="-|>",
            color=ORANGE,
            mutation_scale=8,
        )
        axes.add_patch(arrow)
        axes.text(6.7, middle_difference, files, color=BLUE, va="center", fontsize=7.5)
    axes.set_xlim(-0.1, 10.4)
    axes.set_ylim(-len(LAYERS) + 0.9, 1)
    axes.axis("off")


def main() -> None:
    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "isogloss"})
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    draw(axes)
    figure.savefig(HERE / "layers.svg", metadata={"Date": None})
    follow_mode(HERE / "layers.svg")


if __name__ == "__main__":
    main()
