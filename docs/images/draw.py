"""Draw the pictures of the documentation from the rows in docs/results: python docs/images/draw.py"""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
BLUE, ORANGE, GREY = "#0b6cb3", "#cf5a00", "#6b6b6b"
NAMES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "ru": "Russian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def seeds(axes: Axes) -> None:
    """Gemma 3 270M: parts of speech from English labels, a dot for each of eight seeds."""
    rows = pd.read_csv(RESULTS / "real_weights/seeds/rows-scores.csv")
    rows = rows[(rows.metric == "accuracy") & (rows.split == "test")]
    for height, code in enumerate(reversed(NAMES)):
        scores = 100 * rows[rows.language == code].score
        axes.plot(
            scores, [height] * len(scores), "o", color=BLUE if code == "en" else ORANGE, alpha=0.6, mec="none"
        )
    axes.set_yticks(range(len(NAMES)), list(reversed(NAMES.values())))
    axes.set_xlabel("accuracy in %, eight seeds")


def paths(axes: Axes) -> None:
    """The quickstart: source and targets on the straight line from source-only to bilingual."""
    rows = pd.read_csv(RESULTS / "quickstart/rows-interpolation.csv")
    facts = pd.read_csv(RESULTS / "quickstart/facts.csv", index_col=0)["method"]
    rows = rows[(rows.metric == "accuracy") & (rows.start.map(facts) == "source-only")]
    for (_, role), curve in rows.groupby(["end", "role"]):
        axes.plot(curve.alpha, 100 * curve.score, color=BLUE if role == "source" else ORANGE, lw=1)
    axes.axvspan(0, 1, color="#f2f1ec", zorder=0)
    axes.text(1.52, 99, "source", color=BLUE, va="bottom")
    axes.text(1.52, 97, "targets", color=ORANGE, va="top")
    axes.set_xlabel("α: 0 source-only, 1 bilingual")
    axes.set_ylabel("accuracy in %")


def mixing(axes: Axes) -> None:
    """X-Mixup: what mixing brings against the same training without it, by what the mixing weights lie on."""
    rows = pd.read_csv(RESULTS / "x_mixup/mixing/effects.csv")
    rows = rows[(rows.target == "mean") & (rows.against == "without mixing")]
    labels = {
        "x-mixup": "by the paper's attention",
        "by cosine": "by cosine of states",
        "by links": "by gold links",
    }
    intervals(axes, [(label, rows[rows.system == name]) for name, label in labels.items()], "difference")
    axes.set_xlabel("points of accuracy against no mixing")


def adjusting(axes: Axes) -> None:
    """An adjusted encoder under each method, and each method on the original one."""
    rows = pd.read_csv(RESULTS / "combinations/upos/effects.csv", keep_default_na=False)
    row_groups = [(f"adjusting, {name}", rows[(rows.what == "adjusting") & (rows.against == name)])
             for name in ("source-only", "translate-train", "x-mixup", "few-shot", "continual")]  # fmt: skip
    row_groups += [(f"{name} alone", rows[(rows.what == name) & (rows.on == "original")])
              for name in ("continual", "x-mixup", "translate-train")]  # fmt: skip
    intervals(axes, row_groups, "points")
    axes.set_xlabel("points of accuracy in the target")


def gradients(axes: Axes) -> None:
    """Gradients of two languages against two batches of one, by layer."""
    rows = pd.read_csv(RESULTS / "interference/built-in/gradients-by-layer.csv")
    for module, style in (("attention", "-"), ("feed-forward", "--")):
        of_module = rows[rows.module == module].groupby("layer")[["cosine", "within"]].mean()
        axes.plot(of_module.index, of_module.cosine, style, color=ORANGE, label=f"two languages, {module}")
        axes.plot(of_module.index, of_module.within, style, color=BLUE, label=f"one language, {module}")
    axes.set_xticks(sorted(rows.layer.dropna().unique()))
    axes.set_xlabel("layer")
    axes.set_ylabel("cosine of gradients")
    axes.legend(frameon=False, fontsize=7)


def choosing(axes: Axes) -> None:
    """Points lost by choosing a model without labels: by the rule, by the source's score, at random."""
    row_groups = []
    for task, name in (("upos", "tags"), ("ner", "names"), ("topics", "topics")):
        rows = pd.read_csv(RESULTS / f"choosing/regret-{task}.csv")
        rows[["regret", "low", "high"]] *= 100
        row_groups += [
            (f"{name}: {by}", rows[rows.by == by]) for by in ("the rule", "source score", "at random")
        ]
    intervals(axes, row_groups, "regret")
    axes.set_xlabel("points below the best candidate")


def averaging(axes: Axes) -> None:
    """Gain of the mean of seeds' weights over its models."""
    rows = pd.read_csv(RESULTS / "averaging/averages.csv").rename(
        columns={"gain_low": "low", "gain_high": "high"}
    )
    row_groups = [(f"{system}: {language.replace('qaa', 'source')}", rows[(rows.system == system) & (rows.language == language)])
             for system in ("mean of 3", "mean of 6", "TIES of 3") for language in ("qaa", "targets")]  # fmt: skip
    intervals(axes, row_groups, "gain")
    axes.set_xlabel("points of accuracy against the mean of its models")


def intervals(axes: Axes, row_groups: list[tuple[str, pd.DataFrame]], column: str) -> None:
    """Draw a row for each label: the estimate and its 95 % interval."""
    for height, (_, row) in enumerate(reversed(row_groups)):
        (middle,), (low,), (high,) = row[column], row["low"], row["high"]
        axes.plot([low, high], [height, height], color=GREY, lw=1.5)
        axes.plot(middle, height, "o", color=ORANGE)
    axes.axvline(0, color="#bbb", lw=0.8, zorder=0)
    axes.set_yticks(range(len(row_groups)), [label for label, _ in reversed(row_groups)])
    axes.set_ylim(-0.6, len(row_groups) - 0.4)


PICTURES: list[Callable[[Axes], None]] = [seeds, paths, mixing, adjusting, gradients, choosing, averaging]


def main() -> None:
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "isogloss", "axes.spines.top": False,
                         "axes.spines.right": False})  # fmt: skip
    for draw in PICTURES:
        figure, axes = plt.subplots(figsize=(5.6, 2.7), layout="constrained")
        draw(axes)
        figure.savefig(HERE / f"{draw.__name__}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
