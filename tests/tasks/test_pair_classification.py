from hypothesis import given, settings
from hypothesis import strategies as st
from task_examples import TEXTS, examples_of, pair

from isogloss.encoders import load_tokenizer
from isogloss.tasks.pair_classification import NLI


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
@settings(deadline=None, max_examples=30)
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


def test_the_majority_baseline_says_the_commonest_label_of_the_training_data():
    train = [pair("a", "b", label) for label in ("neutral", "neutral", "entailment")]
    assert NLI.majority(train, examples_of("nli")) == 3 / 8
