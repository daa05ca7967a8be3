"""The laws of every task in ``TASKS``."""

import ast
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import isogloss.encoders
import isogloss.tasks
from isogloss.core.errors import DataError
from isogloss.core.rows.models import Contributions, total
from isogloss.data.examples import LabelledText
from isogloss.metrics.labels import Tree
from isogloss.metrics.texts import GoldAnswers
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.tasks.classification import TEXT
from isogloss.tasks.task import all_measures
from task_examples import SMALL_TASKS, choice, examples_of, make_parsed, make_tagged, pair, perfect, question

UNLABELLED = {
    "word": make_tagged(["a", "cat"]),
    "tree": make_parsed(["a", "cat"]),
    "example": pair("a", "cat"),
    "option": choice("a", ["cat", "dog"]),
    "span": question(),
}
"""By what the task labels."""

every_task = pytest.mark.parametrize("task", SMALL_TASKS.values(), ids=SMALL_TASKS)


def names_of_kinds(*kinds):
    return [name for name, task in SMALL_TASKS.items() if task.labels_are in kinds]


def scores_of(task, model, rows, tokenizer):
    """Give each row's scores, as evaluation splits them."""
    batch = collate(rows, padding=tokenizer.pad_token_id)
    with torch.no_grad():
        return task.scores(model, batch).split([row.scored for row in rows])


# The table


def test_tasks_are_listed_under_their_name_with_the_unit_they_label():
    assert {name: (task.name, task.labels_are, task.metric) for name, task in TASKS.items()} == {
        "upos": ("upos", "word", "accuracy"),
        "ner": ("ner", "word", "span_f1"),
        "parsing": ("parsing", "tree", "las"),
        "nli": ("nli", "example", "accuracy"),
        "paraphrase": ("paraphrase", "example", "accuracy"),
        "qa": ("qa", "span", "f1"),
        "multiple-choice": ("multiple-choice", "option", "accuracy"),
        "regression": ("regression", "example", "spearman"),
        "pair-regression": ("pair-regression", "example", "spearman"),
    }


@every_task
def test_labels_are_unique_and_windows_can_overlap(task):
    assert len(set(task.labels)) == len(task.labels)
    assert 0 < task.overlap < task.limit


def test_transformers_is_imported_inside_functions_only():
    paths = [
        path
        for package in (isogloss.tasks, isogloss.encoders)
        for path in Path(package.__file__).parent.glob("*.py")
    ]
    assert len(paths) > 20
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = {alias.name for alias in getattr(node, "names", ()) if isinstance(node, ast.Import)}
            if isinstance(node, ast.ImportFrom):
                names.add(node.module)
            assert "transformers" not in names, path


# Rows and decoding


@every_task
@pytest.mark.parametrize(("limit", "overlap"), [(384, 64), (26, 8)])
def test_perfect_scores_decode_to_the_gold_answers_in_any_order(task, either_tokenizer, limit, overlap):
    examples = examples_of(task.name)
    rows = task.encode(examples, either_tokenizer, limit=limit, overlap=overlap)
    random.Random(0).shuffle(rows)
    assert max(len(text.subwords) for row in rows for text in row.texts()) <= limit
    assert {row.example for row in rows} == set(range(8))
    kept_totals = [max(sum(len(r.words) for r in rows if r.example == n), 1) for n in range(8)]
    text = task.decode(examples, rows, perfect(task, rows, examples))
    gold = task.gold(examples)
    if task.labels_are == "tree":  # Sentences are truncated, not split.
        text = [
            (sentence.heads[:n], sentence.relations[:n])
            for sentence, n in zip(text, kept_totals, strict=True)
        ]
        gold = [
            (sentence.heads[:n], sentence.relations[:n])
            for sentence, n in zip(gold, kept_totals, strict=True)
        ]
        whole_gold = [n for n, item in enumerate(gold) if max(item[0]) <= kept_totals[n]]
        text, gold = ([item[n] for n in whole_gold] for item in (text, gold))
        assert len(whole_gold) >= (8 if limit > 100 else 1)
    if task.labels_are == "span":
        gold = [item.texts[0] for item in gold]
    assert text == gold


@every_task
def test_unlabelled_examples_have_rows_without_labels_and_no_examples_no_rows(task, either_tokenizer):
    single_labelled_text = LabelledText(id="t", text="a cat", label="")
    example = single_labelled_text if getattr(task, "texts", ()) == TEXT else UNLABELLED[task.labels_are]
    (row,) = task.encode([example], either_tokenizer)
    assert (tuple(row.gold), row.heads, row.soft) == ((), (), None)
    assert task.encode([], either_tokenizer) == task.decode([], [], []) == []


@every_task
def test_decoding_some_of_the_rows_or_some_twice_is_refused(task, either_tokenizer):
    examples = examples_of(task.name)
    rows = task.encode(examples, either_tokenizer)
    scores = perfect(task, rows, examples)
    with pytest.raises(ValueError, match="decode"):
        task.decode(examples, rows[1:], scores[1:])
    if task.labels_are != "span":  # A question's windows may come in any number.
        for twice in ([*range(7), 0], [*range(8), 0]):
            with pytest.raises(ValueError, match="decode"):
                task.decode(examples, [rows[n] for n in twice], [scores[n] for n in twice])


@pytest.mark.parametrize(
    ("name", "example", "message"),
    [
        (
            "ner",
            make_tagged(["a", "cat"], ["O", "B-PERS"], 7),
            "example 's7', word 2: ner has no label 'B-PERS'. Did you mean 'B-PER'? "
            "Allowed: O, B-PER, I-PER, B-ORG, I-ORG, B-LOC, I-LOC.",
        ),
        (
            "nli",
            pair("a", "b", "entailed", 3),
            "example 'p3': nli has no label 'entailed'. Did you mean 'entailment'? "
            "Allowed: entailment, neutral, contradiction.",
        ),
    ],
)
def test_labels_outside_the_inventory_are_named(either_tokenizer, name, example, message):
    with pytest.raises(DataError) as error:
        TASKS[name].encode([example], either_tokenizer)
    assert str(error.value) == message


# Head, scores, loss


@pytest.mark.each_value
@every_task
def test_heads_follow_their_seed_and_carry_the_labels(task, either_folder):
    models = [task.head(either_folder, seed=seed) for seed in (1, 1, 2)]
    parameters, again, other_parameters = (dict(model.named_parameters()) for model in models)
    assert all(torch.equal(weight, again[name]) for name, weight in parameters.items())
    prefix = f"{models[0].base_model_prefix}."
    changed_names = {
        name for name, weight in parameters.items() if not torch.equal(weight, other_parameters[name])
    }
    assert changed_names and not any(
        name.startswith(prefix) and ".pooler." not in name for name in changed_names
    )
    assert models[0].config.id2label == dict(enumerate(task.labels))
    assert (models[0].config.problem_type or "") == getattr(task, "problem_type", "")


@pytest.mark.each_value
@every_task
def test_padding_and_other_rows_change_no_score(task, either_folder, either_tokenizer):
    model = task.head(either_folder, seed=0)
    rows = task.encode([*examples_of(task.name, size=9)[:2], *examples_of(task.name)[2:4]], either_tokenizer)
    joint_parts = scores_of(task, model, rows, either_tokenizer)
    assert len(joint_parts) == 4
    for row, joint_part in zip(rows, joint_parts, strict=True):
        (single_part,) = scores_of(task, model, [row], either_tokenizer)
        torch.testing.assert_close(joint_part[:, : single_part.size(1)], single_part, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", names_of_kinds("word", "example", "span"))
def test_scores_are_the_logits_of_hugging_face(name, either_folder, either_tokenizer, attention):
    task = SMALL_TASKS[name]
    model = task.head(either_folder, seed=0, attention=attention)
    batch = collate(task.encode(examples_of(name), either_tokenizer), padding=either_tokenizer.pad_token_id)
    with torch.no_grad():
        output = model(**batch.inputs())
        scores = task.scores(model, batch)
    if task.labels_are == "span":
        expected = torch.stack((output.start_logits, output.end_logits), dim=-1)[batch.rows, batch.columns]
    else:
        expected = output.logits if task.labels_are == "example" else output.logits[batch.rows, batch.columns]
    torch.testing.assert_close(scores, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("name", names_of_kinds("word", "example"))
def test_the_loss_is_that_of_hugging_face(name, either_folder, either_tokenizer):
    task = SMALL_TASKS[name]
    model = task.head(either_folder, seed=0)
    batch = collate(task.encode(examples_of(name), either_tokenizer), padding=either_tokenizer.pad_token_id)
    labels = batch.gold if batch.soft is None else batch.soft
    if task.labels_are == "word":
        labels = torch.full_like(batch.subwords, -100)
        labels[batch.rows, batch.columns] = batch.gold
    with torch.no_grad():
        torch.testing.assert_close(task.loss(model, batch), model(**batch.inputs(), labels=labels).loss)


@pytest.mark.slow
@every_task
def test_eight_examples_are_learned_by_heart(task, either_folder, either_tokenizer):
    examples = examples_of(task.name)
    rows = task.encode(examples, either_tokenizer)
    batch = collate(rows, padding=either_tokenizer.pad_token_id)
    model = task.head(either_folder, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    gold = task.gold(examples)
    fields = {"": 0.0}
    for step in range(120):
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        optimizer.step()
        if step % 10 == 9:
            predicted_text = task.decode(examples, rows, scores_of(task, model, rows, either_tokenizer))
            fields = all_measures(task, gold, predicted_text)
            if all(value > 0.9999 for value in fields.values()):
                return
    pytest.fail(f"{task.name}: {fields} after 120 steps")


@pytest.mark.each_value
@every_task
def test_the_loss_of_a_batch_is_that_of_its_parts(task, either_folder, either_tokenizer):
    """Rows have unequal numbers of labels, and some words' heads are outside their row."""
    model = task.head(either_folder, seed=0)
    rows = task.encode(examples_of(task.name), either_tokenizer, limit=26, overlap=8)
    batch = collate(rows, padding=either_tokenizer.pad_token_id, languages=("en", *("de",) * (len(rows) - 1)))
    parts = batch.parts(3)
    assert sum(part.items for part, _ in parts) == len(rows)
    assert sum(len(part.subwords) for part, _ in parts) == len(batch.subwords)
    assert [language for part, _ in parts for language in part.languages] == list(batch.languages)
    assert sum(share for _, share in parts) == pytest.approx(1)
    with torch.no_grad():
        whole_loss = task.loss(model, batch)
        torch.testing.assert_close(sum(share * task.loss(model, part) for part, share in parts), whole_loss)
    assert [part.items for part, _ in batch.parts(len(rows) + 1)] == [1] * len(rows)


# Measures

TEXTS = st.text("ab 12.", max_size=8)


@st.composite
def tags(draw, task):
    """A sentence's tags, gold and predicted."""
    length = draw(st.integers(0, 6))
    item = st.lists(st.sampled_from(task.labels), min_size=length, max_size=length).map(tuple)
    return draw(item), draw(item)


@st.composite
def trees(draw, task):
    length = draw(st.integers(1, 5))
    heads = st.lists(st.integers(0, length), min_size=length, max_size=length).map(tuple)
    names = st.lists(st.sampled_from(task.labels), min_size=length, max_size=length).map(tuple)
    upos = draw(st.lists(st.sampled_from(["NOUN", "PUNCT", "SYM"]), min_size=length, max_size=length))
    return Tree(draw(heads), draw(names), tuple(upos)), Tree(draw(heads), draw(names))


def label_pairs(task):
    floats = st.floats(-9, 9) if task.metric == "spearman" else st.sampled_from(task.labels)
    return st.tuples(floats, floats)


def answers(_):
    gold = st.lists(TEXTS, min_size=1, max_size=3).map(lambda texts: GoldAnswers(tuple(texts)))
    return st.tuples(gold, TEXTS)


DRAWN = {
    "word": tags,
    "tree": trees,
    "example": label_pairs,
    "option": lambda _: st.tuples(st.integers(0, 3), st.integers(0, 3)),
    "span": answers,
}


@pytest.mark.parametrize("name", TASKS)
@given(data=st.data())
def test_the_metric_comes_first_and_is_the_score_to_the_bit(name, data):
    task = TASKS[name]
    drawn_sample = data.draw(st.lists(DRAWN[task.labels_are](task), max_size=6))
    gold, predictions = ([item[side] for item in drawn_sample] for side in (0, 1))
    measures = all_measures(task, gold, predictions)
    contributions = task.contributions(gold, predictions)
    assert next(iter(measures.items())) == (task.metric, task.score(gold, predictions))
    correlations = {"spearman", "pearson", "mcc"}
    assert all(-(name in correlations) - 1e-9 <= value <= 1 + 1e-9 for name, value in measures.items())
    assert list(contributions) == list(measures)
    assert {len(numbers) for contribution in contributions.values() for numbers in contribution} == {
        len(drawn_sample)
    }


JOINING = ("upos", "regression", "pair-regression")
"""Chunks may join examples, and ranks are those among all."""

INFLUENCES = {"macro_f1", "weighted_f1", "mcc"}
"""Measures of classes, to which an example adds its influence among all."""


@pytest.mark.parametrize("name", [name for name in TASKS if name not in JOINING])
@given(data=st.data())
def test_an_example_contributes_the_same_among_any_others(name, data):
    task = TASKS[name]
    drawn_sample = data.draw(st.lists(DRAWN[task.labels_are](task), min_size=1, max_size=5))
    gold, predictions = ([item[side] for item in drawn_sample] for side in (0, 1))
    joint_contributions = task.contributions(gold, predictions)
    for n in range(len(drawn_sample)):
        single_contributions = task.contributions(gold[n : n + 1], predictions[n : n + 1])
        measures = [name for name in joint_contributions if name not in INFLUENCES]
        assert measures[0] == task.metric
        assert {name: [numbers[n] for numbers in joint_contributions[name]] for name in measures} == {
            name: [numbers[0] for numbers in single_contributions[name]] for name in measures
        }


def test_nothing_adds_up_to_nothing():
    assert total(Contributions([], [])) == 0
    assert total(Contributions([0.0], [0.0])) == 0


def test_a_pair_without_a_label_cannot_be_scored():
    with pytest.raises(DataError, match=r"1.*2 examples"):
        TASKS["nli"].contributions(["neutral", ""], ["neutral", "neutral"])
