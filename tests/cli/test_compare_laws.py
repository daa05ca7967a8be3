"""Laws of compare: for every type of label, container and measure it states the right task or refuses.

Results equal scikit-learn, seqeval or SQuAD's script. Files on the command line give the same results as
lists. The task is never misread silently.
"""

import json
import re
import string
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn import metrics
from sklearn.preprocessing import MultiLabelBinarizer

import isogloss
from isogloss.core.errors import IsoglossError

CLASSES = ("accuracy", "micro_f1", "macro_f1", "weighted_f1", "mcc")
ALL_METRICS = (
    *("", *CLASSES, "exact_match", "spearman", "pearson", "span_f1", "word_f1", "seqeval_f1"),
    *("f1", "em", "acuracy"),
)

TYPES = {
    "int": lambda numbers: [int(n) for n in numbers],
    "bool": lambda numbers: [n > 0 for n in numbers],
    "text": lambda numbers: ["abc"[n] for n in numbers],
    "digits": lambda numbers: [str(n) for n in numbers],
    "whole floats": lambda numbers: [float(n) for n in numbers],
    "fractions": lambda numbers: [n + 0.25 * (k % 3 == 0) for k, n in enumerate(numbers)],
    "none": lambda numbers: [None if k == 2 else int(n) for k, n in enumerate(numbers)],
    "nan": lambda numbers: [float("nan") if k == 2 else float(n) for k, n in enumerate(numbers)],
    "mixed": lambda numbers: ["a" if k == 2 else int(n) for k, n in enumerate(numbers)],
    "ignored": lambda numbers: [-100 if k == 2 else int(n) for k, n in enumerate(numbers)],
}
"""Labels of one text each, from the numbers 0 to 2."""

CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda labels: np.array([*labels, None], dtype=object)[:-1],
    "scalars": lambda labels: [label if label is None else np.array([label])[0] for label in labels],
    "series": lambda labels: pd.Series(labels, index=range(7, 7 + len(labels))),
    "categories": pd.Categorical,
    "tensor": torch.tensor,
    "tensors": lambda labels: [torch.tensor(label) for label in labels],
    "short floats": lambda labels: torch.tensor(labels, dtype=torch.bfloat16 if labels else None),
}

GOLD = [0, 1, 2, 1, 0, 2, 1, 1, 0, 2, 0, 1]
OURS = [0, 1, 2, 0, 0, 2, 1, 2, 0, 1, 0, 1]
THEIRS = [1, 1, 2, 0, 0, 2, 0, 2, 1, 1, 0, 0]


def fill_container(container, labels):
    """Return labels in a container. None if the container cannot represent them."""
    try:
        return CONTAINERS[container](labels)
    except (TypeError, ValueError, RuntimeError):
        return None


def plain(labels):
    """Return the items of a container as Python values."""
    return [
        label.item() if hasattr(label, "item") else label
        for label in (labels.tolist() if hasattr(labels, "tolist") else labels)
    ]


def result(*sides, **options):
    """Return task, metric and both scores, or the refusal."""
    try:
        comparison = isogloss.compare(*sides, **options)
    except IsoglossError as error:
        assert "\n" not in str(error)
        assert re.match(r"(compare|gold|system|baseline)\b", str(error)), error
        assert "--" not in str(error)
        assert "the line" not in str(error)
        return error
    return comparison["task"], comparison["metric"], comparison["score"], comparison["baseline_score"]


REFERENCES = {
    "accuracy": metrics.accuracy_score,
    "micro_f1": lambda gold, message: metrics.f1_score(gold, message, average="micro"),
    "macro_f1": lambda gold, message: metrics.f1_score(gold, message, average="macro"),
    "weighted_f1": lambda gold, message: metrics.f1_score(gold, message, average="weighted"),
    "mcc": metrics.matthews_corrcoef,
    "spearman": lambda gold, message: stats.spearmanr(gold, message).statistic,
    "pearson": lambda gold, message: stats.pearsonr(gold, message).statistic,
}


def expected_of_one_label(kind, metric):
    """Return the task that is right for labels of a type and a metric. Empty for a refusal."""
    has_classes = metric in CLASSES
    has_numbers = metric in ("spearman", "pearson")
    if kind == "ignored":
        return "regression" if has_numbers else ""
    if kind in ("none", "nan", "mixed") or not (has_classes or has_numbers or metric == ""):
        return ""
    if kind in ("text", "digits", "bool"):
        return "" if has_numbers else "classification"
    if kind == "int":
        return "regression" if has_numbers else "classification"
    if kind == "whole floats":
        return {(True, False): "classification", (False, True): "regression"}.get(
            (has_classes, has_numbers), ""
        )
    return "" if has_classes else "regression"


def check_one_label(kind, container, metric):
    sides = [fill_container(container, TYPES[kind](numbers)) for numbers in (OURS, THEIRS, GOLD)]
    if any(side is None for side in sides):
        return
    ours, theirs, gold = (plain(side) for side in sides)
    if container in ("array", "categories") and kind == "mixed":
        kind = "digits" if container == "array" else kind  # NumPy makes texts of them: "a", "0" …
    if container == "short floats":
        kind = {"int": "whole floats", "bool": "whole floats"}.get(kind, kind)
    if container in ("array", "scalars", "series", "tensor") and kind == "none" and None not in gold:
        kind = "nan"
    error = result(*sides, metric=metric)
    task = expected_of_one_label(kind, metric)
    if isinstance(error, Exception):
        assert not task, (kind, container, metric, error)
        return
    assert error[0] == task, (kind, container, metric, error)
    assert error[1] == (metric or {"classification": "accuracy", "regression": "spearman"}[task])
    reference = REFERENCES[error[1]]
    assert error[2:] == pytest.approx((reference(gold, ours), reference(gold, theirs)), abs=1e-9)


def tags_of(scheme):
    """Return gold tags and the tags of two systems, some of them invalid, in a scheme."""
    gold = [
        ["B-PER", "I-PER", "O"],
        ["O", "B-LOC", "B-LOC"],
        ["B-PER", "O"],
        ["O"],
        ["B-LOC", "I-LOC", "I-LOC"],
    ]
    ours = [["B-PER", "I-PER", "O"], ["O", "B-LOC", "I-LOC"], ["O", "O"], ["O"], ["B-LOC", "I-LOC", "O"]]
    theirs = [
        ["B-PER", "O", "O"],
        ["O", "I-LOC", "B-LOC"],
        ["B-PER", "O"],
        ["B-LOC"],
        ["B-PER", "I-LOC", "O"],
    ]
    return [[convert_tags(tags, scheme) for tags in side] for side in (ours, theirs, gold)]


def convert_tags(tags, scheme):
    """Write BIO tags in a different scheme."""
    if scheme == "untyped":
        return [tag[0] for tag in tags]
    if scheme in ("BIO", "words"):
        return [tag[0] + "ABC"[len(tag) % 3] if scheme == "words" else tag for tag in tags]
    last_value, single = {"IOBES": "ES", "BILOU": "LU", "BMES": "ES"}[scheme]
    text = []
    for place, tag in enumerate(tags):
        ends = tag != "O" and (place + 1 == len(tags) or tags[place + 1][0] != "I")
        mark = {"B": single if ends else "B", "I": last_value if ends else "I"}.get(tag[0], "O")
        mark = "M" if scheme == "BMES" and mark == "I" else mark
        text.append(tag if tag == "O" else mark + tag[1:])
    return text


def seqeval_scores(gold, message, scheme):
    """Return seqeval's F1 of spans, which knows schemes in strict mode, and IOBES and BIO in its own."""
    from seqeval.metrics import f1_score

    table = str.maketrans({"L": "E", "U": "S", "M": "I"}) if scheme in ("BILOU", "BMES") else {}
    sides = [
        [[tag[:1].translate(table) + tag[1:] for tag in tags] for tags in side] for side in (gold, message)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f1_score(*sides)


ROWS = {
    "lists": lambda side: side,
    "tuples": lambda side: tuple(tuple(value) for value in side),
    "arrays": lambda side: [np.array(tags) for tags in side],
    "series": lambda side: pd.Series([list(tags) for tags in side]),
    "one text": lambda side: [" ".join(str(value) for value in tags) for tags in side],
}


def check_tags(scheme, rows, metric, task=""):
    ours, theirs, gold = sides = tags_of(scheme)
    error = result(*(ROWS[rows](side) for side in sides), metric=metric, task=task)
    if rows == "one text":
        if scheme != "words" and not task:
            assert isinstance(error, Exception) or error[0] == "qa", error
        return
    spans = scheme != "words"
    known_classes = (*CLASSES, "seqeval_f1") if not spans else ("span_f1", "word_f1", "micro_f1", "accuracy")
    if metric == "exact_match" and not task:
        assert error[:2] == ("multi-label-classification", "exact_match")
        return
    if task == "word-tagging":
        spans = False
        known_classes = (*CLASSES, "seqeval_f1")
    if metric and metric not in known_classes:
        assert isinstance(error, Exception), (scheme, metric, error)
        return
    assert error[0] == ("span-tagging" if spans else "word-tagging")
    flat = [[tag for tags in side for tag in tags] for side in (gold, ours, theirs)]
    if error[1] in ("span_f1", "seqeval_f1") or (spans and error[1] == "micro_f1"):
        expected = [seqeval_scores(gold, message, scheme if spans else "") for message in (ours, theirs)]
    elif error[1] == "word_f1":
        return
    else:
        expected = [REFERENCES[error[1]](flat[0], message) for message in flat[1:]]
    assert error[2:] == pytest.approx(expected, abs=1e-9), (scheme, rows, metric)


SETS = (
    [{"joy"}, {"joy", "fear"}, set(), {"rage"}, {"fear"}],
    [{"joy"}, {"joy"}, {"rage"}, {"rage"}, set()],
    [{"joy"}, {"joy", "fear"}, set(), {"fear", "rage"}, {"fear"}],
)
SET_TYPES = {
    "sets": lambda side, _: side,
    "frozensets": lambda side, _: [frozenset(item) for item in side],
    "integers": lambda side, names: [{names.index(label) for label in item} for item in side],
    "series": lambda side, _: pd.Series(side),
    "marks": lambda side, names: np.array([[name in item for name in names] for item in side], dtype=int),
    "truth values": lambda side, names: torch.tensor([[name in item for name in names] for item in side]),
}


def check_sets(kind, metric, task):
    names = sorted(set.union(*(set(value) for value in (label for side in SETS for label in side))))
    error = result(*(SET_TYPES[kind](side, names) for side in SETS), metric=metric, task=task)
    known_texts = ("micro_f1", "macro_f1", "weighted_f1", "exact_match")
    marks = kind in ("marks", "truth values")
    if (metric and metric not in known_texts) or (marks and not task and metric != "exact_match"):
        assert isinstance(error, Exception), (kind, metric, error)
        return
    assert error[0] == "multi-label-classification"
    tables = [MultiLabelBinarizer(classes=names).fit_transform(side) for side in SETS]
    for table, score in zip(tables[:2], error[2:], strict=True):
        if error[1] == "exact_match":
            expected = metrics.accuracy_score(tables[2], table)
        else:
            average = error[1].removesuffix("_f1")
            expected = metrics.f1_score(tables[2], table, average=average, zero_division=0)
        assert score == pytest.approx(expected, abs=1e-9)


def squad(gold, message):
    """Return F1 and exact match of SQuAD's official script."""

    def normal(text):
        text = "".join(item for item in text.lower() if item not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    def f1(right, words):
        same_total = sum((Counter(right) & Counter(words)).values())
        return 2 * same_total / (len(right) + len(words)) if same_total else float(right == words)

    pairs = [
        ([normal(item) for item in ([right] if isinstance(right, str) else right)], normal(answer))
        for right, answer in zip(gold, message, strict=True)
    ]
    return {
        "f1": np.mean([max(f1(item, words) for item in right) for right, words in pairs]),
        "em": np.mean([max(item == words for item in right) for right, words in pairs]),
    }


ANSWERS = (
    ["the Nile", "in 1990", "Anna Lee", "a dog"],
    ["Nile river", "1990", "Anna", "the cat"],
    ["The Nile", "1990", "Anna Lee", "dogs"],
)


def check_answers(lists, metric, task):
    ours, theirs, gold = ANSWERS
    gold = [[item, f"{item}!"] for item in gold] if lists else gold
    error = result(ours, theirs, gold, metric=metric, task=task)
    right = task == "qa" or lists or metric in ("f1", "em")
    if not right:
        if metric in CLASSES and not task:
            assert error[:2] == ("classification", metric)
        else:
            assert isinstance(error, Exception), (metric, task, error)
        return
    if metric not in ("", "f1", "em"):
        assert isinstance(error, Exception)
        return
    assert error[:2] == ("qa", metric or "f1")
    assert error[2:] == pytest.approx([squad(gold, message)[error[1]] for message in (ours, theirs)])


def check_files(command, folder, sides, metric):
    """The command line takes a file of the same labels as lists are taken, and refuses what they are."""
    error_by_list = result(*sides, metric=metric)
    ours, theirs, gold = sides
    key = "labels" if isinstance(gold[0], list) else "label"
    paths = []
    for name, message in (("a", ours), ("b", theirs)):
        lines = [
            json.dumps({"id": n, key: answer, "gold": right})
            for n, (answer, right) in enumerate(zip(message, gold, strict=True))
        ]
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--measure", metric) if metric else ()
    response = command("compare", "--predictions", *paths, *options, "--json")
    if isinstance(error_by_list, Exception):
        assert response.status == 2, (metric, error_by_list, response.out)
        return
    assert response.status == 0, (metric, response.err)
    (row,) = response.lines
    assert (row["task"], row["measure"]) == error_by_list[:2]
    assert (row["score"], row["baseline_score"]) == pytest.approx(error_by_list[2:])


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", TYPES)
def test_labels_of_texts_are_of_the_right_task_or_refused(kind):
    for container, metric in product(
        ("list", "array", "series", "tensor"), ("", "accuracy", "spearman", "f1")
    ):
        check_one_label(kind, container, metric)


@pytest.mark.parametrize("scheme", ["BIO", "IOBES", "BILOU", "BMES", "untyped", "words"])
def test_tags_are_spans_or_words_or_refused(scheme):
    for rows, metric in product(("lists", "one text"), ("", "accuracy", "span_f1")):
        check_tags(scheme, rows, metric)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", SET_TYPES)
def test_several_labels_of_a_text_are_a_set(kind):
    for metric, task in product(("", "macro_f1", "exact_match"), ("", "multi-label-classification")):
        check_sets(kind, metric, task)


def test_answers_are_scored_as_squad_does_and_never_classes():
    for lists, metric, task in product((False, True), ("", "f1", "em", "accuracy"), ("", "qa")):
        check_answers(lists, metric, task)


@pytest.mark.slow
def test_files_are_taken_as_lists_are(command, tmp_path):
    for kind, metric in product(("int", "bool", "text", "fractions", "whole floats"), ("", "f1", "spearman")):
        check_files(command, tmp_path, [TYPES[kind](numbers) for numbers in (OURS, THEIRS, GOLD)], metric)
    for scheme in ("BIO", "IOBES", "untyped"):
        check_files(command, tmp_path, tags_of(scheme), "")


@pytest.mark.nightly
@pytest.mark.parametrize("container", CONTAINERS)
def test_labels_in_every_container_and_metric(container):
    for kind, metric in product(TYPES, ALL_METRICS):
        check_one_label(kind, container, metric)


@pytest.mark.nightly
def test_tags_in_every_scheme_container_and_metric():
    for scheme, rows, metric, task in product(
        ("BIO", "IOBES", "BILOU", "BMES", "untyped", "words"), ROWS, ALL_METRICS, ("", "word-tagging")
    ):
        check_tags(scheme, rows, metric, task)


@pytest.mark.nightly
def test_sets_and_answers_with_every_metric():
    for kind, metric, task in product(SET_TYPES, ALL_METRICS, ("", "multi-label-classification")):
        check_sets(kind, metric, task)
    for lists, metric, task in product((False, True), ALL_METRICS, ("", "qa")):
        check_answers(lists, metric, task)


@pytest.mark.nightly
def test_files_of_every_type_and_metric_are_taken_as_lists_are(command, tmp_path):
    kinds = [kind for kind in TYPES if kind not in ("none", "nan")]
    for kind, metric in product(kinds, ALL_METRICS):
        sides = [TYPES[kind](numbers) for numbers in (OURS, THEIRS, GOLD)]
        if not (metric in ("f1", "em") and kind == "text"):
            check_files(command, tmp_path, sides, metric)
    for scheme, metric in product(("BIO", "IOBES", "BILOU", "BMES", "untyped", "words"), ALL_METRICS):
        check_files(command, tmp_path, tags_of(scheme), metric)


@pytest.mark.parametrize(
    ("sides", "options", "text"),
    [
        (([1, 0], [1, 0], [1, None]), {}, r"^compare: gold\[1\]: None, which is missing"),
        (([1, 0], [1, float("nan")]), {}, r"^compare: baseline\[1\]: nan, which is missing"),
        (([1, "a"], [1, 0]), {}, r"^compare: system\[1\]: 'a'; expected a number"),
        (("ab", "ab", "ab"), {}, r"^compare: system is one str 'ab'"),
        ((pd.DataFrame({"x": [1]}), [1], [1]), {}, r"^compare: system is one DataFrame"),
        ((np.float64(3), [1], [1]), {}, r"^compare: system is .*3"),
        (([[0.1, 0.9]], [[0.2, 0.8]], [1]), {}, "argmax"),
        (([[1, -100]], [[1, -100]], [[0, -100]]), {}, r"system\[0\]: label -100"),
        (([[1, 2]], [[1]], [[0, 2]]), {}, r"baseline\[0\]: gold '\[0, 2\]'; expected 1 labels"),
        ((["1"], ["1"], [1]), {}, r"system\[0\]: gold '1'; expected what fits label '1'"),
        (([0.2, 0.9], [0.1, 0.8], [0, 1]), {}, "accuracy for classes .* spearman"),
        (([1, 2], [1, 2], [2, 1]), {"task": "clasification"}, "Did you mean 'classification'"),
        (([1, 2], [1, 2], [2, 1]), {"task": "span-tagging"}, "task classification, not span-tagging"),
        (({1: [1, 0], 2: [1, "x"]}, {1: [1, 0], 2: [0, 0]}, [1, 0]), {}, r"system of seed 2\[1\]"),
        (([b"a"], [b"a"], [b"a"]), {}, r"system\[0\]: bytes b'a'"),
        (([["B-X", "O", "b-X"]], [["O", "O", "O"]], [["B-X", "O", "b-X"]]), {}, "'b-X'"),
    ],
)
def test_what_is_no_prediction_is_named_by_list_and_index(sides, options, text):
    refusal = result(*sides, **options)
    assert isinstance(refusal, Exception)
    assert re.search(text, str(refusal)), refusal
