import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.examples import SentencePair
from isogloss.encoders.loading import load_tokenizer
from isogloss.tasks.batch import collate
from isogloss.tasks.pair_classification import NLI, PARAPHRASE

TEXTS = ("the cat sat on the mat", "a dog ran over hills", "Anna saw Rome", "things happened slowly", "")


@pytest.fixture(scope="module", params=["bert", "xlm_roberta"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="module")
def tokenizer(folder):
    return load_tokenizer(folder)


def pair(first, second, label="", number=0):
    return SentencePair(id=f"p{number}", first=first, second=second, label=label)


@pytest.fixture
def examples():
    labels = ("neutral", "entailment", "contradiction")
    return [
        pair(TEXTS[number % 4], TEXTS[(number * 3 + number // 4) % 4], labels[number % 3], number)
        for number in range(8)
    ]


def pieces(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_pairs_are_framed_as_the_family_wants(bert_folder, xlm_roberta_folder):
    texts = TEXTS[0], TEXTS[1]
    bert, xlm_roberta = load_tokenizer(bert_folder), load_tokenizer(xlm_roberta_folder)
    (row,) = NLI.encode([pair(*texts)], bert)
    first, second = (pieces(bert, text) for text in texts)
    cls, sep = bert.cls_token_id, bert.sep_token_id
    assert list(row.subwords) == [cls, *first, sep, *second, sep]
    assert list(row.segments) == [0] * (len(first) + 2) + [1] * (len(second) + 1)

    (row,) = NLI.encode([pair(*texts)], xlm_roberta)
    first, second = (pieces(xlm_roberta, text) for text in texts)
    cls, sep = xlm_roberta.cls_token_id, xlm_roberta.sep_token_id
    assert list(row.subwords) == [cls, *first, sep, sep, *second, sep]
    assert row.segments is None


@given(st.integers(0, 30), st.integers(0, 30), st.integers(8, 40))
@settings(deadline=None, max_examples=60)
def test_the_longer_text_is_cut_until_the_pair_fits(tokenizer, first, second, limit):
    (row,) = NLI.encode([pair("the " * first, "cat " * second)], tokenizer, limit=limit)
    special = tokenizer.num_special_tokens_to_add(pair=True)
    the, cat = pieces(tokenizer, "the")[0], pieces(tokenizer, "cat")[0]
    kept = row.subwords.count(the), row.subwords.count(cat)
    assert len(row.subwords) == min(limit, first + second + special)
    assert sum(kept) == len(row.subwords) - special
    if sum(kept) < first + second:
        half = (limit - special) // 2
        assert min(kept) >= min(first, second, half)


def test_rows_carry_labels_and_pairs_without_label_have_none(tokenizer, examples):
    rows = NLI.encode(examples, tokenizer)
    assert [NLI.labels[row.gold[0]] for row in rows] == NLI.gold(examples)
    assert [row.example for row in rows] == list(range(8))
    assert NLI.encode([pair("a", "b")], tokenizer)[0].gold == ()
    assert NLI.encode([], tokenizer) == []


def test_labels_outside_the_inventory_are_named(tokenizer):
    with pytest.raises(DataError) as caught:
        NLI.encode([pair("a", "b", "entailed", 3)], tokenizer)
    assert str(caught.value) == (
        "example 'p3': nli has no label 'entailed'. Did you mean 'entailment'? "
        "Allowed: entailment, neutral, contradiction."
    )


def test_scores_are_hugging_faces_logits(folder, tokenizer, examples):
    model = NLI.head(folder, seed=0)
    batch = collate(NLI.encode(examples, tokenizer), padding=tokenizer.pad_token_id)
    theirs = tokenizer(
        [example.first for example in examples],
        [example.second for example in examples],
        padding=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        assert torch.equal(NLI.scores(model, batch), model(**theirs).logits)
        expected = model(**theirs, labels=batch.gold).loss
        torch.testing.assert_close(NLI.loss(model, batch), expected)


@given(st.permutations(range(8)), st.lists(st.integers(0, 2), min_size=8, max_size=8))
@settings(deadline=None)
def test_decoding_gives_each_pair_its_best_label_in_any_order(tokenizer, order, best):
    examples = [pair("a", "b", number=number) for number in range(8)]
    rows = NLI.encode(examples, tokenizer)
    shuffled = [rows[number] for number in order]
    scores = [torch.eye(3)[best[number] : best[number] + 1] for number in order]
    assert NLI.decode(examples, shuffled, scores) == [NLI.labels[number] for number in best]


def test_decoding_part_of_the_rows_is_refused(tokenizer, examples):
    rows = NLI.encode(examples, tokenizer)
    with pytest.raises(ValueError, match="7 rows for 8 pairs: decode all rows together, each once"):
        NLI.decode(examples, rows[1:], [torch.zeros(1, 3)] * 7)


@pytest.mark.parametrize("task", [NLI, PARAPHRASE], ids=lambda task: task.name)
def test_heads_follow_their_seed_and_carry_the_labels(folder, task):
    one, again, other = (dict(task.head(folder, seed=seed).named_parameters()) for seed in (1, 1, 2))
    assert all(torch.equal(parameter, again[name]) for name, parameter in one.items())
    assert any(not torch.equal(parameter, other[name]) for name, parameter in one.items())
    assert task.head(folder, seed=0).config.id2label == dict(enumerate(task.labels))


def test_eight_pairs_are_learned_by_heart(folder, tokenizer, examples):
    rows = NLI.encode(examples, tokenizer)
    batch = collate(rows, padding=tokenizer.pad_token_id)
    model = NLI.head(folder, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(80):
        optimizer.zero_grad()
        NLI.loss(model, batch).backward()
        optimizer.step()
    with torch.no_grad():
        scores = NLI.scores(model, batch).split(1)
    assert NLI.score(NLI.gold(examples), NLI.decode(examples, rows, scores)) == 1.0


def test_the_majority_baseline_says_the_commonest_label_of_the_training_data(examples):
    train = [pair("a", "b", label) for label in ("neutral", "neutral", "entailment")]
    assert NLI.majority(train, examples) == pytest.approx(3 / 8)
    assert NLI.score(["neutral"], ["neutral"]) == 1.0
