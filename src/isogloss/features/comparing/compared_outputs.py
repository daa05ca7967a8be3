"""Compare files of outputs: JSON lines, one example each, with its answer and the gold answer.

What `isogloss predict` writes has ``labels`` (of words), a ``label`` (a list of several, a number, or the
index of one of its ``options``) or an ``answer``. The gold answer is ``gold`` in the same object, or in a
separate file. Samples of other suites (``samples.py``) have the value of each metric, which is a mean over
examples.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from isogloss.core.errors import ConfigError, DataError, check_named
from isogloss.core.languages import canonical_language
from isogloss.core.rows.models import Contributions, total
from isogloss.data.files import File, numbered_objects, short
from isogloss.features.comparing.flips import count_flips
from isogloss.features.comparing.outputs import (
    ANSWERS,
    LEMMAS,
    MLQA,
    VALUES,
    ExampleOutput,
    OutputTask,
    describe_missing_gold,
    is_answer,
    is_number,
    measures_of,
    named_measure,
    task_of,
)
from isogloss.features.comparing.samples import SUITES, inspect_log, merge_samples
from isogloss.metrics.significance import System, SystemPair
from isogloss.reports.comparison import (
    Compared,
    SystemComparison,
    add_example_test,
    compare_means,
    holm_corrected,
)

BY_ID = "id"
BY_ORDER = "order"
"""The ways to pair the examples of two files."""

GOLD = ("gold", *ANSWERS, "answers")
"""Keys of a gold answer in a separate file, by priority."""

OPTIONS = "options"
"""The key of an example whose label is the index of one of these."""

TASK = "task"
"""Key of a task that cannot be seen from the labels: lemmas look like labels of words."""

RULES = "rules"
"""The key of the rules by which answers are compared."""

MEAN = "mean"
"""The language of the mean over all languages."""


Outputs = Mapping[tuple[str, str], ExampleOutput]
"""The outputs of a file by language and id (or number)."""


def compare_outputs(
    files: Sequence[File],
    baseline: File,
    *,
    gold: File | None = None,
    by: str = "",
    measure: str = "",
    margin: float | None = None,
) -> Compared:
    """Compare each file with the baseline's, by language, with Holm's correction over all of these tests.

    ``by`` pairs examples by their ids ("id") or by their "order". Default: by ids if all examples have one.
    With a ``margin`` rows have the p of the test of equivalence at it.
    Raises DataError, with file and line, for lines that are not outputs or do not match, and ConfigError for
    an unknown measure.
    """
    if by:
        check_named("--by", "way to pair examples", (BY_ID, BY_ORDER), by)
    read = {file.name: (file, list(_outputs(file))) for file in (baseline, *files)}
    gold_outputs = list(_outputs(gold, only_gold=True)) if gold else []
    all_outputs = [*gold_outputs, *(output for _, outputs in read.values() for output in outputs)]
    by = by or (BY_ID if all(output.id for output in all_outputs) else BY_ORDER)
    if gold:
        add = _gold_in_order if by == BY_ORDER else _gold_by_id
        read = {
            name: (file, add(file, outputs, gold, gold_outputs)) for name, (file, outputs) in read.items()
        }
    if any(output.of_options for output in all_outputs):
        read = {
            name: (file, [_with_option_names(output) for output in outputs])
            for name, (file, outputs) in read.items()
        }
    paired_outputs = {name: _index_by_key(file, outputs, by) for name, (file, outputs) in read.items()}
    for file in files:
        _check_same(file, baseline, paired_outputs[file.name], paired_outputs[baseline.name])
    sides = [(file, list(paired_outputs[file.name].values())) for file in (*files, baseline)]
    task = task_of(sides, measure=measure)
    comparisons: dict[tuple[str, str, str], SystemComparison] = {}
    changes: dict[tuple[str, str, str], dict[str, int | None]] = {}
    for file in files:
        ours = paired_outputs[file.name]
        theirs = paired_outputs[baseline.name]
        name, language_results = _comparisons((file, ours), (baseline, theirs), task, measure)
        for language_code, (comparison, flips) in language_results.items():
            comparisons[file.name, name, language_code] = comparison
            changes[file.name, name, language_code] = flips
    return Compared(
        [
            {
                **{"system": system, "baseline": baseline.name, "task": task.name, "measure": name},
                "paired_by": by,
                **{"language": language, "languages": list(comparison.languages)},
                **comparison.numbers(),
                **{end: getattr(comparison, end) for end in ("low_examples", "high_examples")},
                **changes[system, name, language],
                **comparison.equivalence(margin),
            }
            for (system, name, language), comparison in holm_corrected(comparisons).items()
        ]
    )


def _outputs(file: File, *, only_gold: bool = False) -> Iterator[ExampleOutput]:
    if not only_gold and (log := inspect_log(file)) is not None:
        yield from log
        return
    samples: list[ExampleOutput] = []
    for line_number, _, body in numbered_objects(file):
        key = "" if only_gold else next((key for key in SUITES if key in body), "")
        if key:
            samples.append(SUITES[key](file, line_number, body))
        elif samples:
            raise file.broken(
                line_number, f"a line without {' or '.join(SUITES)}", "samples alone, as before"
            )
        else:
            yield _answer(file, line_number, body, only_gold=only_gold)
    yield from merge_samples(file, samples)


def _answer(file: File, line_number: int, body: Mapping[str, object], *, only_gold: bool) -> ExampleOutput:
    kind = next((key for key in (GOLD if only_gold else ANSWERS) if key in body), "")
    if not kind:
        expected_keys = " or ".join(GOLD if only_gold else (*ANSWERS, *SUITES))
        raise file.broken(line_number, f"the keys {', '.join(body) or 'none'}", expected_keys)
    if not only_gold and not is_answer(kind, body[kind]):
        raise file.broken(line_number, f"{kind} {str(body[kind])[:60]!r}", ANSWERS[kind])
    return ExampleOutput(
        line=line_number,
        id="" if body.get("id") is None else str(body["id"]),
        language=canonical_language(str(body.get("language") or "")),
        kind=kind,
        answer=None if only_gold else body[kind],
        gold=body[kind] if only_gold else body.get("gold"),
        of_options=OPTIONS in body,
        task=LEMMAS if body.get(TASK) == LEMMAS else "",
        rules=MLQA if body.get(RULES) == MLQA else "",
    )


def _with_option_names(output: ExampleOutput) -> ExampleOutput:
    """Return an output with indices of options replaced by their names, so they are not used as numbers."""
    answer, gold = (str(label) if is_number(label) else label for label in (output.answer, output.gold))
    return replace(output, answer=answer, gold=gold)


def _index_by_key(file: File, outputs: Sequence[ExampleOutput], key_field: str) -> Outputs:
    """Return the outputs by their key in both files. Raises DataError for a missing or repeated id."""
    outputs_by_key: dict[tuple[str, str], ExampleOutput] = {}
    counts: dict[str, int] = {}
    for output in outputs:
        language = output.language
        counts[language] = counts.get(language, 0) + 1
        key = language, output.id if key_field == BY_ID else f"{language} {counts[language]}".strip()
        if key_field == BY_ID and not output.id:
            raise file.broken(output.line, "no id", "an id on every line", "Add it, or pair by --by order")
        if key in outputs_by_key:
            problem = f"id {output.id!r} a second time (line {outputs_by_key[key].line})"
            raise file.broken(output.line, problem, "each once")
        outputs_by_key[key] = output
    if not outputs_by_key:
        raise DataError(f"{file.name}:1: the file is empty; expected a JSON object a line.")
    return outputs_by_key


def _gold_in_order(
    file: File, outputs: list[ExampleOutput], gold: File, gold_outputs: list[ExampleOutput]
) -> list[ExampleOutput]:
    if len(outputs) != len(gold_outputs):
        raise DataError(
            f"{file.name}: {len(outputs)} outputs for {len(gold_outputs)} gold answers ({gold.name}). Give "
            f"one for each, in their order."
        )
    return [_add_gold(output, gold_output) for output, gold_output in zip(outputs, gold_outputs, strict=True)]


def _gold_by_id(
    file: File, outputs: list[ExampleOutput], gold: File, gold_outputs: list[ExampleOutput]
) -> list[ExampleOutput]:
    """Return outputs with the gold answers of their ids.

    Gold answers without a language apply to all languages.
    """
    answers = _index_by_key(gold, gold_outputs, BY_ID)
    with_gold = []
    for output in outputs:
        answer = answers.get((output.language, output.id)) or answers.get(("", output.id))
        if answer is None:
            missing = f"example {output.id!r}, which {gold.name} lacks"
            raise file.broken(output.line, missing, "the examples of that file", "Add it there")
        with_gold.append(_add_gold(output, answer))
    return with_gold


def _add_gold(output: ExampleOutput, gold_output: ExampleOutput) -> ExampleOutput:
    """Add the gold answer of a different file, with its facts, to an output."""
    return replace(
        output,
        gold=gold_output.gold,
        task=output.task or gold_output.task,
        rules=output.rules or gold_output.rules,
    )


def _comparisons(
    system: tuple[File, Outputs], baseline: tuple[File, Outputs], task: OutputTask, measure: str
) -> tuple[str, dict[str, tuple[SystemComparison, dict[str, int | None]]]]:
    """Return the measure, and the comparison by it and changed answers of each language and of the mean."""
    ours, theirs = system[1], baseline[1]
    if task.name == VALUES:
        measure = _measure_of_samples(system, baseline, measure)
    languages = list(dict.fromkeys(key_language for key_language, _ in ours))
    keys = {language: [key for key in ours if key[0] == language] for language in languages}
    sides = {
        language: [
            measures_of(file, [outputs[key] for key in keys[language]], task)
            for file, outputs in (system, baseline)
        ]
        for language in languages
    }
    all_measures = [measures for side in sides.values() for measures in side]
    shared = [name for name in all_measures[0] if all(name in measures for measures in all_measures)]
    name = named_measure("measure", "measure of both files", measure, shared, task.name)
    pairs = {
        language: SystemPair(*(_system(measures[name]) for measures in sides[language]))
        for language in languages
    }
    scores = {language: [total(measures[name]) for measures in sides[language]] for language in languages}
    groups = {language: [language] for language in languages}
    if len(languages) > 1:
        groups[MEAN] = languages
    results = {}
    for group, codes in groups.items():
        comparison = add_example_test(
            compare_means(codes, *([fmean(scores[language][side] for language in codes)] for side in (0, 1))),
            {language: pairs[language] for language in codes},
            {language: [key for _, key in keys[language]] for language in codes},
        )
        gain_count, loss_count = count_flips(
            (sides[language][0][name], sides[language][1][name]) for language in codes
        )
        answers = [(ours[key].answer, theirs[key].answer) for language in codes for key in keys[language]]
        change_count = (
            None
            if task.name == VALUES
            else sum(our_answer != their_answer for our_answer, their_answer in answers)
        )
        results[group] = comparison, {"gained": gain_count, "lost": loss_count, "changed": change_count}
    return name, results


def _measure_of_samples(system: tuple[File, Outputs], baseline: tuple[File, Outputs], measure: str) -> str:
    """Return the named metric, or the first that both files log.

    Raises DataError if some sample has no number for it, instead of silently choosing a different metric.
    """
    logged_measures = [
        list(dict.fromkeys(name for output in outputs.values() for name in output.values or {}))
        for _, outputs in (system, baseline)
    ]
    shared = [name for name in logged_measures[0] if name in logged_measures[1]]
    if not shared:
        raise ConfigError(
            f"{system[0].name}: no metric is there both here and in {baseline[0].name}. Give samples that "
            f"log the same metrics and filters."
        )
    name = named_measure("measure", "measure of both files", measure, shared, VALUES)
    for file, outputs in (system, baseline):
        for output in outputs.values():
            if not is_number((output.values or {}).get(name)):
                alternatives = [alternative for alternative in shared if alternative != name]
                instead = f", or name another measure ({', '.join(alternatives)})" if alternatives else ""
                expected_value = "a finite number, as other samples have"
                raise file.broken(
                    output.line,
                    f"sample {output.id!r} with {name} {(output.values or {}).get(name)}",
                    expected_value,
                    f"Correct the line{instead}",
                )
    return name


def _check_same(file: File, baseline: File, ours: Outputs, theirs: Outputs) -> None:
    """Raise DataError where two files have other examples, or other gold answers to them."""
    for this_file, other_file, outputs, other_outputs in (
        (file, baseline, ours, theirs),
        (baseline, file, theirs, ours),
    ):
        missing = [key for key in outputs if key not in other_outputs]
        if missing:
            language, name = missing[0]
            example = (
                f"example {name!r}{f' of {language}' if language else ''}, which {other_file.name} lacks"
            )
            expected_examples = f"the same examples in both ({len(outputs)} here, {len(other_outputs)} there)"
            raise this_file.broken(
                outputs[missing[0]].line, example, expected_examples, "Predict for the same file"
            )
    for key, our_output in ours.items():
        their_output = theirs[key]
        if (our_output.gold is None) is not (their_output.gold is None):
            raise describe_missing_gold(
                *((file, our_output) if our_output.gold is None else (baseline, their_output))
            )
        if (
            our_output.kind != their_output.kind
            or our_output.document != their_output.document
            or our_output.gold != their_output.gold
        ):
            description = f"{our_output.kind} {our_output.document or repr(our_output.gold)}"
            their_facts = f"{their_output.kind} {their_output.document or repr(their_output.gold)}"
            expected_examples = f"{baseline.name}:{their_output.line} has: {their_facts}"
            raise file.broken(
                our_output.line,
                short(description),
                short(expected_examples),
                "Give outputs for the same examples",
            )


def _system(contributions: Contributions) -> System:
    return System(*(np.array([numbers], dtype=np.float64) for numbers in contributions))
