"""Tables about models: scores per language, spread over seeds, transfer gaps, deltas, retrieval."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.kept_scores import Label, Place
from isogloss.oldreports.marks import Marks
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Delta, Gap, Retrieval, Score, SeedSpread
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import count, joined, language, percent, plus_minus, slug


@dataclass(frozen=True, slots=True)
class Entry:
    """One method on one language: the spread over seeds."""

    method: str
    language: str
    over: Spread
    marks: str = ""
    """Signs of differences that are more than chance."""


def score_tables(scores: Sequence[Score], marks: Marks) -> list[Table]:
    """Return a table per corpus, task, encoder, source, split and metric: methods by languages.

    A method without a source (target-only) stands in the table of every source it can be compared with.
    """
    groups = grouped(scores, lambda s: (s.corpus, s.task, s.encoder, s.source, s.split, s.metric))
    for key in [key for key in groups if not key[3]]:
        beside = [other for other in groups if other[3] and (*other[:3], "", *other[4:]) == key]
        for other in beside:
            groups[other] = [*groups[other], *groups[key]]
        if beside:
            del groups[key]
    tables = [_score_table(key, group, marks) for key, group in groups.items()]
    return [*tables, _every_score(scores)] if tables else []


def _score_table(key: tuple[str, ...], scores: Sequence[Score], marks: Marks) -> Table:
    corpus, task, encoder, source, split, metric = key
    entries = _marked(key, score_entries(scores), marks)
    of_source = source.split("+")
    languages = sorted({entry.language for entry in entries}, key=lambda code: (code not in of_source, code))
    best = {code: max(round(e.over.mean, 3) for e in entries if e.language == code) for code in languages}
    rows = [
        (Cell(method), *(_score_cell(entries, method, code, best[code]) for code in languages))
        for method in dict.fromkeys(entry.method for entry in entries)
    ]
    baselines = _baselines(scores, languages)
    return Table(
        name=slug("scores", corpus, task, encoder, source, split, metric),
        title=f"{corpus} {task}, {encoder}: {metric} on {split}",
        caption=_score_caption(key, entries, marks),
        header=(Cell("method"), *(_language_head(code, source) for code in languages)),
        align="l" + "r" * len(languages),
        rows=(*rows, baselines) if baselines else tuple(rows),
        data=[_entry_row(key, entry) for entry in entries],
    )


def _score_caption(key: tuple[str, ...], entries: Sequence[Entry], marks: Marks) -> str:
    seeds = {entry.over.n for entry in entries}
    n = f"{min(seeds)} to {count(max(seeds), 'seed')}" if len(seeds) > 1 else count(max(seeds), "seed")
    about = marks.caption({_place(key, entry) for entry in entries}, {_label(key, one) for one in entries})
    return (
        f"{key[5]} in percent, mean ± standard deviation over {n}. ★ marks the source language. A method "
        f"that trains on a target shows, in each target's column, the model trained for it, and in the "
        f"source's column the mean of its models. Bold: best of a column. Majority: the score of "
        f"the most frequent label. {about}"
    ).strip()


def _marked(key: tuple[str, ...], entries: Sequence[Entry], marks: Marks) -> list[Entry]:
    signs = marks.signs()
    return [replace(one, marks=signs.get((_place(key, one), _label(key, one)), "")) for one in entries]


def _place(key: tuple[str, ...], entry: Entry) -> Place:
    corpus, task, _, source, split, metric = key
    return Place(corpus, task, source, split, metric, entry.language)


def _label(key: tuple[str, ...], entry: Entry) -> Label:
    return Label(key[2], entry.method)


def score_entries(scores: Sequence[Score]) -> list[Entry]:
    """Return the spread over seeds of each method on each language it speaks about.

    A model trained for one target is not counted on other targets. On the source, the models a method made
    for several targets are first averaged, so that the spread is one over seeds.
    """
    about = [score for score in scores if not score.target or score.on_own_target or score.on_source]
    entries = []
    for (method, code), group in grouped(about, lambda s: (s.method, s.language)).items():
        by_seed = grouped(group, lambda s: s.seed).values()
        over = spread([fmean(s.score for s in members) for members in by_seed])
        entries.append(Entry(method, code, over))
    return entries


def _score_cell(entries: Sequence[Entry], method: str, code: str, best: float) -> Cell:
    entry = next((e for e in entries if (e.method, e.language) == (method, code)), None)
    if entry is None:
        return Cell("–")
    several = len({e.method for e in entries if e.language == code}) > 1
    mark = "best" if several and round(entry.over.mean, 3) == best else ""
    return Cell(f"{plus_minus(entry.over.mean, entry.over.std)} {entry.marks}".rstrip(), mark)


def _baselines(scores: Sequence[Score], languages: Sequence[str]) -> tuple[Cell, ...]:
    known = {s.language: s.baseline for s in scores if s.baseline is not None}
    if not known:
        return ()
    texts = [percent(known[code]) if code in known else "–" for code in languages]
    return (Cell("majority", "baseline"), *(Cell(text, "baseline") for text in texts))


def _language_head(code: str, source: str) -> Cell:
    return Cell(f"{language(code)} ★", "source") if code in source.split("+") else Cell(language(code))


def _entry_row(key: tuple[str, ...], entry: Entry) -> Row:
    names = ("corpus", "task", "encoder", "source", "split", "metric")
    return {
        **dict(zip(names, key, strict=True)),
        "method": entry.method,
        "language": entry.language,
        "seeds": entry.over.n,
        "mean": entry.over.mean,
        "std": entry.over.std,
        "marks": entry.marks,
    }


_SCORE_NAMES = (
    "corpus",
    "task",
    "encoder",
    "method",
    "source",
    "target",
    "seed",
    "language",
    "split",
    "metric",
)


def _every_score(scores: Sequence[Score]) -> Table:
    shown = tuple(
        cells(*_texts(score, _SCORE_NAMES), percent(score.score), str(score.examples or "–"))
        for score in scores
    )
    return Table(
        name="every-score",
        title=f"Every single score ({len(scores)})",
        caption="One line per model, language and split.",
        header=cells(*_SCORE_NAMES, "score", "examples"),
        align="llllllrlllrr",
        rows=shown,
        data=[asdict(score) for score in scores],
        folded=True,
    )


_SEED_NAMES = (
    "corpus",
    "task",
    "encoder",
    "method",
    "source",
    "target",
    "language",
    "role",
    "split",
    "metric",
)


def seed_table(rows: Sequence[SeedSpread]) -> list[Table]:
    """Return mean and standard deviation over seeds of every model and language."""
    shown = tuple(
        cells(*_texts(row, _SEED_NAMES), percent(row.mean), f"{100 * row.std:.2f}", str(row.seeds))
        for row in rows
        if row.seeds > 1
    )
    table = Table(
        name="seed-spread",
        title=f"Spread over seeds, model by model ({len(shown)})",
        caption="Mean score in percent and unbiased standard deviation over seeds in percentage points.",
        header=cells(*_SEED_NAMES, "mean", "std", "seeds"),
        align="l" * len(_SEED_NAMES) + "rrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=True,
    )
    return [table] if shown else []


def _texts(row: object, names: Sequence[str]) -> list[str]:
    return [str(getattr(row, name)) for name in names]


def gap_table(rows: Sequence[Gap]) -> list[Table]:
    """Return source score, mean target score and the gap between, over seeds."""
    groups = grouped(rows, lambda g: (g.corpus, g.task, g.encoder, g.method, g.source, g.split, g.metric))
    shown = tuple(
        cells(
            *key,
            _over([g.source_score for g in group]),
            _over([g.target_mean for g in group]),
            _over([g.gap for g in group]),
            str(len(group)),
        )
        for key, group in groups.items()
    )
    about = ("corpus", "task", "encoder", "method", "source", "split", "metric")
    table = Table(
        name="transfer-gap",
        title="Transfer gap",
        caption=(
            "Source score minus the mean score over the target languages, in percentage points; mean ± "
            "standard deviation over seeds. 0 is perfect transfer."
        ),
        header=cells(*about, "source score", "mean target", "gap", "seeds"),
        align="lllllllrrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
    )
    return [table] if shown else []


def delta_table(rows: Sequence[Delta]) -> list[Table]:
    """Return norms, ratio and angle of the deltas of each pair, over seeds."""
    groups = grouped(rows, lambda d: (d.corpus, d.task, d.encoder, f"{d.source} → {d.target}", d.part))
    shown = []
    for key, group in groups.items():
        numbers = [spread([getattr(d, name) for d in group]) for name in _DELTA_NUMBERS]
        texts = [_in_units(number, digits) for number, digits in zip(numbers, (2, 2, 2, 1), strict=True)]
        shown.append(cells(*key, *texts, str(len(group))))
    table = Table(
        name="deltas-by-pair",
        title="Lengths and angle, pair by pair",
        caption="Mean ± standard deviation over seeds of ‖δ_S‖, ‖δ_T‖, their ratio and the angle in degrees.",
        header=cells(
            "corpus", "task", "encoder", "pair", "part", "‖δ_S‖", "‖δ_T‖", "ratio", "angle", "seeds"
        ),
        align="lllllrrrrr",
        rows=tuple(shown),
        data=[asdict(row) for row in rows],
        folded=len(shown) > 8,
    )
    return [table] if shown else []


_DELTA_NUMBERS = ("norm_source", "norm_target", "ratio", "angle")


def retrieval_table(rows: Sequence[Retrieval]) -> list[Table]:
    """Return the retrieval accuracies of each encoder, language pair, layer and similarity, over seeds."""
    groups = grouped(rows, _retrieval_key)
    of_models = any(row.task for row in rows)
    shown = tuple(
        cells(
            *(key if of_models else (key[0], *key[3:])),
            *(_over([getattr(row, name) for row in group]) for name in _RETRIEVAL_NUMBERS),
        )
        for key, group in groups.items()
    )
    about = ("encoder", *(("task", "method") if of_models else ()), "pair", "layer", "similarity", "centred")
    table = Table(
        name="retrieval-by-layer",
        title=f"Translation retrieval of {joined(dict.fromkeys(row.encoder for row in rows))}",
        caption=(
            "Accuracy in percent: the translation of a first-language sentence found, and the way back. "
            "Centred: the mean of each language is taken off first."
        ),
        header=cells(*about, "candidates", "forward", "backward", "chance"),
        align="l" * (len(about) - 3) + "rll" + "rrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=len(shown) > 12,
    )
    return [table] if shown else []


_RETRIEVAL_NUMBERS = ("accuracy_forward", "accuracy_backward", "chance")


def _retrieval_key(row: Retrieval) -> tuple[str, ...]:
    pair, centred = f"{row.first}–{row.second}", "yes" if row.centred else "no"
    how = (str(row.layer), row.similarity, centred, str(row.candidates))
    return (row.encoder, row.task, row.method, pair, *how)


def _over(values: Sequence[float]) -> str:
    found = spread(values)
    return plus_minus(found.mean, found.std)


def _in_units(number: Spread, digits: int) -> str:
    tail = f" ± {number.std:.{digits}f}" if number.n > 1 else ""
    return f"{number.mean:.{digits}f}{tail}"
