"""Draw the animation of the README from a finished quickstart: the path, its scores, and tags that turn right.

    isogloss quickstart --out runs/quickstart
    python docs/images/animate.py runs/quickstart docs/images/path.svg

Seed 0 moves from source-only (α = 0) to bilingual (α = 1) and stays there for a while; the other seeds are thin lines.
Readers who prefer reduced motion see the start.
"""

import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby
from pathlib import Path

import isogloss

SOURCE = ("qaa", "Ansa")
TARGET = ("qad", "Dunar")
BLUE, ORANGE, GREEN, RED, GREY = "#0b6cb3", "#cf5a00", "#1c7a45", "#b3261e", "#6b6b6b"
ALPHAS = [round(0.05 * step, 2) for step in range(21)]
PAUSE = 9  # further frames at the end
SECONDS = 8
LEFT = 48
TOP = 78
WIDTH = 300
HEIGHT = 190
LOWEST = 60


def main(folder: str, file: str) -> None:
    study = isogloss.read(folder)
    titles = {record.title: study.out / record.id for record in study.records}
    start = titles["source-only: ud upos qaa, seed 0"]
    end = titles["bilingual: ud upos qaa+qad, seed 0"]
    sentences = [e for e in isogloss.load_corpus("ud", TARGET[0], "dev") if 5 <= len(e.words) <= 6][:40]
    tags = tags_along(start, end, [list(sentence.words) for sentence in sentences])
    picked_mistakes = most_mended(sentences, tags)
    drawing = "".join(
        [frame(), curves(study.frame("interpolation")), words(sentences, tags, picked_mistakes)]
    )
    Path(file).write_text(drawing + "</svg>\n", encoding="utf-8")


def tags_along(start: Path, end: Path, sentences: list[list[str]]) -> list[list[list[str]]]:
    """Return the tags of each sentence's words at each α."""
    first_model = isogloss.load_model(start)
    second = isogloss.load_model(end)
    ends = [dict(model.network.state_dict()) for model in (first_model, second)]
    origin = {name: weight.clone() for name, weight in ends[0].items()}
    steps = []
    for alpha in ALPHAS:
        mixed_mixtures = {
            name: weight.lerp(ends[1][name], alpha) if weight.is_floating_point() else weight
            for name, weight in origin.items()
        }
        first_model.network.load_state_dict(mixed_mixtures)
        steps.append([list(tags) for tags in first_model.predict(sentences)])
    return steps


def most_mended(sentences: Sequence, tags: list) -> list[int]:
    """Return four sentences that are wrong in a word or more at the start and right at the end."""
    wrong = {
        index: sum(tag != gold for tag, gold in zip(tags[0][index], sentence.tags, strict=True))
        for index, sentence in enumerate(sentences)
        if list(tags[-1][index]) == list(sentence.tags)
        and sum(
            width_of(word, [step[index][position] for step in tags])
            for position, word in enumerate(sentence.words)
        )
        < 375
    }
    return sorted(wrong, key=lambda index: -wrong[index])[:4]


def width_of(word: str, tags: Sequence[str]) -> float:
    return max(8.0 * len(word), max(7.4 * len(tag) for tag in tags) + 12) + 6


def place_alpha(alpha: float) -> float:
    return LEFT + WIDTH * alpha


def place_score(score: float) -> float:
    return TOP + HEIGHT * (100 - 100 * score) / (100 - LOWEST)


def frame() -> str:
    lines = "".join(
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{place_score(y / 100):.1f}" y2="{place_score(y / 100):.1f}" stroke="#ddd"/>'
        f'<text x="{LEFT - 8}" y="{place_score(y / 100) + 4:.1f}" text-anchor="end" fill="{GREY}" font-size="11">{y}</text>'
        for y in (60, 70, 80, 90, 100)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 330" role="img" '
        'font-family="system-ui, sans-serif" font-size="13"><title>A path between two taggers</title>'
        '<rect width="760" height="330" rx="8" fill="#fff"/>'
        '<text x="20" y="32" font-size="17" font-weight="600" fill="#222">Equal on the source, far apart on the '
        'target</text><text x="20" y="53" fill="#444">A tagger moves from the weights that saw '
        f"{SOURCE[1]} alone to those that saw {SOURCE[1]} and {TARGET[1]}.</text>{lines}"
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 20}" fill="{GREY}" font-size="11">α = 0, {SOURCE[1]} alone</text>'
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 20}" text-anchor="end" fill="{GREY}" font-size="11">'
        f"α = 1, {SOURCE[1]} + {TARGET[1]}</text>"
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 40}" fill="{GREY}" font-size="11">accuracy in %, five seeds</text>'
    )


def curves(rows) -> str:
    """Return the lines of both languages, and the points and numbers that move along the lines of seed 0."""
    rows = rows[
        (rows["start.method"] == "source-only") & (rows["target"] == TARGET[0]) & (rows.metric == "accuracy")
    ]
    rows = rows[rows.alpha.between(0, 1)].sort_values("alpha")
    parts = []
    for (language, name), color, label in ((SOURCE, BLUE, 430), (TARGET, ORANGE, 560)):
        for seed, curve in rows[rows.language == language].groupby("seed"):
            points = " ".join(
                f"{place_alpha(x):.1f},{place_score(y):.1f}"
                for x, y in zip(curve.alpha, curve.score, strict=True)
            )
            width, opacity = (2.5, 1) if seed == 0 else (1, 0.45)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}" opacity="{opacity}"/>'
            )
        zero = rows[(rows.language == language) & (rows.seed == 0)].set_index("alpha").score
        zero = zero.reindex(sorted({*zero.index, *ALPHAS})).interpolate("index").loc[ALPHAS]
        frames = [*zip(ALPHAS, zero, strict=True), *[(1.0, zero.iloc[-1])] * PAUSE]
        places = [
            f"transform:translate({place_alpha(x) - place_alpha(0):.1f}px,{place_score(y) - place_score(zero.iloc[0]):.1f}px)"
            for x, y in frames
        ]
        shares = [index / (len(frames) - 1) for index in range(len(frames))]
        movement = animation(f"move-{language}", dict(zip(shares, places, strict=True)), "linear")
        parts.append(
            f'{movement}<circle class="move-{language}" r="5" cx="{place_alpha(0):.1f}" cy="{place_score(zero.iloc[0]):.1f}" '
            f'fill="{color}"/>'
        )
        parts.append(f'<text x="{label + 60}" y="98" fill="{color}">{name}</text>')
        texts = [f"{100 * score:.1f}" for _, score in frames]
        parts.append(
            switch_texts(
                texts,
                lambda text, x=label, c=color: (
                    f'<text x="{x}" y="98" font-size="22" font-weight="600" fill="{c}">{text}</text>'
                ),
            )
        )
    return "".join(parts)


def words(sentences: Sequence, tags: list, picked_mistakes: list[int]) -> str:
    """Return the sentences with the tags under their words, which change along the path."""
    parts = []
    for line, index in enumerate(picked_mistakes):
        x = 380.0
        y = 130 + 46 * line
        for position, (word, gold) in enumerate(
            zip(sentences[index].words, sentences[index].tags, strict=True)
        ):
            width = width_of(word, [step[index][position] for step in tags])
            parts.append(
                f'<text x="{x + width / 2:.1f}" y="{y}" text-anchor="middle" fill="#222">{escape(word)}</text>'
            )
            steps = [step[index][position] for step in tags]
            parts.append(
                switch_texts(
                    [*steps, *[steps[-1]] * PAUSE],
                    lambda tag, place=x + width / 2, y=y, gold=gold: (
                        f'<text x="{place:.1f}" y="{y + 16}" text-anchor="middle" font-size="10" font-weight="600" '
                        f'fill="{GREEN if tag == gold else RED}">{tag}{"" if tag == gold else "✗"}</text>'
                    ),
                )
            )
            x += width
    return "".join(parts)


def switch_texts(texts: list[str], draw) -> str:
    """Return a drawing for each text, shown in the frames that have it. The first one is also shown without animation."""
    parts = []
    for text in dict.fromkeys(texts):
        if set(texts) == {text}:
            return draw(text)
        runs = [(output, len(list(group))) for output, group in groupby(texts, key=text.__eq__)]
        starts = [
            max(sum(length for _, length in runs[:index]) - 0.5, 0) / (len(texts) - 1)
            for index in range(len(runs))
        ]
        shown_at = {
            start: f"visibility:{'visible' if run else 'hidden'}"
            for start, (run, _) in zip(starts, runs, strict=True)
        }
        first_text = "visible" if text == texts[0] else "hidden"
        name = f"shown-{sha256(f'{shown_at}'.encode()).hexdigest()[:8]}"
        parts.append(
            f'{animation(name, shown_at, "step-end")}<g class="{name}" visibility="{first_text}">{draw(text)}</g>'
        )
    return "".join(parts)


def animation(name: str, frames: Mapping[float, str], timing: str) -> str:
    """Return a style that changes the elements of a class, without end, unless reduced motion is preferred."""
    steps = "".join(f"{100 * share:.4g}%{{{style}}}" for share, style in frames.items())
    return (
        f"<style>@keyframes {name}{{{steps}}}@media(prefers-reduced-motion:no-preference)"
        f"{{.{name}{{animation:{name} {SECONDS}s infinite {timing}}}}}</style>"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
