"""Without mixing, MixupLoss is the loss of transformers' own model, whatever the family, head and labels."""

import pytest
import torch

import isogloss
from isogloss.core.errors import IsoglossError

FAMILIES = (
    "bert", "xlm-roberta", "distilbert", "deberta-v2", "modernbert", "xlm-roberta-xl", "rembert", "eurobert",
    "xmod", "llama", "qwen3", "gemma3_text", "mt5", "m2m_100",
)  # fmt: skip
POST_NORM = ("bert", "xlm-roberta", "distilbert")
NEUTRAL = {"ratio": 0.0, "mse": 0.0, "kl": 0.0, "alpha": 0.3}
LENGTHS = ((7, 4, 6), (3, 8, 5))
"""Lengths of the source rows and of the target rows."""

TEXTS = "AutoModelForSequenceClassification"
WORDS = "AutoModelForTokenClassification"
QUESTIONS = "AutoModelForQuestionAnswering"  # fmt: skip


def classes(mask):
    return torch.tensor([0, 2, 1])


def column(mask):
    return classes(mask)[:, None]


def numbers(mask):
    return torch.tensor([0.1, 0.9, -1.5])


def sets(mask):
    return torch.tensor([[1.0, 0, 1], [0, 0, 0], [0, 1, 0]])


def soft_sets(mask):
    return torch.tensor([[0.5, 0, 1], [0, 0.25, 0], [0, 1, 0]])


def ignoring(mask):
    return torch.tensor([0, -100, 1])


def none_left(mask):
    return torch.full((3,), -100)


def too_large(mask):
    return torch.tensor([0, 3, 1])


def tags(mask):
    labels = torch.arange(mask.numel()).reshape(mask.shape) % 3
    labels[:, 0] = -100
    return torch.where(mask.bool(), labels, -100)


def tags_but_of_a_row(mask):
    labels = tags(mask)
    labels[1] = -100
    return labels


def no_tags(mask):
    return torch.full_like(mask, -100)


def tags_of_padding(mask):
    return torch.where(mask.bool(), tags(mask), 0)


def answers(mask):
    return torch.tensor([1, 2, 3])


ONE = "single_label_classification"
SEVERAL = "multi_label_classification"
NUMBER = "regression"
HEADS = [
    (TEXTS, 3, None, classes), (TEXTS, 3, ONE, classes), (TEXTS, 3, None, column), (TEXTS, 3, None, ignoring),
    (TEXTS, 3, None, sets), (TEXTS, 3, SEVERAL, sets), (TEXTS, 3, SEVERAL, soft_sets),
    (TEXTS, 1, None, numbers), (TEXTS, 1, NUMBER, numbers), (TEXTS, 2, None, ignoring),
    (WORDS, 3, None, tags), (WORDS, 3, None, tags_but_of_a_row),
]  # fmt: skip
"""Auto class, number of labels, problem type, and labels: those that are learned."""

REFUSED = [
    (TEXTS, 3, None, none_left, "all are -100"), (TEXTS, 3, None, too_large, "found 3; expected 0 to 2"),
    (TEXTS, 3, ONE, numbers, "integers"), (TEXTS, 3, NUMBER, sets, "num_labels 3"),
    (TEXTS, 3, SEVERAL, classes, "[3]; expected [3, 3]"), (TEXTS, 1, None, sets, "[3, 3]; expected [3]"),
    (WORDS, 3, None, no_tags, "all are -100"), (WORDS, 3, None, tags_of_padding, "attention_mask"),
    (WORDS, 3, None, classes, "[3]; expected"), (QUESTIONS, 2, None, answers, "ForQuestionAnswering"),
]  # fmt: skip
"""The same with a part of the message."""


def model_of(folder, head, count, problem):
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, num_labels=count)
    config.problem_type = problem
    if config.pad_token_id is None:
        config.pad_token_id = 0
    torch.manual_seed(0)
    return getattr(transformers, head).from_config(config).eval()


def batch(model, lengths, labels, *, seed):
    padding = model.config.pad_token_id
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(5, 60, mask.shape, generator=generator)
    return {
        "input_ids": torch.where(mask.bool(), ids, padding), "attention_mask": mask, "labels": labels(mask)
    }  # fmt: skip


def sides(model, labels):
    return [batch(model, lengths, labels, seed=seed) for seed, lengths in enumerate(LENGTHS)]


def loss_of(model, family, **options):
    mixed_result = {} if family in POST_NORM else {"mixed": "states"}
    return isogloss.MixupLoss(model, **mixed_result, **options)


def check_neutral(folder, family, head, count, problem, labels):
    """Return whether the loss is transformers' own and depends on each label. Else it is refused."""
    try:
        model = model_of(folder, head, count, problem)
    except ValueError as error:
        assert "Unrecognized configuration class" in str(error)
        return None
    source, target = sides(model, labels)
    try:
        loss = loss_of(model, family, **NEUTRAL)
        result = loss(source, target)
    except IsoglossError as refusal:
        assert "\n" not in str(refusal) and "MixupLoss" in str(refusal)
        return False
    if family == "deberta-v2" and labels is column:
        source, target = sides(model, classes)  # transformers itself fails for labels in a column.
    own_part = 0.3 * model(**source).loss + 0.7 * model(**target).loss
    torch.testing.assert_close(result, own_part, rtol=1e-5, atol=1e-6)
    is_learned = source["labels"] != -100
    changed_row = {**source, "labels": torch.where(is_learned, 1 - source["labels"].clamp(max=1), -100)}
    if not problem and source["labels"].is_floating_point() and count == 1:
        changed_row["labels"] = source["labels"] + 1
    assert not torch.equal(loss(changed_row, target), result)
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("head", "count", "problem", "labels"), HEADS)
def test_without_mixing_the_loss_is_that_of_transformers(bert_folder, head, count, problem, labels):
    assert check_neutral(bert_folder, "bert", head, count, problem, labels)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_without_mixing_the_loss_of_any_family_is_that_of_transformers(family, request):
    folder = request.getfixturevalue(f"{family.replace('-', '_')}_folder")
    outcomes = {case: check_neutral(folder, family, *case) for case in HEADS}
    assert outcomes == {case: find_expected(family, *case) for case in HEADS}


def find_expected(family, head, _, problem, labels):
    """Return the expected result: None if transformers lacks the class, False if refused."""
    if family == "m2m_100" or (family == "gemma3_text" and head == WORDS):
        return None
    # mT5 classifies texts by a decoder, and DeBERTa reads numbers as shares of classes.
    has_decoder = family == "mt5" and head == TEXTS
    return not (has_decoder or (family == "deberta-v2" and problem is None and labels is sets))


@pytest.mark.parametrize(("head", "count", "problem", "labels", "text"), REFUSED)
def test_labels_that_transformers_would_not_learn_are_refused(
    bert_folder, head, count, problem, labels, text
):
    model = model_of(bert_folder, head, count, problem)
    with pytest.raises(IsoglossError) as refusal:
        loss_of(model, "bert", **NEUTRAL)(*sides(model, labels))
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda side: side.pop("labels"), "source:"),
        (lambda side: side.pop("attention_mask"), "source:"),
        (lambda side: side.update(position_ids=side["input_ids"]), "position_ids"),
        (
            lambda side: side.update(attention_mask=side["attention_mask"][:, :-1]),
            "[3, 6] for input_ids [3, 7]",
        ),
        (lambda side: side.update(attention_mask=0 * side["attention_mask"]), "1"),
    ],
)
def test_batches_that_would_be_read_in_another_way_are_refused(bert_folder, change, text):
    model = model_of(bert_folder, TEXTS, 3, None)
    source, target = sides(model, classes)
    change(source)
    with pytest.raises(IsoglossError) as refusal:
        loss_of(model, "bert", **NEUTRAL)(source, target)
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_batch_without_padding_needs_no_mask(bert_folder):
    model = model_of(bert_folder, TEXTS, 3, None)
    source, target = (batch(model, (6, 6, 6), classes, seed=seed) for seed in range(2))
    loss = loss_of(model, "bert", ratio=0.4, learned_ratio=False)
    unmasked_sides = [{name: side[name] for name in ("input_ids", "labels")} for side in (source, target)]
    assert torch.equal(loss(*unmasked_sides), loss(source, target))


def gradients(model, family, *, checkpointing):
    loss = loss_of(model.train(), family)
    if checkpointing:
        model.activation_checkpointing_enable()
    else:
        model.activation_checkpointing_disable()
    model.zero_grad()
    torch.manual_seed(4)
    loss(*sides(model, classes)).backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_gradient_checkpointing_changes_no_gradient(family, request):
    model = model_of(request.getfixturevalue(f"{family}_folder"), TEXTS, 3, None)
    stored_grads, recomputed_grads = (
        gradients(model, family, checkpointing=options) for options in (False, True)
    )
    assert stored_grads.keys() == recomputed_grads.keys()
    assert [
        name for name, part in stored_grads.items() if not torch.equal(part, recomputed_grads[name])
    ] == []
    assert all(getattr(layer, "gradient_checkpointing", True) for layer in model.modules())


@pytest.mark.slow
@pytest.mark.parametrize(("head", "labels"), [(TEXTS, classes), (WORDS, tags)])
def test_mixing_changes_the_loss_of_a_decoder(llama_folder, head, labels):
    model = model_of(llama_folder, head, 3, None)
    plain_result, mixed_result = (
        loss_of(model, "llama", mse=0.0, kl=0.0, ratio=ratio)(*sides(model, labels)) for ratio in (0.0, 0.5)
    )
    assert not torch.allclose(plain_result, mixed_result)
