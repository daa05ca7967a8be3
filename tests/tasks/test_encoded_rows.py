"""Rows become padded batches and lose nothing. Pairs become rows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.examples import LabelledText
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import find_task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.classification import NLI, UNLABELLED
from task_examples import TEXTS, examples_of, pair

PADDING = 9


@st.composite
def rows(draw, is_scored=True):
    subwords = draw(st.lists(st.integers(0, 8), min_size=1, max_size=7))
    places = draw(st.lists(st.integers(0, len(subwords) - 1), unique=True)) if is_scored else []
    labels = draw(st.lists(st.integers(0, 3), min_size=max(len(places), 1), max_size=max(len(places), 1)))
    return EncodedRow(
        example=draw(st.integers(0, 99)),
        subwords=tuple(subwords),
        positions=tuple(sorted(places)),
        words=tuple(range(len(places))),
        gold=tuple(labels),
    )


@given(st.lists(rows(), min_size=1, max_size=5))
def test_collate_keeps_every_subword_place_and_label(rows):
    batch = collate(rows, padding=PADDING)
    mask = torch.ones_like(batch.subwords) if batch.mask is None else batch.mask
    for row, line, real_value in zip(rows, batch.subwords, mask.bool(), strict=True):
        assert tuple(line[real_value].tolist()) == row.subwords
        assert line[~real_value].tolist() == [PADDING] * (batch.subwords.shape[1] - len(row.subwords))
    places = [(index, place) for index, row in enumerate(rows) for place in row.positions or (0,)]
    assert list(zip(batch.rows.tolist(), batch.columns.tolist(), strict=True)) == places
    assert batch.gold.tolist() == [label for row in rows for label in row.gold]
    assert batch.examples.tolist() == [row.example for row in rows]
    assert (batch.mask is None) == (len({len(row.subwords) for row in rows}) == 1)


def test_segments_are_padded_and_rows_without_are_all_of_the_first():
    pair = EncodedRow(example=0, subwords=(1, 2, 3), segments=(0, 1, 1))
    single = EncodedRow(example=1, subwords=(1, 2))
    assert collate([pair, single], padding=0).segments.tolist() == [[0, 1, 1], [0, 0, 0]]
    assert collate([single], padding=0).segments is None


def test_inputs_are_what_the_forward_function_takes():
    long_encoded_row = EncodedRow(example=0, subwords=(1, 2))
    short_encoded_row = EncodedRow(example=1, subwords=(1,))
    assert collate([long_encoded_row], padding=0).inputs().keys() == {"input_ids"}
    assert collate([long_encoded_row, short_encoded_row], padding=0).inputs().keys() == {
        "input_ids",
        "attention_mask",
    }
    pair = EncodedRow(example=0, subwords=(1, 2, 3), segments=(0, 1, 1))
    assert collate([pair], padding=0).inputs().keys() == {"input_ids", "token_type_ids"}


def test_batches_without_labels_have_empty_gold():
    batch = collate([EncodedRow(example=0, subwords=(1, 2), positions=(1,), words=(0,))], padding=0)
    assert batch.gold.shape == (0,)
    assert batch.gold.dtype == torch.long


def test_batches_with_some_labels_are_refused():
    labelled_encoded_row = EncodedRow(example=0, subwords=(1, 2), gold=(1,))
    with pytest.raises(ValueError, match="1 labels for 2 positions:"):
        collate([labelled_encoded_row, EncodedRow(example=1, subwords=(1, 2))], padding=0)


def test_batches_move_whole():
    batch = collate([EncodedRow(example=0, subwords=(1, 2), gold=(1,))], padding=0).to("meta")
    assert isinstance(batch, Batch)
    assert batch.mask is None
    assert {value.device.type for value in (batch.subwords, batch.rows, batch.columns, batch.gold)} == {
        "meta"
    }


# Pairs


def pieces(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_pairs_are_framed_as_the_family_wants(bert_folder, xlm_roberta_folder):
    texts = TEXTS[0], TEXTS[1]
    bert = load_tokenizer(bert_folder)
    xlm_roberta = load_tokenizer(xlm_roberta_folder)
    (row,) = NLI.encode([pair(*texts)], bert)
    first_input_ids, second = (pieces(bert, text) for text in texts)
    cls = bert.cls_token_id
    sep = bert.sep_token_id
    assert list(row.subwords) == [cls, *first_input_ids, sep, *second, sep]
    assert list(row.segments) == [0] * (len(first_input_ids) + 2) + [1] * (len(second) + 1)

    (row,) = NLI.encode([pair(*texts)], xlm_roberta)
    first_input_ids, second = (pieces(xlm_roberta, text) for text in texts)
    cls = xlm_roberta.cls_token_id
    sep = xlm_roberta.sep_token_id
    assert list(row.subwords) == [cls, *first_input_ids, sep, sep, *second, sep]
    assert row.segments is None


@pytest.mark.parametrize(
    ("task", "label"),
    [
        (find_task("text-classification", ("joy", "fear")), "fear"),
        (find_task("multi-label-classification", ("joy", "fear")), ()),
        (find_task("regression"), 0.0),
    ],
)
def test_a_row_knows_whether_its_label_is_known_whatever_it_is(task, label, either_tokenizer):
    texts = [LabelledText(id=str(item), text="the cat", label=item) for item in (label, UNLABELLED)]
    assert [row.labelled for row in task.encode(texts, either_tokenizer)] == [True, False]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(8, 40))
def test_the_longer_text_is_cut_until_the_pair_fits(either_tokenizer, first_part, second, limit):
    (row,) = NLI.encode([pair("the " * first_part, "cat " * second)], either_tokenizer, limit=limit)
    special = either_tokenizer.num_special_tokens_to_add(pair=True)
    the = pieces(either_tokenizer, "the")[0]
    cat = pieces(either_tokenizer, "cat")[0]
    kept_counts = row.subwords.count(the), row.subwords.count(cat)
    assert len(row.subwords) == min(limit, first_part + second + special)
    assert sum(kept_counts) == len(row.subwords) - special
    if sum(kept_counts) < first_part + second:
        half_difference = (limit - special) // 2
        assert min(kept_counts) >= min(first_part, second, half_difference)


def test_the_majority_baseline_says_the_commonest_label_of_the_training_data():
    train = [pair("a", "b", label) for label in ("neutral", "neutral", "entailment")]
    assert NLI.majority(train, examples_of("nli")) == 3 / 8
