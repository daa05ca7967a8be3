"""Multiple choice: scores and loss of transformers' own class, unequal items, what is asked is kept."""

from math import exp, log

import pytest
import torch

from isogloss.core.errors import DataError
from isogloss.encoders.loading import load_model
from isogloss.encoders.subwords import set_causal
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.consistency.method import inconsistency
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.tasks.task import divergence_of_classes as divergence
from isogloss.training.parallel_text import ParallelExamples
from isogloss.training.states import StateOptions
from task_examples import TEXTS, WORDS, choice

CHOICE = TASKS["multiple-choice"]
UNEQUAL = [
    choice(TEXTS[n], (*TEXTS, *WORDS)[n : n + count], n % count, n, question=name)
    for n, (count, name) in enumerate([(2, ""), (4, "what happened"), (3, "")])
]


@pytest.fixture(scope="module")
def bert(bert_folder):
    return CHOICE.head(bert_folder, seed=0), load_tokenizer(bert_folder)


def test_scores_and_loss_are_those_of_transformers_own_class(bert):
    from transformers import BertForMultipleChoice

    model, tokenizer = bert
    theirs = BertForMultipleChoice(model.config).eval()
    theirs.load_state_dict(model.state_dict())
    items = [choice(text, TEXTS[1:], n, n, prompt="cause") for n, text in enumerate(TEXTS[1:])]
    batch = collate(CHOICE.encode(items, tokenizer), padding=tokenizer.pad_token_id)
    firsts = [question.context for question in items for _ in question.options]
    seconds = [f"cause {option}" for question in items for option in question.options]
    inputs = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(
            **{name: ids.view(3, 3, -1) for name, ids in inputs.items()}, labels=torch.tensor([0, 1, 2])
        )
        torch.testing.assert_close(CHOICE.scores(model, batch), expected.logits)
        torch.testing.assert_close(CHOICE.loss(model, batch), expected.loss)


def one_by_one(bert, item):
    """Score each option of an item separately."""
    model, tokenizer = bert
    text = f"{item.question} " if item.question else ""
    with torch.no_grad():
        return [
            model(**tokenizer(item.context, text + option, return_tensors="pt")).logits.item()
            for option in item.options
        ]


def test_each_item_has_a_softmax_over_its_own_options(bert):
    model, tokenizer = bert
    rows = CHOICE.encode(UNEQUAL, tokenizer)
    batch = collate(rows, padding=tokenizer.pad_token_id)
    single_logits = [one_by_one(bert, item) for item in UNEQUAL]
    losses = [
        log(sum(exp(score) for score in scores)) - scores[item.label]
        for item, scores in zip(UNEQUAL, single_logits, strict=True)
    ]
    with torch.no_grad():
        text = CHOICE.scores(model, batch)
        assert CHOICE.loss(model, batch).item() == pytest.approx(sum(losses) / 3, abs=1e-5)
    for scores, expected in zip(text.softmax(dim=1).tolist(), single_logits, strict=True):
        total = sum(exp(value) for value in expected)
        assert scores == pytest.approx([*(exp(item) / total for item in expected), 0, 0][:4], abs=1e-6)
    best_indices = [scores.index(max(scores)) for scores in single_logits]
    assert CHOICE.decode(UNEQUAL, rows, text.split(1)) == best_indices


def test_options_that_are_not_there_add_nothing_to_what_compares_two_sides(bert):
    """KL over an item's own options, with loops. Its gradient is a number."""
    model, tokenizer = bert
    sides = [
        collate(CHOICE.encode(items, tokenizer), padding=tokenizer.pad_token_id)
        for items in (
            UNEQUAL,
            [choice("a dog", question.options, 0, n) for n, question in enumerate(UNEQUAL)],
        )
    ]
    model.zero_grad()
    scores, other_scores = (CHOICE.scores(model, side) for side in sides)
    kl = {False: 0.0, True: 0.0}
    for index, item in enumerate(UNEQUAL):
        p, q = (
            side[index, : len(item.options)].double().softmax(dim=0).tolist()
            for side in (scores, other_scores)
        )
        for swapped_name, (a, b) in {False: (p, q), True: (q, p)}.items():
            kl[swapped_name] += sum(x * log(x / y) for x, y in zip(a, b, strict=True)) / 3
    assert divergence(scores, other_scores).item() == pytest.approx(kl[False], rel=1e-3, abs=1e-8)
    inconsistencies = inconsistency(scores, other_scores)
    assert inconsistencies.item() == pytest.approx(kl[False] + kl[True], rel=1e-3, abs=1e-8)
    inconsistencies.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
    model.zero_grad()


def test_where_a_row_is_too_long_the_context_is_cut_not_what_is_asked(bert):
    _, tokenizer = bert
    item = choice(
        " ".join(TEXTS * 5), ["the cat", "Anna saw Rome"], 1, prompt="cause", question="what happened"
    )
    (row,) = CHOICE.encode([item], tokenizer, limit=48)
    for text, option in zip(row.texts(), item.options, strict=True):
        input_ids = tokenizer(f"cause what happened {option}", add_special_tokens=False)["input_ids"]
        assert len(text.subwords) == 48
        assert list(text.subwords[-len(input_ids) - 1 : -1]) == input_ids


def test_the_scored_subword_is_the_last_of_each_option_where_the_encoder_is_causal(bert_folder):
    tokenizer = load_tokenizer(bert_folder)
    for causal in (False, True):
        set_causal(tokenizer, causal=causal)
        (row,) = CHOICE.encode([UNEQUAL[1]], tokenizer)
        batch = collate([row], padding=tokenizer.pad_token_id)
        lengths = [len(text.subwords) for text in row.texts()]
        assert batch.columns.tolist() == ([length - 1 for length in lengths] if causal else [0] * 4)
    assert len(set(lengths)) > 1


def test_states_of_an_item_are_the_mean_over_the_subwords_of_all_its_rows(bert_folder):
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    texts = ParallelExamples(task=CHOICE, read=lambda _: UNEQUAL, name="x")
    result = texts.states(
        (model, tokenizer), UNEQUAL, "en", StateOptions(layers=(1, -1), limit=64, precision="float32")
    )
    for index, item in enumerate(UNEQUAL):
        states = []
        for option in item.options:
            text = f"{item.question} {option}".strip()
            ids = tokenizer(item.context, text, return_tensors="pt")
            with torch.no_grad():
                layers = model(**ids, output_hidden_states=True).hidden_states
            real_value = ~torch.isin(ids["input_ids"][0], torch.tensor(tokenizer.all_special_ids))
            real_value |= ids["input_ids"][0] == tokenizer.unk_token_id
            states.append(torch.stack([layers[layer][0, real_value] for layer in (1, -1)]))
        expected = torch.cat(states, dim=1).mean(dim=1)
        torch.testing.assert_close(result[:, index], expected, atol=1e-5, rtol=1e-4)


def test_the_baseline_is_the_place_that_is_right_most_often(bert):
    train = [choice("a", "bc", label, n) for n, label in enumerate([1, 0, 1])]
    test = [choice("a", "bcd", label, n) for n, label in enumerate([1, 2, 1, 0])]
    assert CHOICE.majority(train, test) == 0.5
    assert CHOICE.majority(train[:2], test) == 0.25  # The first of equally frequent ones.


def test_items_that_are_none_are_refused(bert):
    _, tokenizer = bert
    for item, message in (
        (choice("a", ["b"], 0, 7), "example 'c7'.*1 options"),
        (choice("a", "bc", 2, 7), "example 'c7': .*2.*2.*0.*1"),
    ):
        with pytest.raises(DataError, match=message):
            CHOICE.encode([item], tokenizer)
    with pytest.raises(DataError, match=r"multiple-choice: .*1.*2"):
        CHOICE.score([None, 1], [0, 1])
