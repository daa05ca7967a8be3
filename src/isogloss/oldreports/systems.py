"""Systems side by side: original and adjusted encoders with each method, languages as columns.

Paper: "The Impact of Cross-Lingual Adjustment …", Tables 2 to 4.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.adjusted import Encoders, pairs_in_words, size_order
from isogloss.oldreports.comparison import LEVEL, TESTS, Comparison
from isogloss.oldreports.kept_scores import Label, Place
from isogloss.oldreports.marks import PLAIN, Marks
from isogloss.oldreports.model_tables import score_entries
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Score
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import count, joined, language, plus_minus, slug

MARK = "*"
MEAN = "mean of targets"

About = tuple[str, str, str, str, str]
"""Corpus, task, source, split, metric."""


@dataclass(frozen=True, slots=True)
class Family:
    """Encoders that are compared with one another; the first is the original (or the first original)."""

    encoders: tuple[str, ...]
    all_original: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A system and its scores by language, over seeds; the mean of the targets where it has them all."""

    system: Label
    scores: dict[str, Spread]
    mean: Spread | None


@dataclass(frozen=True)
class Board:
    """What one table shows: its lines and what they are held against."""

    about: About
    lines: list[Line]
    languages: list[str]
    reference: Label
    names: dict[str, str]
    tests: dict[str, dict[Label, Comparison]]
    """By language, the tests against the reference."""


def families(labels: Iterable[str], encoders: Encoders) -> list[Family]:
    """Return what is compared: each original with those made from it, and originals among themselves."""
    there = list(dict.fromkeys(labels))
    found = []
    for base, members in grouped(there, encoders.base).items():
        if len(members) > 1:
            ordered = size_order(encoders, members)
            found.append(Family(tuple(sorted(ordered, key=lambda label: label != base))))
    originals = tuple(encoders.originals(there))
    return [*found, *([Family(originals, all_original=True)] if len(originals) > 1 else [])]


def system_tables(
    scores: Sequence[Score], encoders: Encoders, marks: Marks, *, folded: bool = False
) -> list[Table]:
    """Return a table per corpus, task, source, split and metric where several encoders were scored."""
    with_source = [score for score in scores if score.source]
    groups = grouped(with_source, lambda s: (s.corpus, s.task, s.source, s.split, s.metric))
    return [
        _table(_board(about, family, group, encoders, marks), family, encoders, folded)
        for about, group in groups.items()
        for family in families((score.encoder for score in group), encoders)
    ]


def _board(about: About, family: Family, scores: Sequence[Score], encoders: Encoders, marks: Marks) -> Board:
    of_source = about[2].split("+")
    rows = {label: [one for one in scores if one.encoder == label] for label in family.encoders}
    entries = {label: score_entries(own) for label, own in rows.items()}
    found = {one.language for several in entries.values() for one in several}
    languages = sorted(found, key=lambda code: (code not in of_source, code))
    targets = [code for code in languages if code not in of_source]
    lines = []
    for label, several in entries.items():
        for method, own in grouped(several, lambda entry: entry.method).items():
            mean = target_mean([one for one in rows[label] if one.method == method], targets)
            lines.append(Line(Label(label, method), {one.language: one.over for one in own}, mean))
    methods = [line.system.method for line in lines]
    reference = Label(family.encoders[0], PLAIN if PLAIN in methods else methods[0])
    corpus, task, source, split, metric = about
    tests: dict[str, dict[Label, Comparison]] = {code: {} for code in languages}
    for (place, system, baseline), one in marks.pairs().items():
        if baseline == reference and place == Place(corpus, task, source, split, metric, place.language):
            tests.setdefault(place.language, {})[system] = one
    return Board(about, lines, languages, reference, encoders.names(family.encoders), tests)


def target_mean(scores: Sequence[Score], targets: Sequence[str]) -> Spread | None:
    """Return the mean over targets, spread over the seeds that have them all.

    None without such a seed, and where there is one target alone.
    """
    means = []
    for own in grouped(scores, lambda score: score.seed).values():
        by_language = grouped(
            [one for one in own if not one.target or one.on_own_target], lambda one: one.language
        )
        if len(targets) > 1 and all(code in by_language for code in targets):
            means.append(fmean(fmean(one.score for one in by_language[code]) for code in targets))
    return spread(means) if means else None


def _table(board: Board, family: Family, encoders: Encoders, folded: bool) -> Table:
    corpus, task, source, split, metric = board.about
    several = len([code for code in board.languages if code not in source.split("+")]) > 1
    heads = [
        Cell(f"{language(code)} ★", "source") if code in source.split("+") else Cell(language(code))
        for code in board.languages
    ]
    best = _best(board)
    which = "encoders" if family.all_original else family.encoders[0]
    base = encoders.base(family.encoders[0])
    return Table(
        name=slug(
            "systems", corpus, task, "originals" if family.all_original else base, source, split, metric
        ),
        title=f"{corpus} {task}, {which} side by side: {metric} on {split}",
        caption=_caption(board, encoders),
        header=(*cells("encoder", "method"), *heads, *cells(*([MEAN] if several else []))),
        align="ll" + "r" * (len(heads) + several),
        rows=tuple(_cells(line, board, best, several) for line in board.lines),
        data=[row for line in board.lines for row in _rows(line, board, encoders)],
        folded=folded,
    )


def _best(board: Board) -> dict[str, float]:
    """Return the best mean of each column, as it is written."""
    found: dict[str, list[float]] = {}
    for line in board.lines:
        for code, over in line.scores.items():
            found.setdefault(code, []).append(round(over.mean, 3))
        if line.mean:
            found.setdefault(MEAN, []).append(round(line.mean.mean, 3))
    return {code: max(values) for code, values in found.items() if len(values) > 1}


def _cells(line: Line, board: Board, best: dict[str, float], with_mean: bool) -> tuple[Cell, ...]:
    shown = [
        _cell(line.scores.get(code), best.get(code), _mark(board, line.system, code))
        for code in board.languages
    ]
    means = [_cell(line.mean, best.get(MEAN), "")] if with_mean else []
    return (*cells(board.names[line.system.encoder], line.system.method), *shown, *means)


def _cell(over: Spread | None, best: float | None, mark: str) -> Cell:
    if over is None:
        return Cell("–")
    text = f"{plus_minus(over.mean, over.std)} {mark}".rstrip()
    return Cell(text, "best" if round(over.mean, 3) == best else "")


def _mark(board: Board, system: Label, code: str) -> str:
    one = board.tests.get(code, {}).get(system)
    return MARK if one and one.is_significant else ""


def _caption(board: Board, encoders: Encoders) -> str:
    seeds = [over.n for line in board.lines for over in line.scores.values()]
    n = count(max(seeds), "seed")
    if min(seeds) < max(seeds):
        n = f"{min(seeds)} to {n}"
    made = [encoders.adjusted[label] for label in board.names if label in encoders.adjusted]
    adjusted = (
        f" Adjusted to {pairs_in_words(made)}, on so many translations as the name says." if made else ""
    )
    tests = dict.fromkeys(one.test for several in board.tests.values() for one in several.values())
    how = joined(TESTS[name] for name in tests)
    reference = f"{board.names[board.reference.encoder]} / {board.reference.method}"
    mark = f" {MARK} p < {LEVEL} against {reference} ({how}; Holm over languages)." if tests else ""
    missing = "" if tests else " No marks: there is nothing to test, or no predictions were kept."
    untested = " Means over targets are not tested." if any(line.mean for line in board.lines) else ""
    return (
        f"{board.about[4]} in percent, mean ± standard deviation over {n}. ★ marks the source language."
        f"{adjusted}{mark}{missing}{untested} Bold: best of a column."
    )


def _rows(line: Line, board: Board, encoders: Encoders) -> list[Row]:
    about = dict(zip(("corpus", "task", "source", "split", "metric"), board.about, strict=True))
    made = encoders.adjusted.get(line.system.encoder)
    about |= {"encoder": line.system.encoder, "name": board.names[line.system.encoder]}
    found: list[Row] = []
    for code, over in (*line.scores.items(), *([(MEAN, line.mean)] if line.mean else [])):
        test = board.tests.get(code, {}).get(line.system)
        row: dict[str, object] = {
            **about,
            "translations": made.last.translations if made else 0,
            "method": line.system.method,
            "language": code,
            "seeds": over.n,
            "mean": over.mean,
            "std": over.std,
            **(_numbers(test) if test else dict.fromkeys(_NUMBERS)),
        }
        found.append(row)  # type: ignore[arg-type]
    return found


_NUMBERS = ("difference", "low", "high", "test", "p_value", "p_holm")


def _numbers(test: Comparison) -> dict[str, object]:
    return {name: getattr(test, name) for name in _NUMBERS}
