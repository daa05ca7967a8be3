"""Draw the figures of the documentation from the rows in docs/results and benchmarks: python docs/images/draw.py

Arguments name figures to draw; without any, all are drawn. In dark mode a figure inverts its lightness.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from isogloss import read_gains
from isogloss.core.languages import language_name
from isogloss.features.advising.advice import predict_next_gain

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
BENCHMARKS = HERE.parents[1] / "benchmarks" / "results"
BLUE, ORANGE, GREY, GREEN = "#0b6cb3", "#cf5a00", "#6b6b6b", "#cfe4d7"
DARK = "<style>@media (prefers-color-scheme: dark) {svg {filter: invert(0.92) hue-rotate(180deg)}}</style>"
NAMES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "ru": "Russian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
CLAIMS = {
    "1a": "level source score",
    "1b": "rising target score",
    "1c": "targets vary over seeds",
    "1d": "equal distances",
    "1f": "linear rise",
    "1g": "angle of 55°",
    "1i": "the encoder decides",
    "1j": "path of Eq. 2",
}
"""Claims in the figure, in a few words."""

DISTANCE_METHODS = (
    ("source-only", "#222222", "o"),
    ("adjusted", "#0b6cb3", "s"),
    ("alignment loss", "#8fb8d9", "D"),
    ("translate-train", "#cf5a00", "^"),
    ("x-mixup", "#e0b15a", "v"),
    ("self-training", "#6b6b6b", "x"),
    ("few-shot", "#1c7a45", "P"),
    ("joint", "#7a3fa0", "*"),
)
"""Methods with their colours and markers."""

VERDICTS = {
    "supported": "#1c7a45",
    "mixed": "#e0b15a",
    "differs from print": "#8fb8d9",
    "contradicted": ORANGE,
    "undecided": "#c9c9c4",
    "not tested": "white",
}
"""The colour of each verdict."""


def seeds(axes: Axes) -> None:
    """Gemma 3 270M: parts of speech from English labels, a dot for each of eight seeds."""
    rows = pd.read_csv(RESULTS / "real_weights/seeds/rows-scores.csv")
    rows = rows[(rows.metric == "accuracy") & (rows.split == "test")]
    for height, language in enumerate(reversed(NAMES)):
        scores = 100 * rows[rows.language == language].score
        axes.plot(
            scores,
            [height] * len(scores),
            "o",
            color=BLUE if language == "en" else ORANGE,
            alpha=0.6,
            mec="none",
        )
    axes.set_yticks(range(len(NAMES)), list(reversed(NAMES.values())))
    axes.set_xlabel("accuracy in %, eight seeds")


LOTTERY = {
    "original": ("encoder as it is", ORANGE, 0.3),
    "zero head": ("head of zeros", "#1c7a45", 0.1),
    "adjusted": ("adjusted on verses", BLUE, -0.1),
    "shuffled": ("wrongly paired", "#7fb2da", -0.3),
}
"""Label, colour and height of the encoders in the figure of the lottery."""


def lottery(axes: Axes) -> None:
    """Gemma 3 270M: parts of speech from English labels, with and without an adjustment; a dot per seed."""
    axes.figure.set_figheight(3.1)
    rows = pd.read_csv(RESULTS / "real_weights/lottery/rows.csv")
    rows = rows[(rows.task == "upos") & rows.method.isin(["source-only", "zero head"])]
    arms = rows.encoder.replace("causal", "original")
    rows = rows.assign(encoder=arms.where(rows.method == "source-only", rows.method))
    languages = ["en", "de", "es", "ru", "vi"]
    for arm, (label, color, shift) in LOTTERY.items():
        points = [
            (100 * score, height + shift)
            for height, language in enumerate(reversed(languages))
            for score in rows[(rows.encoder == arm) & (rows.language == language)].score
        ]
        axes.plot(*zip(*points, strict=True), "o", ms=5, color=color, alpha=0.7, mec="none", label=label)
    axes.set_yticks(range(len(languages)), [NAMES[language] for language in reversed(languages)])
    axes.set_xlabel("accuracy in %, a dot for each seed")
    axes.figure.legend(
        frameon=False, fontsize=8, loc="outside upper center", ncols=len(LOTTERY), handletextpad=0
    )
    axes.grid(axis="x", color="#e4e3dd", lw=0.6)
    axes.set_axisbelow(True)


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
    """X-Mixup: gain of mixing over the same training without it, by where the mixing weights are."""
    rows = pd.read_csv(RESULTS / "x_mixup/mixing/effects.csv")
    rows = rows[(rows.target == "mean") & (rows.against == "without mixing")]
    fields = {
        "x-mixup": "by the paper's attention",
        "by cosine": "by cosine of states",
        "by links": "by gold links",
    }
    intervals(axes, [(label, rows[rows.system == name]) for name, label in fields.items()], "difference")
    axes.set_xlabel("points of accuracy against no mixing")


def adjusting(axes: Axes) -> None:
    """An adjusted encoder under each method, and each method on the original one."""
    rows = pd.read_csv(RESULTS / "combinations/upos/effects.csv", keep_default_na=False)
    texts = [(f"adjusting, {name}", rows[(rows.what == "adjusting") & (rows.against == name)])
             for name in ("source-only", "translate-train", "x-mixup", "few-shot", "continual")]  # fmt: skip
    texts += [(f"{name} alone", rows[(rows.what == name) & (rows.on == "original")])
              for name in ("continual", "x-mixup", "translate-train")]  # fmt: skip
    intervals(axes, texts, "points")
    axes.set_xlabel("points of accuracy in the target")


def gradients(axes: Axes) -> None:
    """Gradients of two languages against two batches of one, by layer."""
    rows = pd.read_csv(RESULTS / "interference/built-in/gradients-by-layer.csv")
    for module, style in (("attention", "-"), ("feed-forward", "--")):
        module_mean = rows[rows.module == module].groupby("layer")[["cosine", "within"]].mean()
        axes.plot(
            module_mean.index, module_mean.cosine, style, color=ORANGE, label=f"two languages, {module}"
        )
        axes.plot(module_mean.index, module_mean.within, style, color=BLUE, label=f"one language, {module}")
    axes.set_xticks(sorted(rows.layer.dropna().unique()))
    axes.set_xlabel("layer")
    axes.set_ylabel("cosine of gradients")
    axes.legend(frameon=False, fontsize=7)


def choosing(axes: Axes) -> None:
    """Points lost by choosing a model without labels: by the rule, by the source's score, at random."""
    text = []
    for task, name in (("upos", "tags"), ("ner", "names"), ("topics", "topics")):
        rows = pd.read_csv(RESULTS / f"choosing/regret-{task}.csv")
        rows[["regret", "low", "high"]] *= 100
        text += [
            (f"{name}: {key}", rows[rows.by == key]) for key in ("the rule", "source score", "at random")
        ]
    intervals(axes, text, "regret")
    axes.set_xlabel("points below the best candidate")


def averaging(axes: Axes) -> None:
    """Gain of the mean of the weights of seeds over its models."""
    rows = pd.read_csv(RESULTS / "averaging/averages.csv").rename(
        columns={"gain_low": "low", "gain_high": "high"}
    )
    texts = [(f"{system}: {language.replace('qaa', 'source')}", rows[(rows.system == system) & (rows.language == language)])
             for system in ("mean of 3", "mean of 6", "TIES of 3") for language in ("qaa", "targets")]  # fmt: skip
    intervals(axes, texts, "gain")
    axes.set_xlabel("points of accuracy against the mean of its models")


def distance_dial(axes: Axes) -> None:
    """Accuracy of each method at known distances of words, order and script."""
    rows = pd.read_csv(RESULTS / "distance_dial/gains.csv")
    at_zero = rows[(rows.dial == "words") & (rows.distance == 0)]
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(7.6, 3.1)
    panels = figure.subplots(1, 3, sharey=True)
    for panel, dial in zip(panels, ("words", "order", "script"), strict=True):
        dial_rows = pd.concat([at_zero, rows[(rows.dial == dial) & (rows.distance > 0)]])
        for index, (method, color, marker) in enumerate(DISTANCE_METHODS):
            line = dial_rows[dial_rows.method == method].sort_values("distance")
            errors = [line.score - line.score_low, line.score_high - line.score]
            style = "-" if method == "source-only" else "--"
            panel.errorbar(line.distance + 0.012 * (index - 3.5), line.score, errors, fmt=style, color=color,
                           marker=marker, ms=3.5, lw=1, elinewidth=0.7, label=method)  # fmt: skip
        panel.set_title(dial, fontsize=9)
        panel.set_xlabel("distance")
    panels[0].set_ylabel("accuracy in the target")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)


def baselines(axes: Axes) -> None:
    """Gain of each baseline over source-only training, in two tasks."""
    rows = pd.read_csv(RESULTS / "baselines/gains.csv").dropna(subset=["gain"])
    for offset, (study, color) in enumerate({"tags": BLUE, "names": ORANGE}.items()):
        of_study = rows[rows.study == study].reset_index(drop=True)
        heights = [0.12 - 0.24 * offset - index for index in of_study.index]
        errors = [of_study.gain - of_study.low, of_study.high - of_study.gain]
        label = {"tags": "parts of speech", "names": "named entities"}[study]
        axes.errorbar(of_study.gain, heights, xerr=errors, fmt="o", ms=4, lw=1.2, color=color, label=label)
        axes.set_yticks([-index for index in of_study.index], list(of_study.arm))
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_xlabel("points over source-only, 95 % intervals")
    axes.legend(frameon=False, fontsize=7)


def seed_parts(axes: Axes) -> None:
    """Mean target score of each head with each order of examples, in two tasks."""
    rows = pd.read_csv(RESULTS / "seed_parts/rows.csv")
    rows = rows[rows.language != "qaa"]
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(6.4, 2.9)
    titles = {"tags": "parts of speech (accuracy)", "names": "named entities (F1)"}
    for panel, (study, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        of_study = rows[rows.study == study]
        grid = of_study.pivot_table(index="head", columns="order", values="score")
        image = panel.imshow(grid.to_numpy(), cmap="viridis")
        panel.set_xlabel("seed of the order")
        panel.set_ylabel("seed of the head")
        panel.set_title(title, fontsize=9)
        figure.colorbar(image, ax=panel, shrink=0.8)


def head_first(axes: Axes) -> None:
    """Mean target score of each seed, with a random head and with one that was trained first."""
    rows = pd.read_csv(RESULTS / "seed_parts/first-rows.csv")
    rows = rows[rows.language != "qaa"]
    scores = rows.groupby(["study", "arm", "seed"]).score.mean()
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(6.4, 2.0)
    titles = {"tags": "parts of speech (accuracy)", "names": "named entities (F1)"}
    arms = ["source-only", "six epochs", "probe", "head first"]
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (study, title) in zip(panels, titles.items(), strict=True):
        for height, arm in enumerate(reversed(arms)):
            of_arm = scores.loc[study, arm]
            color = ORANGE if arm == "head first" else BLUE
            panel.plot(of_arm, [height] * len(of_arm), "o", ms=5, alpha=0.6, mec="none", color=color)
        panel.set_yticks(range(len(arms)), list(reversed(arms)))
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("mean of four targets, a dot per seed")


def shared_direction(axes: Axes) -> None:
    """Difference of the direction from each control, in two tasks."""
    table = pd.read_csv(RESULTS / "shared_direction/differences.csv")
    arms = ["source", "longer", "soup of source seeds", "soup of longer sources", "random", "joint"]
    titles = {
        "upos": ("parts of speech", ORANGE, 0.12),
        "text-classification": ("class of the subject", BLUE, -0.12),
    }
    for task, (title, color, offset) in titles.items():
        rows = table[table.task == task].set_index("what").loc[arms]
        heights = [-index + offset for index in range(len(arms))]
        errors = [rows.points - rows.low, rows.high - rows.points]
        axes.errorbar(rows.points, heights, xerr=errors, fmt="o", ms=5, lw=1.4, color=color, label=title)
    axes.set_yticks([-index for index in range(len(arms))], arms)
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_xlabel("the direction minus this arm, points of accuracy")
    axes.legend(frameon=False, fontsize=7, loc="lower right")


def advice(axes: Axes) -> None:
    """Gain of each option over source-only models, a dot per language, with the interval of the next one."""
    gains = [
        gain._replace(option=gain.option.partition(" (")[0])
        for gain in read_gains()
        if gain.encoder != "shipped" and gain.option != "source by rule"
    ]
    options = list(dict.fromkeys(gain.option for gain in sorted(gains, key=lambda gain: -gain.gain)))
    colors = {"upos": ("tags", ORANGE, 0.22), "ner": ("names", BLUE, 0.0), "text-classification": ("topics", GREY, -0.22)}  # fmt: skip
    for task, (title, color, offset) in colors.items():
        for height, option in enumerate(reversed(options)):
            values = [gain.gain for gain in gains if gain.task == task and gain.option == option]
            axes.plot(
                values, [height + offset] * len(values), "o", ms=3.5, alpha=0.7, mec="none", color=color
            )
            low, high = predict_next_gain(values)
            axes.plot([low, high], [height + offset] * 2, color=color, lw=1.2)
        axes.plot([], [], "o-", ms=3.5, color=color, label=title)
    axes.axvline(0, color="#bbb", lw=0.8)
    axes.set_yticks(range(len(options)), options[::-1])
    axes.set_xlabel("points over source-only; lines: the next language (80 %)")
    axes.legend(frameon=False, fontsize=7)


def machine_translations(axes: Axes) -> None:
    """Accuracy in eleven languages by the consistency on translations, of people and of two systems."""
    rows = pd.read_csv(RESULTS / "machine_translations/rows.csv")
    is_human = rows.translation == "human, translated half"
    is_machine = rows.translation.str.endswith("into English")
    for name, color, marker, chosen_rows in (
        ("machine, into English", BLUE, "o", rows[is_machine]),
        ("human", ORANGE, "s", rows[is_human]),
    ):
        axes.plot(
            *(100 * chosen_rows[column] for column in ("consistency", "accuracy")),
            marker, ms=4, alpha=0.6, mec="none", color=color, label=name,
        )  # fmt: skip
    axes.set_xlabel("pairs with one label, percent")
    axes.set_ylabel("accuracy, percent")
    axes.legend(frameon=False, fontsize=7)


def seed_axes(axes: Axes) -> None:
    """Mean change of the targets along each axis of twenty seeds, and along random directions as long."""
    rows = pd.read_csv(RESULTS / "seed_axes/walk.csv")
    rows = rows[rows.language != "qaa"].assign(change=rows.change.abs())
    changes = rows.groupby(["task", "set", "kind", "axis"]).change.mean()
    titles = {"tags": "parts of speech", "names": "named entities"}
    places = [(task, kind) for task in titles for kind in ("orders", "heads")]
    for height, (task, kind) in enumerate(reversed(places)):
        for name, color, offset in (("axis", ORANGE, 0.14), ("random", BLUE, -0.14)):
            values = changes.loc[task, kind, name]
            label = {"axis": "axes of the seeds", "random": "random, as long"}[name] if not height else None
            axes.plot(values, [height + offset] * len(values), "o", ms=4, alpha=0.6, mec="none", color=color, label=label)  # fmt: skip
    axes.set_yticks(range(len(places)), [f"{titles[task]}, {kind}" for task, kind in reversed(places)])
    axes.set_xscale("log")
    axes.set_xlabel("mean change of four targets, points; a dot per direction")
    axes.legend(frameon=False, fontsize=7)


def module_swap(axes: Axes) -> None:
    """Change of the target's score by part: gains of the source-only model, losses of the bilingual one."""
    rows = pd.read_csv(RESULTS / "module_swap/rows.csv")
    rows = rows[(rows.end == "bilingual") & (rows.change == "swap") & (rows.language == rows.target)]
    rows = rows.assign(points=100 * (rows.score - rows.before))
    means = rows.groupby(["task", "changed", "part"])["points"].mean()
    layers = [f"layer {index}" for index in (1, 2, 3, 4)]
    parts = ["all", "feed-forward", "attention", "embeddings", *layers, "norms", "head"]
    for task, title, offset, opacity in (("upos", "tags", 0.2, 1.0), ("ner", "names", -0.2, 0.55)):
        heights = [offset - index for index in range(len(parts))]
        for changed, color, title_of_bar in (
            ("start", BLUE, "source-only, with the bilingual part"),
            ("end", ORANGE, "bilingual, with the source-only part"),
        ):
            values = means[task, changed].reindex(parts)
            axes.barh(heights, values, 0.4, color=color, alpha=opacity, label=f"{title_of_bar} ({title})")
    axes.set_yticks([-index for index in range(len(parts))], parts)
    axes.axvline(0, color="#bbb", lw=0.8)
    axes.set_xlabel("points in the target, accuracy and span F1 (20 pairs of models a task)")
    axes.legend(frameon=False, fontsize=6.5, loc="lower right")


def claims(axes: Axes) -> None:
    """Claims of the first paper: the check that decides, with its interval and the range that the claim allows."""
    rows = pd.read_csv(RESULTS / "claims/verdicts.csv")
    rows = rows[rows.claim.isin(CLAIMS) & (rows.verdict == rows.claim_verdict)].drop_duplicates("claim")
    labels = []
    for height, row in enumerate(reversed(list(rows.sort_values("claim").itertuples()))):
        ends = pd.Series([row.low, row.high, row.above, row.below, row.mean]).dropna()
        start = ends.min()
        width = ends.max() - start or 1.0
        low, mean, high = ((end - start) / width for end in (row.low, row.mean, row.high))
        allowed_low = -0.08 if pd.isna(row.above) else (row.above - start) / width
        allowed_high = 1.08 if pd.isna(row.below) else (row.below - start) / width
        axes.barh(height, allowed_high - allowed_low, left=allowed_low, height=0.6, color=GREEN)
        axes.plot([low, high], [height, height], color="#222222", lw=1.2)
        axes.plot(mean, height, "o", color="#222222", ms=4)
        labels.append(f"{row.claim} {CLAIMS[row.claim]}: {row.claim_verdict}")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xticks([])
    axes.set_xlim(-0.1, 1.1)


def verdicts(axes: Axes) -> None:
    """The number of claims of each paper by verdict."""
    rows = page_table("claims/README.md", "| verdict | claims |").set_index("verdict")["claims"]
    papers = {"4": "interference", "3": "adjustment", "2": "X-Mixup", "1": "under-specified"}
    left = pd.Series(0, index=list(papers.values()))
    for verdict, color in VERDICTS.items():
        counts = pd.Series(rows[verdict].split(", ")).str[0].map(papers).value_counts()
        counts = counts.reindex(left.index, fill_value=0)
        axes.barh(left.index, counts, left=left, label=verdict, color=color, ec=GREY, lw=0.6)
        left = left + counts
    axes.set_xlabel("claims")
    axes.legend(frameon=False, fontsize=7, ncols=3, loc="lower center", bbox_to_anchor=(0.45, 1))


def steps(axes: Axes) -> None:
    """Shares of a training step of a base encoder, by kind of training."""
    kinds = json.loads((BENCHMARKS / "steps-base.json").read_text(encoding="utf-8"))["kinds"]
    parts = ("matrices", "dropout and masks", "copies", "softmax", "GELU", "norms", "optimizer", "other")
    left = pd.Series(0.0, index=list(kinds)[::-1])
    for part, shade in zip(
        parts, [BLUE, *plt.get_cmap("Oranges")([0.7, 0.6, 0.5, 0.4, 0.3, 0.2]), "#dddddd"], strict=True
    ):
        share = pd.Series({kind: 100 * times[part] for kind, times in kinds.items()}).reindex(left.index)
        axes.barh(left.index, share, left=left, label=part, color=shade)
        left = left + share
    axes.set_xlabel("% of a step, 12 layers of width 768, float32")
    axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.4, 1))


def before_and_after(axes: Axes) -> None:
    """Ratios of an earlier version and of a peer to this version, by measure."""
    rows = json.loads((BENCHMARKS / "before-and-after.json").read_text(encoding="utf-8"))
    rows = [row for row in rows if row["measure"] != "import torch"][::-1]
    ratios = pd.Series({row["measure"]: row["before"] / row["now"] for row in rows})
    axes.barh(ratios.index, ratios, color=BLUE)
    peers = {row["measure"]: row["peer's"] / row["now"] for row in rows if row.get("peer's")}
    axes.plot(list(peers.values()), list(peers), "D", color=ORANGE, label="pipeline of transformers")
    axes.axvline(1, color="#bbb", lw=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds, before : now")
    axes.legend(frameon=False, fontsize=7)


def tasks(axes: Axes) -> None:
    """English and the other languages in five tasks: how far scores are above the constant baseline."""
    rows = pd.read_csv(RESULTS / "tasks/rows-scores.csv")
    rows = rows[rows.metric.isin(["las", "f1", "span_f1", "accuracy"])]
    rows = rows.assign(gain=100 * (rows.score - rows.baseline))
    means = rows.groupby(["task", "corpus", "split", "language"])["gain"].mean().reset_index()
    labels = list(dict.fromkeys(means.corpus))
    for row in means.itertuples():
        is_source = row.language == "en"
        axes.plot(
            row.gain,
            labels.index(row.corpus),
            "o" if is_source else "D",
            color=BLUE if is_source else ORANGE,
            ms=6 if is_source else 4,
            alpha=0.7,
            mec="none",
        )
    names = dict(zip(means.corpus, means.task, strict=True))
    axes.set_yticks(range(len(labels)), [f"{names[label]}, {label}" for label in labels])
    axes.axvline(0, color="#bbb", lw=0.8, zorder=0)
    axes.set_xlabel("points above the constant baseline (blue: English)")


def files_read(axes: Axes) -> None:
    """Files of the real corpora by folder, and how they are written back."""
    rows = pd.read_csv(RESULTS / "corpora/files.csv")
    kinds = {"bytes": BLUE, "bytes but empty lines": "#7fb2dc", "data": ORANGE, "data, new ids": "#f0b27a"}
    counts = pd.crosstab(rows.folder, rows.written_back).reindex(columns=list(kinds), fill_value=0)
    counts = counts.loc[counts.sum(axis=1).sort_values().index]
    left = pd.Series(0, index=counts.index)
    for kind, color in kinds.items():
        axes.barh(counts.index, counts[kind], left=left, label=f"equal {kind}", color=color)
        left = left + counts[kind]
    axes.tick_params(axis="y", labelsize=6.5)
    axes.set_xlabel("files or pairs")
    axes.legend(frameon=False, fontsize=7)


def gpu(axes: Axes) -> None:
    """Speed of training on an H100, of rows of 128 subwords and of short ones, by precision."""
    rows = page_table("gpu/README.md", "| | rows | precision |")
    rows = rows[rows[""].str.contains("tagging")]
    labels = [
        f"{name.removesuffix(', tagging')}, {size}" for name, size in zip(rows[""], rows["rows"], strict=True)
    ]
    heights = {label: height for height, label in enumerate(reversed(dict.fromkeys(labels)))}
    for precision, color, shift in (("bfloat16", ORANGE, 0.2), ("float32", BLUE, -0.2)):
        speeds = [(label, float(speed)) for label, kind, speed in zip(labels, rows["precision"], rows["of the plan"], strict=True) if kind == precision]  # fmt: skip
        axes.barh([heights[label] + shift for label, _ in speeds], [speed for _, speed in speeds], height=0.38, color=color, label=precision)  # fmt: skip
    axes.set_yticks(list(heights.values()), list(heights))
    axes.set_xlabel("TFLOP/s of the plan")
    axes.legend(frameon=False, fontsize=7)


def memory(axes: Axes) -> None:
    """Estimated peak memory against the measured one, a mark for each training."""
    rows = page_table("memory/README.md", "| kind | shape | rows |")
    sides = [
        rows[name].str.removesuffix(" MB").str.replace(",", "").astype(float) / 1000
        for name in ("measured", "estimate")
    ]
    for kind, color in (("fine-tune", ORANGE), ("pretrain", BLUE)):
        is_kind = rows["kind"] == kind
        axes.plot(sides[0][is_kind], sides[1][is_kind], "o", color=color, label=kind, alpha=0.7, mec="none")
    axes.plot([0.7, 7.2], [0.7, 7.2], color="#bbb", lw=0.8, zorder=0)
    axes.set_xlabel("measured peak, GB")
    axes.set_ylabel("estimate, GB")
    axes.legend(frameon=False, fontsize=7)


def dots(axes: Axes, lines: dict[str, list[tuple[pd.Series, str]]]) -> None:
    """Draw a line of dots, one per seed, for each name from top to bottom. Scores come with their colours."""
    for height, groups in enumerate(reversed(lines.values())):
        for scores, color in groups:
            axes.plot(100 * scores, [height] * len(scores), "o", color=color, alpha=0.6, mec="none")
    axes.set_yticks(range(len(lines)), list(reversed(lines)))
    axes.grid(axis="x", color="#e4e3dd", lw=0.6)
    axes.set_axisbelow(True)


def study_rows(folder: str, metric: str, ending: str = "") -> pd.DataFrame:
    """Return the scores of a study by one metric, with the facts of their models."""
    facts = pd.read_csv(RESULTS / folder / f"facts{ending}.csv", index_col="id", keep_default_na=False)
    rows = pd.read_csv(RESULTS / folder / f"rows-scores{ending}.csv", keep_default_na=False)
    return rows[rows.metric == metric].join(facts[[name for name in facts if name not in rows]], on="model")


def scores_by_language(rows: pd.DataFrame) -> dict[str, list[tuple[pd.Series, str]]]:
    """Return the scores in each language for ``dots``, highest mean first. English is the source."""
    order = rows.groupby("language").score.mean().sort_values(ascending=False).index
    names = {
        language: FURTHER_NAMES.get(language, language_name(language.partition("_")[0])) for language in order
    }
    return {
        names[language]: [(rows[rows.language == language].score, BLUE if language == "en" else ORANGE)]
        for language in order
    }


FURTHER_NAMES = {
    "arb_Arab": "Arabic",
    "ayr_Latn": "Central Aymara",
    "gn": "Guarani",
    "ha_Latn": "Hausa",
    "quy_Latn": "Ayacucho Quechua",
    "swh_Latn": "Swahili",
}
"""English names of codes of SIB-200 that the package has no name for."""


FURTHER_TASKS = {
    "lemmas": "lemmas",
    "mentions": "kinds of names",
    "features": "features of words",
    "follows": "follows or not",
    "overlap": "similarity (ρ)",
}
"""Corpora in the figure of further tasks."""


def further_tasks(axes: Axes) -> None:
    """Five tasks from labels of one built-in language, a dot for each of three seeds."""
    rows = pd.read_csv(RESULTS / "further_tasks/rows.csv")
    rows = rows[rows.method == "source-only"]
    lines = {}
    for corpus, label in FURTHER_TASKS.items():
        scores = rows[rows.corpus == corpus]
        is_source = scores.language == scores.source
        lines[label] = [(scores[is_source].score, BLUE), (scores[~is_source].score, ORANGE)]
    dots(axes, lines)
    axes.set_xlabel("score × 100, three seeds: the source in blue, two targets in orange")


def study_topics(axes: Axes) -> None:
    """Topics in 27 languages from English labels, a dot for each of three seeds."""
    axes.figure.set_figheight(5.2)
    dots(axes, scores_by_language(study_rows("real_weights/topics", "accuracy")))
    axes.axvline(25, color=GREY, lw=0.8, ls=":")
    axes.set_xlabel("accuracy in %, three seeds; dotted: majority")


def study_names(axes: Axes) -> None:
    """Words of names in 17 languages from 600 English sentences, a dot for each of three seeds."""
    axes.figure.set_figheight(3.6)
    dots(axes, scores_by_language(study_rows("real_weights/tasks", "word_f1")))
    axes.set_xlabel("F1 of words in names, in %, three seeds")


def study_swahili(axes: Axes) -> None:
    """Names in English and Swahili, without and with adapters of the languages."""
    axes.figure.set_figheight(1.7)
    rows = study_rows("real_weights/mad_x", "span_f1")
    systems = {
        "125307a2ee83": "task adapter only",
        "52018ad82a8f": "and language adapters",
        "f995a1397ad8": "and invertible adapters",
    }
    dots(axes, {name: sides(rows[rows["encoder.run"] == run], "sw") for run, name in systems.items()})
    axes.set_xlabel("span F1 in %, three seeds: English in blue, Swahili in orange")


def study_french(axes: Axes) -> None:
    """POS tagging in English and French, with translated training data and without."""
    axes.figure.set_figheight(2)
    rows = study_rows("real_weights/translated", "accuracy", "-opus")
    rows = rows[rows.inputs == ""].assign(system=rows.method + rows["method.labels"])
    systems = {
        "source-only": "source-only",
        "translate-train": "translate-train, projected",
        "translate-trainteacher": "translate-train, teacher",
        "x-mixup": "X-Mixup",
    }
    dots(axes, {name: sides(rows[rows.system == key], "fr") for key, name in systems.items()})
    axes.set_xlabel("accuracy in %, three seeds: English in blue, French in orange")


def study_arabic(axes: Axes) -> None:
    """POS tagging within English and within Arabic, with encoders of one language and of both."""
    axes.figure.set_figheight(2)
    rows = pd.read_csv(RESULTS / "interference/real/rows-scores.csv", keep_default_na=False)
    rows = rows[(rows.metric == "accuracy") & ((rows.language == "en") | (rows.method == "target-only"))]
    names = {"mono": "alone", "joint": "joint", "adapter": "adapter", "meta-adapter": "meta-adapter"}
    rows = rows.assign(encoder=rows.encoder.str.replace(r"^mono-.*", "mono", regex=True))
    dots(axes, {name: sides(rows[rows.encoder == key], "ar") for key, name in names.items()})
    axes.set_xlabel("accuracy in %, three seeds: English in blue, Arabic in orange")


def sides(rows: pd.DataFrame, target: str) -> list[tuple[pd.Series, str]]:
    """Return the scores in English and in a target, with their colours."""
    return [
        (rows[rows.language == language].score, color) for language, color in (("en", BLUE), (target, ORANGE))
    ]


def page_table(page: str, head: str) -> pd.DataFrame:
    """Return a table of a results page, whose head starts with a text."""
    text = (RESULTS / page).read_text(encoding="utf-8")
    block = re.search(re.escape(head) + r"[^\n]*\n(?:\|[^\n]*\n)+", text)
    if block is None:
        raise ValueError(f"{page}: no table with the head {head!r}")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block[0].splitlines()]
    return pd.DataFrame(lines[2:], columns=lines[0])


def intervals(axes: Axes, texts: list[tuple[str, pd.DataFrame]], column: str) -> None:
    """Draw a row for each label: the estimate and its 95 % interval."""
    for height, (_, row) in enumerate(reversed(texts)):
        (middle_row,) = row[column]
        (low,) = row["low"]
        (high,) = row["high"]
        axes.plot([low, high], [height, height], color=GREY, lw=1.5)
        axes.plot(middle_row, height, "o", color=ORANGE)
    axes.axvline(0, color="#bbb", lw=0.8, zorder=0)
    axes.set_yticks(range(len(texts)), [label for label, _ in reversed(texts)])
    axes.set_ylim(-0.6, len(texts) - 0.4)


PICTURES: list[Callable[[Axes], None]] = [
    seeds, lottery, further_tasks, paths, mixing, adjusting, gradients, choosing, averaging, distance_dial, shared_direction, baselines, seed_parts, head_first, seed_axes, advice, machine_translations, module_swap, claims, verdicts, steps, before_and_after, tasks, files_read, gpu, memory,
    study_topics, study_names, study_swahili, study_french, study_arabic,
]  # fmt: skip


def main(names: list[str]) -> None:
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "isogloss", "axes.spines.top": False,
                         "axes.spines.right": False})  # fmt: skip
    for draw in (picture for picture in PICTURES if not names or picture.__name__ in names):
        figure, axes = plt.subplots(figsize=(5.6, 2.7), layout="constrained")
        draw(axes)
        path = HERE / f"{draw.__name__}.svg"
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        follow_mode(path)


def follow_mode(path: Path) -> None:
    """Let an SVG follow the reader's light or dark mode."""
    head, start, body = path.read_text(encoding="utf-8").partition("<defs>")
    path.write_text(head + DARK + start + body, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
