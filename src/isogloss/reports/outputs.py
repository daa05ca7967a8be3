"""Outputs made elsewhere, compared: JSON lines, an example each, with an answer and what is right.

What `isogloss predict` writes has ``labels`` (of words), a ``label`` (a list of several, a number, or the
index of one of its ``options``) or an ``answer``; the right one is ``gold`` in the same object, or in a file
of its own. Samples of lm-evaluation-harness (``samples_*.jsonl``) have a ``doc_id`` and the value of each of
their metrics, which are means over examples; one with a filter is called as the harness calls it,
"exact_match,strict-match".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from sys import float_info
from typing import Any, Literal, TypeGuard

import numpy as np

from isogloss.core.contributions import ByMeasure, Contributions, total
from isogloss.core.errors import ConfigError, DataError, check_named, unknown_name
from isogloss.core.languages import canonical_language
from isogloss.data.files import File, numbered_objects, short
from isogloss.data.projection.tag_projection import are_bio
from isogloss.metrics.correlation import correlation_contributions
from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.label_sets import label_set_contributions
from isogloss.metrics.labels import (
    chunk_contributions,
    label_contributions,
    span_contributions,
    word_contributions,
)
from isogloss.metrics.question_answering import (
    GoldAnswers,
    answer_f1_contributions,
    exact_match_contributions,
    has_own_rules,
)
from isogloss.metrics.significance import System, SystemPair
from isogloss.reports.comparison import Comparison, holm_corrected, over_examples

By = Literal["id", "order"]

ANSWERS = {
    "labels": "a list of labels",
    "label": "a text, a list of texts or a number",
    "answer": "a text",
}
"""Keys of an answer, and what they hold: of words, of a text or a pair, to a question."""

GOLD = ("gold", *ANSWERS, "answers")
"""Keys of what is right, the first that is there."""

HARNESS = "doc_id"
"""The key by which a sample of lm-evaluation-harness is known."""

OPTIONS = "options"
"""The key of an example whose label is the index of one of these."""

NO_METRICS = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
"""Keys of a sample that are none of its metrics; earlier versions do not list these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An example of a file, and what was said of it."""

    line: int
    id: str
    """Empty where the file gives none."""
    language: str
    """Empty where the file does not say."""
    kind: str
    """The key of its answer, or ``doc_id``."""
    answer: Any = None
    gold: Any = None
    of_options: bool = False
    document: str = ""
    """A digest of the example itself; empty where there is none."""
    values: Mapping[str, float] | None = None
    """Of a sample: the value of each metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOutputs:
    """A file held against the baseline's, in one language ("" where none is said) or on the mean of all."""

    system: str
    baseline: str
    measure: str
    by: By
    language: str
    comparison: Comparison


def compare_outputs(
    files: Sequence[File], baseline: File, *, gold: File | None = None, by: str = "", measure: str = ""
) -> list[ComparedOutputs]:
    """Compare each file with the baseline's, by language, with Holm's correction over all of these tests.

    ``by`` pairs examples by their ids or by their order; by ids, where all have some, when empty. DataError,
    with file and line, for lines that are no outputs or do not fit together; ConfigError for an unknown
    measure.
    """
    if by:
        check_named("--by", "way to pair examples", ("id", "order"), by)
    read = {file.name: (file, list(_outputs(file))) for file in (baseline, *files)}
    right = list(_outputs(gold, only_gold=True)) if gold else []
    every = [*right, *(one for _, outputs in read.values() for one in outputs)]
    chosen: By = "order" if by == "order" or not (by or all(one.id for one in every)) else "id"
    if gold:
        add = _gold_in_order if chosen == "order" else _gold_by_id
        read = {name: (file, add(file, outputs, gold, right)) for name, (file, outputs) in read.items()}
    if any(one.of_options for one in every):
        read = {name: (file, [*map(_with_names, outputs)]) for name, (file, outputs) in read.items()}
    keyed = {name: _keyed(file, outputs, chosen) for name, (file, outputs) in read.items()}
    found: dict[tuple[str, str], ComparedOutputs] = {}
    for file in files:
        for one in _compared(file, baseline, keyed[file.name], keyed[baseline.name], measure, chosen):
            found[one.system, one.language] = one
    corrected = holm_corrected({key: one.comparison for key, one in found.items()})
    return [replace(one, comparison=corrected[key]) for key, one in found.items()]


Keyed = dict[tuple[str, str], Output]
"""Outputs by language and id (or number)."""


def _outputs(file: File, *, only_gold: bool = False) -> Iterator[Output]:
    samples: dict[str, Output] = {}
    for number, _, body in numbered_objects(file):
        if HARNESS in body and not only_gold:
            _add_sample(file, number, body, samples)
        elif samples:
            raise file.broken(number, "a line without doc_id", "samples alone, as before")
        else:
            yield _answer(file, number, body, only_gold=only_gold)
    yield from samples.values()


def _answer(file: File, number: int, body: Mapping[str, object], *, only_gold: bool) -> Output:
    kind = next((key for key in (GOLD if only_gold else ANSWERS) if key in body), "")
    if not kind:
        expected = " or ".join(GOLD if only_gold else (*ANSWERS, HARNESS))
        raise file.broken(number, f"the keys {', '.join(body) or 'none'}", expected)
    if not only_gold and not _is_answer(kind, body[kind]):
        raise file.broken(number, f"{kind} {str(body[kind])[:60]!r}", ANSWERS[kind])
    return Output(
        line=number,
        id="" if body.get("id") is None else str(body["id"]),
        language=canonical_language(str(body.get("language") or "")),
        kind=kind,
        answer=None if only_gold else body[kind],
        gold=body[kind] if only_gold else body.get("gold"),
        of_options=OPTIONS in body,
    )


def _with_names(one: Output) -> Output:
    """Return an output with indices of options as their names: they are no numbers to correlate."""
    answer, gold = (str(label) if _is_number(label) else label for label in (one.answer, one.gold))
    return replace(one, answer=answer, gold=gold)


def _is_answer(kind: str, value: object) -> bool:
    """Return whether a value is what a key of ``ANSWERS`` holds."""
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    alone = isinstance(value, str)
    return {"labels": texts, "label": texts or alone or _is_number(value), "answer": alone}[kind]


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def _add_sample(file: File, number: int, body: Mapping[str, object], samples: dict[str, Output]) -> None:
    """Add the metrics of a sample: one of several filters has a line for each."""
    listed = body.get("metrics")
    names = listed if isinstance(listed, list) else [key for key in body if key not in NO_METRICS]
    suffix = "" if body.get("filter", "none") == "none" else f",{body['filter']}"
    numbers = {name: body.get(name) for name in names}
    values = {
        f"{name}{suffix}": float(value)
        for name, value in numbers.items()
        if isinstance(value, bool) or _is_number(value)
    }
    if not values:
        raise file.broken(number, f"the metrics {numbers}", "one that is a number for each example")
    key = str(body[HARNESS])
    before = samples.get(key)
    if before and before.values is not None and before.values.keys() & values.keys():
        raise file.broken(number, f"doc_id {key} a second time (line {before.line})", "each once")
    document = body.get("doc")
    said = document.get("language", "") if isinstance(document, dict) else ""
    samples[key] = Output(
        line=before.line if before else number,
        id=key,
        language=canonical_language(str(body.get("language") or said or "")),
        kind=HARNESS,
        document=str(body.get("doc_hash", "")),
        values={**(before.values or {} if before else {}), **values},
    )


def _keyed(file: File, outputs: Sequence[Output], by: By) -> Keyed:
    """Return the outputs by what pairs them; DataError for an id that is not there, or there twice."""
    found: Keyed = {}
    counts: dict[str, int] = {}
    for one in outputs:
        counts[one.language] = counts.get(one.language, 0) + 1
        key = one.language, one.id if by == "id" else f"{one.language} {counts[one.language]}".strip()
        if by == "id" and not one.id:
            raise file.broken(one.line, "no id", "an id on every line", "Add it, or pair by --by order")
        if key in found:
            raise file.broken(one.line, f"id {one.id!r} a second time (line {found[key].line})", "each once")
        found[key] = one
    if not found:
        raise DataError(f"{file.name}:1: the file is empty; expected a JSON object a line.")
    return found


def _gold_in_order(file: File, outputs: list[Output], gold: File, right: list[Output]) -> list[Output]:
    if len(outputs) != len(right):
        raise DataError(
            f"{file.name}: {len(outputs)} outputs for {len(right)} gold answers ({gold.name}). Give one for "
            f"each, in their order."
        )
    return [replace(one, gold=other.gold) for one, other in zip(outputs, right, strict=True)]


def _gold_by_id(file: File, outputs: list[Output], gold: File, right: list[Output]) -> list[Output]:
    """Return outputs with what is right for their ids; a gold file that says no language is that of all."""
    answers = _keyed(gold, right, "id")
    found = []
    for one in outputs:
        other = answers.get((one.language, one.id)) or answers.get(("", one.id))
        if other is None:
            said = f"example {one.id!r}, which {gold.name} lacks"
            raise file.broken(one.line, said, "the examples of that file", "Add it there")
        found.append(replace(one, gold=other.gold))
    return found


def _compared(
    file: File, baseline: File, ours: Keyed, theirs: Keyed, measure: str, by: By
) -> Iterator[ComparedOutputs]:
    _check_same(file, baseline, ours, theirs)
    languages = list(dict.fromkeys(language for language, _ in ours))
    keys = {code: [key for key in ours if key[0] == code] for code in languages}
    sides = {
        code: [
            _measures(one, [own[key] for key in keys[code]])
            for one, own in ((file, ours), (baseline, theirs))
        ]
        for code in languages
    }
    every = [one for two in sides.values() for one in two]
    known = [name for name in every[0] if all(name in one for one in every)]
    if not known:
        raise ConfigError(
            f"{file.name}: no metric is there for every example both here and in {baseline.name}. Give "
            f"samples that log the same metrics and filters."
        )
    if measure and measure not in known:
        raise unknown_name("--measure", "measure of both files", measure, known)
    name = measure or known[0]
    for group in [*([code] for code in languages), *([languages] if len(languages) > 1 else [])]:
        pairs = {code: SystemPair(*(_system(one[name]) for one in sides[code])) for code in group}
        ids = {code: [key for _, key in keys[code]] for code in group}
        scores = [fmean(total(sides[code][side][name]) for code in group) for side in (0, 1)]
        values = (scores[0] - scores[1],)
        plain = Comparison(
            languages=tuple(group),
            score=scores[0],
            baseline_score=scores[1],
            values=values,
            estimate=crossed_estimate(values),
        )
        yield ComparedOutputs(
            system=file.name,
            baseline=baseline.name,
            measure=name,
            by=by,
            language=group[0] if len(group) == 1 else MEAN,
            comparison=over_examples(plain, pairs, ids),
        )


MEAN = "mean"
"""What stands for all languages together."""


def _check_same(file: File, baseline: File, ours: Keyed, theirs: Keyed) -> None:
    """Raise DataError where two files are not about the same examples, or call other answers right."""
    for one, other, own, others in ((file, baseline, ours, theirs), (baseline, file, theirs, ours)):
        lacking = [key for key in own if key not in others]
        if lacking:
            language, name = lacking[0]
            what = f"example {name!r}{f' of {language}' if language else ''}, which {other.name} lacks"
            counts = f"the same examples in both ({len(own)} here, {len(others)} there)"
            raise one.broken(own[lacking[0]].line, what, counts, "Predict for the same file")
    for key, mine in ours.items():
        yours = theirs[key]
        if (mine.gold is None) is not (yours.gold is None):
            raise _no_gold(*((file, mine) if mine.gold is None else (baseline, yours)))
        if mine.kind != yours.kind or mine.document != yours.document or mine.gold != yours.gold:
            said = f"{mine.kind} {mine.document or repr(mine.gold)}"
            there = f"{baseline.name}:{yours.line} has: {yours.kind} {yours.document or repr(yours.gold)}"
            raise file.broken(mine.line, short(said), short(there), "Give outputs for the same examples")


def _system(one: Contributions) -> System:
    return System(np.array([one.part], dtype=np.float64), np.array([one.whole], dtype=np.float64))


def _measures(file: File, outputs: Sequence[Output]) -> ByMeasure:
    """Return what each example adds to each measure, the main one first."""
    kinds = {one.kind for one in outputs}
    if len(kinds) > 1:
        raise ConfigError(f"{file.name}: its lines have {' and '.join(sorted(kinds))}. Give one kind a file.")
    if kinds == {HARNESS}:
        names = [
            name for name in outputs[0].values or () if all(name in (one.values or ()) for one in outputs)
        ]
        ones = [1.0] * len(outputs)
        return {name: Contributions([(one.values or {})[name] for one in outputs], ones) for name in names}
    for one in outputs:
        _check_gold(file, one)
    if kinds == {"answer"}:
        texts = [(one.gold,) if isinstance(one.gold, str) else tuple(one.gold) for one in outputs]
        said = [one.answer for one in outputs]
        gold = [GoldAnswers(texts=one) for one in texts]
        found = {"f1": answer_f1_contributions(gold, said), "em": exact_match_contributions(gold, said)}
        if not all(has_own_rules(one.language) for one in outputs):
            return found
        own = [replace(one, language=other.language) for one, other in zip(gold, outputs, strict=True)]
        f1, em = answer_f1_contributions(own, said), exact_match_contributions(own, said)
        return {**found, "mlqa_f1": f1, "mlqa_em": em}
    if kinds == {"label"}:
        return _of_labels(file, outputs)
    return _of_words(file, outputs)


def _of_labels(file: File, outputs: Sequence[Output]) -> ByMeasure:
    """Return the measures of one label each, of several, or of numbers."""
    right, said = [one.gold for one in outputs], [one.answer for one in outputs]
    kind = _kind_of(right[0])
    for one in outputs:
        if _kind_of(one.gold) is not kind:
            raise file.broken(one.line, f"gold {one.gold!r:.60}", f"what is like {right[0]!r:.60}, as before")
    if kind is list:
        seen = sorted({label for labels in (*right, *said) for label in labels})
        return label_set_contributions(right, said, seen)
    if kind is float:
        return correlation_contributions(right, said)
    return {"accuracy": label_contributions([(one,) for one in right], [(one,) for one in said])}


def _kind_of(label: object) -> type:
    return float if isinstance(label, int | float) else type(label)


def _of_words(file: File, outputs: Sequence[Output]) -> ByMeasure:
    right, said = [one.gold for one in outputs], [one.answer for one in outputs]
    if not are_bio({tag for tags in right for tag in tags}):
        return {"accuracy": label_contributions(right, said), "seqeval_f1": chunk_contributions(right, said)}
    for one in outputs:
        nameless = {"", "B-", "I-"} & {*one.gold, *one.answer}
        if nameless or (one.answer and not are_bio({*one.answer, "B-X"})):
            shown = ", ".join(map(repr, nameless)) or repr(" ".join(one.answer)[:60])
            raise file.broken(one.line, f"labels {shown}", "BIO tags with types, in gold and answer")
    return {"span_f1": span_contributions(right, said), "word_f1": word_contributions(right, said)}


def _check_gold(file: File, one: Output) -> None:
    """Raise DataError where there is nothing right, or nothing like the answer."""
    gold, answer = one.gold, one.answer
    if gold is None:
        raise _no_gold(file, one)
    if one.kind == "labels":
        fits = _is_answer("labels", gold) and len(gold) == len(answer)
    elif one.kind == "label":
        fits = _is_answer("label", gold) and _kind_of(gold) is _kind_of(answer)
    else:
        fits = isinstance(gold, str) or (_is_answer("labels", gold) and bool(gold))
    if not fits:
        what = f"{len(answer)} labels" if one.kind == "labels" else f"what fits {one.kind} {answer!r:.40}"
        raise file.broken(one.line, f"gold {str(gold)[:60]!r}", what)


def _no_gold(file: File, one: Output) -> DataError:
    """Return the error for an answer of which nothing says what is right."""
    return file.broken(one.line, "no gold", "a key gold beside the answer", "Add it, or give --gold FILE")
