"""Negative interference: encoders of one language, of several, and with modules of each language's own.

"On Negative Interference in Multilingual Models", Tables 2 and 3: within languages, zero-shot, perplexity.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from isogloss.core.records import Row
from isogloss.metrics.significance import holm, paired_t_test
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.comparison import LEVEL, TESTS, Comparison
from isogloss.oldreports.gather import run_rows
from isogloss.oldreports.marks import PLAIN, Marks
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.pretrained_encoders import FromText, joint_encoder
from isogloss.oldreports.rows import Parameters, Perplexity, Score
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import count, joined, plus_minus

TARGET = "target-only"
"""Within a language that is a target: the model trained on its own labels."""

MARK = "†"
MONOLINGUAL = "monolingual"


@dataclass(frozen=True, slots=True)
class Column:
    """A test set, and what the model was trained on: the same language (source ""), or another."""

    corpus: str
    task: str
    split: str
    metric: str
    source: str
    language: str
    method: str

    @property
    def within(self) -> bool:
        """Tell whether it is trained and tested in one language."""
        return not self.source

    @property
    def head(self) -> str:
        """What a table calls it."""
        return f"{self.task} {self.language}" if self.within else f"{self.task} {self.source}→{self.language}"


@dataclass(frozen=True, slots=True)
class Line:
    """What stands in one line: an encoder, or the encoders of single languages together."""

    name: str
    encoders: tuple[FromText, ...]

    def of(self, language: str) -> FromText | None:
        """Return the encoder that reads a language."""
        return next((one for one in self.encoders if language in one.languages), None)


@dataclass(frozen=True)
class Study:
    """Scores, tests and perplexities of the encoders that are compared."""

    joint: FromText
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    scores: Mapping[tuple[str, Column], Mapping[int, float]]
    """By encoder and column, each seed's."""
    tests: Mapping[tuple[str, Column], Comparison]
    """Against the joint encoder."""
    perplexity: Mapping[tuple[str, str], Mapping[int, float]]
    """By encoder and language, each seed's after the last epoch."""
    p_perplexity: Mapping[tuple[str, str], float]
    """Against the joint encoder, where both have one vocabulary; corrected for the languages."""

    def encoders(self) -> Iterator[FromText]:
        """Give every encoder."""
        for line in self.lines:
            yield from line.encoders

    def tested(self, encoders: Iterable[FromText], *, within: bool) -> list[Comparison]:
        """Return the tests of these encoders, within languages or zero-shot."""
        labels = {one.label for one in encoders}
        return [
            test
            for (label, column), test in self.tests.items()
            if label in labels and column.within == within
        ]


def study_of(scores: Sequence[Score], marks: Marks, made: Mapping[str, FromText]) -> Study | None:
    """Put together what is compared; None without a joint encoder and others of its languages."""
    joint = made.get(joint_encoder(made))
    if joint is None:
        return None
    others = [one for one in made.values() if one is not joint and {*one.languages} <= {*joint.languages}]
    if not others:
        return None
    compared = {one.label: one for one in (joint, *others)}
    found = _by_column(in_best_split([one for one in scores if one.encoder in compared]), compared)
    columns = _columns(found, joint)
    kept = {key: found[key] for key in found if key[1] in columns}
    perplexity = {
        (label, code): own for label, one in compared.items() for code, own in _perplexities(one).items()
    }
    return Study(
        joint=joint,
        lines=_lines(compared, joint),
        columns=columns,
        scores=kept,
        tests=_tests(marks, kept, joint),
        perplexity=perplexity,
        p_perplexity=_perplexity_tests(perplexity, compared, joint),
    )


def _by_column(
    scores: Sequence[Score], encoders: Mapping[str, FromText]
) -> dict[tuple[str, Column], dict[int, float]]:
    """Return the scores that are within a language or zero-shot, in languages that the encoder has read."""
    found: dict[tuple[str, Column], dict[int, list[float]]] = {}
    for one in scores:
        column = _column(one)
        if column is not None and {column.source or one.language, one.language} <= {
            *encoders[one.encoder].languages
        }:
            found.setdefault((one.encoder, column), {}).setdefault(one.seed, []).append(one.score)
    return {key: {seed: fmean(own) for seed, own in by_seed.items()} for key, by_seed in found.items()}


def _column(score: Score) -> Column | None:
    """Say where a score belongs; None for one of a model trained otherwise, or on several languages."""
    source = {PLAIN: score.source, TARGET: score.target}.get(score.method, "+")
    if not source or "+" in source or (score.method == TARGET and score.language != source):
        return None
    trained_on = "" if score.language == source else source
    return Column(
        *(score.corpus, score.task, score.split, score.metric, trained_on, score.language, score.method)
    )


def _columns(found: Mapping[tuple[str, Column], object], joint: FromText) -> tuple[Column, ...]:
    """Return the columns, within before zero-shot; of two ways to train within a language the joint one's."""
    own = [column for label, column in found if label == joint.label]
    others = [column for label, column in found if label != joint.label]
    chosen = grouped([*own, *others], lambda column: replace(column, method="")).values()
    order = {code: place for place, code in enumerate(joint.languages)}
    return tuple(
        sorted((some[0] for some in chosen), key=lambda one: (not one.within, order.get(one.language, 0)))
    )


def _tests(
    marks: Marks, scores: Mapping[tuple[str, Column], object], joint: FromText
) -> dict[tuple[str, Column], Comparison]:
    """Return the tests of each encoder's models against those of the joint encoder by the same method."""
    places: dict[tuple[str, Column], Comparison] = {}
    for (place, system, baseline), test in marks.pairs().items():
        if baseline.encoder != joint.label or system.method != baseline.method:
            continue
        # A target-only model has no source: its test stands beside those of any.
        own = place.source == place.language or system.method == TARGET
        column = Column(
            *(place.corpus, place.task, place.split, place.measure),
            *("" if own else place.source, place.language, system.method),
        )
        if (system.encoder, column) in scores:
            places.setdefault((system.encoder, column), test)
    return places


def _lines(encoders: Mapping[str, FromText], joint: FromText) -> tuple[Line, ...]:
    """Return one line for all monolingual encoders of whole text, the joint one's, and one for each other."""
    alone = [one for one in encoders.values() if one.is_monolingual and not one.cut]
    together = len({one.languages for one in alone}) == len(alone) > 1
    first = (
        (Line(MONOLINGUAL, tuple(alone)),) if together else tuple(Line(one.label, (one,)) for one in alone)
    )
    rest = [one for one in encoders.values() if one not in (joint, *alone)]
    return (*first, Line(joint.label, (joint,)), *(Line(one.label, (one,)) for one in rest))


def _perplexities(encoder: FromText) -> dict[str, dict[int, float]]:
    """Return the perplexity of each language after the last epoch, seed by seed."""
    found: dict[str, dict[int, float]] = {}
    for seed, run in encoder.runs:
        for code, rows in grouped(run_rows(run, Perplexity)[0], lambda row: row.language).items():
            found.setdefault(code, {})[seed] = max(rows, key=lambda row: row.epoch).score
    return found


def _perplexity_tests(
    perplexity: Mapping[tuple[str, str], Mapping[int, float]],
    encoders: Mapping[str, FromText],
    joint: FromText,
) -> dict[tuple[str, str], float]:
    """Return corrected p-values of log perplexities, paired by seed."""
    found: dict[tuple[str, str], float] = {}
    for label, one in encoders.items():
        codes, p_values = [], []
        for code in one.languages:
            ours, theirs = perplexity.get((label, code), {}), perplexity.get((joint.label, code), {})
            seeds = sorted(ours.keys() & theirs.keys())
            if one is not joint and one.vocabulary == joint.vocabulary and len(seeds) > 1:
                logs = [[math.log(some[seed]) for seed in seeds] for some in (ours, theirs)]
                codes.append(code)
                p_values.append(paired_t_test(*logs).p_value)
        found |= {(label, code): p for code, p in zip(codes, holm(p_values), strict=True)}
    return found


def interference_table(study: Study | None) -> list[Table]:
    """Return the table of the paper: a line for each encoder; none where nothing is compared."""
    if study is None:
        return []
    languages = [code for code in study.joint.languages if any(code == key[1] for key in study.perplexity)]
    best = _best(study)
    heads = [
        *(column.head for column in study.columns),
        *(f"perplexity {code}" for code in languages),
        *("shared parameters", "of each language"),
    ]
    table = Table(
        name="interference",
        title="One encoder for each language, one for all, and what each language has for itself",
        caption=_caption(study),
        header=cells("encoder", *heads),
        align="l" + "r" * len(heads),
        rows=tuple(
            (
                Cell(line.name, "source" if study.joint in line.encoders else ""),
                *(_score_cell(study, line, column, best) for column in study.columns),
                *(Cell(_perplexity_text(study, line, code)) for code in languages),
                *cells(*_parameters(line)),
            )
            for line in study.lines
        ),
        data=[*_score_rows(study), *_perplexity_rows(study), *_parameter_rows(study)],
    )
    return [table]


def over_seeds(study: Study, line: Line, column: Column) -> tuple[FromText, Spread] | None:
    """Return who stands in a cell, and its scores over seeds."""
    encoder = line.of(column.language)
    own = study.scores.get((encoder.label, column)) if encoder else None
    return (encoder, spread(list(own.values()))) if encoder and own else None


def _best(study: Study) -> dict[Column, float]:
    found: dict[Column, float] = {}
    for column in study.columns:
        means = [there[1].mean for line in study.lines if (there := over_seeds(study, line, column))]
        found[column] = round(max(means), 3) if len(means) > 1 else math.inf
    return found


def _score_cell(study: Study, line: Line, column: Column, best: Mapping[Column, float]) -> Cell:
    there = over_seeds(study, line, column)
    if there is None:
        return Cell("–")
    encoder, over = there
    test = study.tests.get((encoder.label, column))
    mark = MARK if test and test.is_significant else ""
    text = f"{plus_minus(over.mean, over.std)} {mark}".rstrip()
    return Cell(text, "best" if round(over.mean, 3) == best[column] else "")


def _perplexity_text(study: Study, line: Line, code: str) -> str:
    encoder = line.of(code)
    own = study.perplexity.get((encoder.label, code)) if encoder else None
    if not own or encoder is None:
        return "–"
    over = spread(list(own.values()))
    tail = f" ± {over.std:.2f}" if over.n > 1 else ""
    mark = f" {MARK}" if study.p_perplexity.get((encoder.label, code), 1.0) < LEVEL else ""
    return f"{over.mean:,.2f}{tail}{mark}"


def counts(encoder: FromText) -> tuple[int, dict[str, int]]:
    """Return how many parameters all languages of an encoder share, and how many each has for itself."""
    rows = run_rows(encoder.runs[0][1], Parameters)[0]
    return sum(row.parameters for row in rows if not row.language), {
        row.language: row.parameters for row in rows if row.language
    }


def _parameters(line: Line) -> tuple[str, str]:
    """Write them; of several encoders of one language the numbers are those of each."""
    both = [counts(one) for one in line.encoders]
    shared = dict.fromkeys(f"{n:,}" for n, _ in both if n)
    own = dict.fromkeys(f"{n:,}" for _, each in both for n in each.values())
    return " / ".join(shared) or "–", " / ".join(own) or "–"


def _caption(study: Study) -> str:
    seeds = {len(own) for own in (*study.scores.values(), *study.perplexity.values())} or {0}
    n = count(max(seeds), "seed") if len(seeds) == 1 else f"{min(seeds)} to {count(max(seeds), 'seed')}"
    measures = dict.fromkeys(f"{one.corpus} {one.task} by {one.metric}" for one in study.columns)
    splits = joined(dict.fromkeys(one.split for one in study.columns))
    scored = f" Scores on {splits} in percent ({joined(measures)})." if measures else ""
    tests = joined(dict.fromkeys(TESTS[one.test] for one in study.tests.values()))
    parts = [
        *([f"of scores: {tests}, Holm over languages"] if tests else []),
        *(["of perplexities: paired t-test on logarithms over seeds"] if study.p_perplexity else []),
    ]
    alone = [one.label for line in study.lines if line.name == MONOLINGUAL for one in line.encoders]
    mono = f" Monolingual: {joined(alone)}." if len(alone) > 1 else ""
    return (
        f"Mean ± standard deviation over {n}.{scored} A column of one language is trained and tested in it; "
        f"an arrow is zero-shot. Perplexity is of held-out masked subwords, per subword: only encoders with "
        f"one vocabulary, those of the same languages, can be compared. Parameters with the masked-LM "
        f"head.{mono} "
        + (
            f"{MARK} p < {LEVEL} against {study.joint.label} ({'; '.join(parts)}). "
            if parts
            else "No marks. "
        )
        + "Bold: best of a column."
    )


def _score_rows(study: Study) -> Iterator[Row]:
    for (label, column), own in study.scores.items():
        over, test = spread(list(own.values())), study.tests.get((label, column))
        yield {
            **{"encoder": label, "what": "within" if column.within else "zero-shot"},
            **{"corpus": column.corpus, "task": column.task, "split": column.split},
            **{"measure": column.metric, "source": column.source or column.language},
            **{"language": column.language, "method": column.method},
            **{"seeds": over.n, "mean": over.mean, "std": over.std},
            **{"difference": test.difference if test else None, "p": test.p_holm if test else None},
        }


def _perplexity_rows(study: Study) -> Iterator[Row]:
    for (label, code), own in study.perplexity.items():
        over, p = spread(list(own.values())), study.p_perplexity.get((label, code))
        yield {
            **{"encoder": label, "what": "perplexity", "measure": "perplexity", "language": code},
            **{"seeds": over.n, "mean": over.mean, "std": over.std, "p": p},
        }


def _parameter_rows(study: Study) -> Iterator[Row]:
    for encoder in study.encoders():
        shared, own = counts(encoder)
        for code, n in {"": shared, **own}.items():
            yield {"encoder": encoder.label, "what": "parameters", "language": code, "mean": n}
