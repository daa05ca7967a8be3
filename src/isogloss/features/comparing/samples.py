"""Samples of other suites, read as outputs: the value of each metric for each example.

- lm-evaluation-harness (``samples_*.jsonl``): a line for each ``doc_id`` and filter. A metric with a filter
  is named as in the harness, "exact_match,strict-match".
- Every Eval Ever (``*_samples.jsonl``, its instance-level schema): a line for each ``sample_id`` and result;
  the measure is its ``evaluation_result_id`` without the ``evaluation_id``, or ``score`` without any.
- Inspect (logs in ``.json``): a log with its ``samples``. Each scorer is a measure, or each key of its
  values; grades are numbers as in Inspect, and epochs are averaged.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from statistics import fmean
from typing import Any

from isogloss.core.errors import DataError
from isogloss.core.languages import canonical_language
from isogloss.data.files import File, short
from isogloss.features.comparing.outputs import SAMPLE, ExampleOutput, is_number

NO_METRICS = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
"""Keys of a harness's sample that are not metrics. Earlier versions do not list the metrics."""

GRADES: Mapping[object, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's grades: correct, partially correct, incorrect, no answer."""

RESULT = "evaluation_id"
"""The key of the results that a line of Every Eval Ever belongs to."""

Body = Mapping[str, Any]


def read_harness(file: File, line_number: int, body: Body) -> ExampleOutput:
    """Return a sample of lm-evaluation-harness. Raises DataError without a metric that is a number."""
    metrics = body.get("metrics")
    names = metrics if isinstance(metrics, list) else [key for key in body if key not in NO_METRICS]
    suffix = "" if body.get("filter", "none") == "none" else f",{body['filter']}"
    numbers = {name: body.get(name) for name in names}
    values = {f"{name}{suffix}": value for name, value in _values(numbers)}
    if not values:
        raise file.broken(line_number, f"the metrics {numbers}", "one that is a number for each example")
    return ExampleOutput(
        line=line_number,
        id=str(body[SAMPLE]),
        language=_language(body) or _language(body.get("doc")),
        kind=SAMPLE,
        document=str(body.get("doc_hash", "")),
        values=values,
    )


def read_every_eval_ever(file: File, line_number: int, body: Body) -> ExampleOutput:
    """Return a sample of Every Eval Ever. Its id names the result. Raises DataError without a score."""
    evaluation = body.get("evaluation")
    question = body.get("input")
    score = evaluation.get("score") if isinstance(evaluation, dict) else None
    if not is_number(score):
        raise file.broken(
            line_number, f"evaluation {evaluation!r:.60}", "an object with a score that is a number"
        )
    result = str(body.get("evaluation_result_id") or "").removeprefix(str(body[RESULT])).strip("/#:_-")
    return ExampleOutput(
        line=line_number,
        id=f"{body.get('evaluation_name', '')} {body.get('sample_id', line_number)}".strip(),
        language=_language(body.get("metadata")),
        kind=SAMPLE,
        document=_digest(
            [question.get(key) for key in ("raw", "reference")] if isinstance(question, dict) else ""
        ),
        values={result or "score": float(score)},
    )


SUITES: Mapping[str, Callable[[File, int, Body], ExampleOutput]] = {
    SAMPLE: read_harness,
    RESULT: read_every_eval_ever,
}
"""By a key that each of their lines has."""


def merge_samples(file: File, samples: Sequence[ExampleOutput]) -> list[ExampleOutput]:
    """Return each sample once, with the metrics of all its lines. Raises DataError for a repeated metric."""
    samples_by_id: dict[str, ExampleOutput] = {}
    for sample in samples:
        first_sample = samples_by_id.setdefault(sample.id, sample)
        values = first_sample.values or {}
        further = sample.values or {}
        if first_sample is not sample and values.keys() & further.keys():
            problem = f"sample {sample.id} a second time (line {first_sample.line})"
            raise file.broken(sample.line, problem, "each once")
        samples_by_id[sample.id] = replace(first_sample, values={**values, **further})
    return list(samples_by_id.values())


def inspect_log(file: File) -> list[ExampleOutput] | None:
    """Return the samples of a log of Inspect, or None for other files. Raises DataError without scores."""
    if file.base_name.endswith(".eval"):
        raise DataError(
            f"{file.name}: a log in Inspect's binary form. Convert it: inspect log convert --to json."
        )
    if not file.base_name.endswith(".json"):
        return None
    try:
        log = json.loads("\n".join(line for _, line in file.lines()))
    except (ValueError, RecursionError):
        return None
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list):
        return None
    samples_by_id: dict[str, list[ExampleOutput]] = {}
    for index, body in enumerate(log["samples"], start=1):
        sample = _read_inspect(file, index, body if isinstance(body, dict) else {})
        samples_by_id.setdefault(sample.id, []).append(sample)
    return [_mean_of_epochs(epochs) for epochs in samples_by_id.values()]


def _read_inspect(file: File, index: int, body: Body) -> ExampleOutput:
    scores = body.get("scores")
    values: dict[str, float] = {}
    for scorer, score in (scores if isinstance(scores, dict) else {}).items():
        value = score.get("value") if isinstance(score, dict) else None
        score_names = (
            {f"{scorer},{key}": part for key, part in value.items()}
            if isinstance(value, dict)
            else {scorer: value}
        )
        values |= _values(
            {
                name: GRADES.get(part, part) if isinstance(part, str) else part
                for name, part in score_names.items()
            }
        )
    if not values or "id" not in body:
        problem = f"sample {body.get('id', index)!r:.60} with the scores {scores!r:.60}"
        expected_scores = "scores that are grades or numbers, for every sample with an id"
        raise DataError(
            f"{file.name}: {short(problem)}; expected {expected_scores}. Score the log: inspect score."
        )
    return ExampleOutput(
        line=index,
        id=str(body["id"]),
        language=_language(body.get("metadata")),
        kind=SAMPLE,
        document=_digest([body.get("input"), body.get("target")]),
        values=values,
    )


def _mean_of_epochs(epochs: Sequence[ExampleOutput]) -> ExampleOutput:
    values = [sample.values or {} for sample in epochs]
    names = [name for name in values[0] if all(name in scores for scores in values)]
    return replace(epochs[0], values={name: fmean(scores[name] for scores in values) for name in names})


def _values(numbers: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Yield those that are numbers, finite or not, or truth values."""
    for name, value in numbers.items():
        if isinstance(value, bool | float) or is_number(value):
            yield name, float(value)


def _language(body: object) -> str:
    return canonical_language(str((body.get("language") if isinstance(body, dict) else "") or ""))


def _digest(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
