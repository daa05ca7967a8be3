from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.metrics.labels import repair
from isogloss.tasks.batch import collate
from isogloss.tasks.tagging import NER, UPOS
from isogloss.tasks.task import all_measures
from task_examples import WORDS, make_parsed, make_tagged, perfect


@st.composite
def sentences(draw, task, longest=40):
    pairs = st.tuples(st.sampled_from(WORDS), st.sampled_from(task.labels))
    drawn_sample = draw(st.lists(st.lists(pairs, max_size=longest), min_size=1, max_size=4))
    return [
        make_tagged([word for word, _ in item], [tag for _, tag in item], n)
        for n, item in enumerate(drawn_sample)
    ]


# Rows


@given(st.data(), st.integers(6, 30))
def test_each_word_is_scored_once_at_its_first_subword(either_tokenizer, data, limit):
    examples = data.draw(sentences(UPOS))
    rows = UPOS.encode(examples, either_tokenizer, limit=limit, overlap=(limit - 2) // 2)
    scored_examples = [(row.example, word) for row in rows for word in row.words]
    assert scored_examples == [
        (index, word) for index, sentence in enumerate(examples) for word in range(len(sentence.words))
    ]
    for row in rows:
        assert len(row.subwords) <= limit
        assert (row.subwords[0], row.subwords[-1]) == (
            either_tokenizer.cls_token_id,
            either_tokenizer.sep_token_id,
        )
        assert len(row.positions) == len(row.words) == len(row.gold) > 0
        for place, word, label in zip(row.positions, row.words, row.gold, strict=True):
            example = examples[row.example]
            single_encoding = either_tokenizer(
                [[example.words[word]]], is_split_into_words=True, add_special_tokens=False
            )
            assert row.subwords[place] == (*single_encoding["input_ids"][0], either_tokenizer.unk_token_id)[0]
            assert UPOS.labels[label] == example.tags[word]


def test_short_sentences_are_encoded_as_the_tokenizer_does(either_tokenizer):
    words = ["the", "casings", "happened"]
    (row,) = UPOS.encode([make_tagged(words)], either_tokenizer)
    assert list(row.subwords) == either_tokenizer([words], is_split_into_words=True)["input_ids"][0]
    assert row.segments is None
    assert row.gold == ()


def test_treebank_sentences_are_encoded_like_tagged_ones(either_tokenizer):
    words = ("the", "cat")
    tags = ("DET", "NOUN")
    tree = make_parsed(words, (2, 0), ("det", "root"), tags=tags)
    assert UPOS.encode([tree], either_tokenizer) == UPOS.encode([make_tagged(words, tags)], either_tokenizer)


def test_sentences_without_words_have_no_rows_and_no_tags(either_tokenizer):
    examples = [make_tagged([]), make_tagged(["the"], ["DET"]), make_tagged([])]
    rows = UPOS.encode(examples, either_tokenizer)
    assert [row.example for row in rows] == [1]
    assert UPOS.decode(examples, rows, perfect(UPOS, rows, examples)) == [(), ("DET",), ()]


def test_a_word_longer_than_a_row_is_scored_once(either_tokenizer):
    examples = [make_tagged(["the", "zanna" * 30, "cat"], ["DET", "NOUN", "VERB"])]
    rows = UPOS.encode(examples, either_tokenizer, limit=12, overlap=4)
    assert [word for row in rows for word in row.words] == [0, 1, 2]
    assert max(len(row.subwords) for row in rows) <= 12


@given(st.lists(st.sampled_from(["", "NOUN", "VERB"]), min_size=1, max_size=40).filter(any))
def test_words_without_a_tag_are_read_and_not_scored(either_tokenizer, tags):
    words = [WORDS[place % len(WORDS)] for place in range(len(tags))]
    partly = UPOS.encode([make_tagged(words, tags)], either_tokenizer, limit=16, overlap=4)
    whole_encodings = UPOS.encode(
        [make_tagged(words, [tag or "X" for tag in tags])], either_tokenizer, limit=16, overlap=4
    )
    assert [
        (word, UPOS.labels[label]) for row in partly for word, label in zip(row.words, row.gold, strict=True)
    ] == [(word, tag) for word, tag in enumerate(tags) if tag]
    places = {
        (row.subwords, word): place
        for row in whole_encodings
        for word, place in zip(row.words, row.positions, strict=True)
    }
    for row in partly:
        assert row.positions == tuple(places[row.subwords, word] for word in row.words)


def test_sentences_with_too_few_tags_are_named(either_tokenizer):
    with pytest.raises(DataError, match=r"example 's0': .*2.*1"):
        UPOS.encode([make_tagged(["a", "cat"], ["DET"])], either_tokenizer)


@pytest.mark.parametrize(("limit", "overlap"), [(16, 14), (2, 0), (16, -1)])
def test_impossible_limits_are_refused(either_tokenizer, limit, overlap):
    with pytest.raises(ValueError, match=f"{limit} subwords, 2.*{overlap}"):
        UPOS.encode([make_tagged(["a"])], either_tokenizer, limit=limit, overlap=overlap)


# Decoding


@pytest.mark.slow
@pytest.mark.parametrize("task", [UPOS, NER], ids=lambda task: task.name)
@given(st.data(), st.integers(6, 30), st.randoms(use_true_random=False))
def test_decoding_is_merging_words_then_repairing(either_tokenizer, task, data, limit, random):
    examples = data.draw(sentences(task))
    rows = task.encode(examples, either_tokenizer, limit=limit, overlap=(limit - 2) // 2)
    random.shuffle(rows)
    expected = [repair(example.tags) if task is NER else example.tags for example in examples]
    assert task.decode(examples, rows, perfect(task, rows, examples)) == expected


def test_no_entity_is_cut_at_the_border_of_a_window(either_tokenizer):
    tags = ["B-PER"] + ["I-PER"] * 39
    examples = [make_tagged(["Anna"] * 40, tags)]
    rows = NER.encode(examples, either_tokenizer, limit=14, overlap=6)
    assert len(rows) > 3
    (predicted_text,) = NER.decode(examples, rows, perfect(NER, rows, examples))
    assert predicted_text == tuple(tags)
    assert NER.score(NER.gold(examples), [predicted_text]) == 1.0


def test_a_sentence_with_some_tags_is_trained_on_and_not_decoded(either_tokenizer):
    examples = [make_tagged(["Anna", "sleeps"], ["B-PER", ""])]
    rows = NER.encode(examples, either_tokenizer, limit=14, overlap=6)
    with pytest.raises(DataError, match=r"word 2 of 2 has no tag, "):
        NER.decode(examples, rows, [torch.zeros(1, len(NER.labels))])


class Neighbours(torch.nn.Module):
    """A toy encoder: each state is an exact sum over the subwords at most ``reach`` places away."""

    def __init__(self, vocabulary, classes, reach):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        size = (2 * reach + 1, vocabulary, classes)
        self.tables = torch.randint(-1000, 1000, size, generator=generator).double()
        self.reach = reach

    def forward(self, input_ids, attention_mask=None):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = torch.zeros(*input_ids.shape, self.tables.shape[-1], dtype=torch.double)
        length = input_ids.shape[1]
        for offset in range(-self.reach, self.reach + 1):
            folder = slice(max(0, -offset), length - max(0, offset))
            translations = slice(max(0, offset), length - max(0, -offset))
            near_table = (
                self.tables[offset + self.reach][input_ids[:, translations]] * mask[:, translations, None]
            )
            states[:, folder] += near_table
        return SimpleNamespace(last_hidden_state=states)


@given(st.data(), st.integers(1, 3), st.integers(0, 12))
def test_predictions_do_not_depend_on_the_limit_when_windows_overlap_by_twice_the_reach(
    either_tokenizer, data, reach, spare
):
    examples = data.draw(sentences(UPOS))
    encoder = Neighbours(len(either_tokenizer), len(UPOS.labels), reach)
    model = SimpleNamespace(
        base_model=encoder,
        dropout=torch.nn.Identity(),
        classifier=torch.nn.Identity(),
        config=SimpleNamespace(model_type="bert"),
    )

    def predict_limited(limit):
        rows = UPOS.encode(examples, either_tokenizer, limit=limit, overlap=2 * reach)
        if not rows:
            return []
        batch = collate(rows, padding=either_tokenizer.pad_token_id)
        scores = UPOS.scores(model, batch).split([len(row.words) for row in rows])
        return UPOS.decode(examples, rows, scores)

    assert predict_limited(2 * reach + 3 + spare) == predict_limited(10_000)


# Scores of predictions


def test_upos_counts_words_and_ner_counts_spans():
    assert UPOS.score([("DET", "NOUN"), ("VERB",)], [("DET", "VERB"), ("VERB",)]) == pytest.approx(2 / 3)
    assert NER.score([("B-PER", "I-PER", "O")], [("B-PER", "O", "O")]) == 0.0
    assert (UPOS.metric, NER.metric) == ("accuracy", "span_f1")


def test_the_majority_baseline_says_the_commonest_tag_of_the_training_data():
    train = [make_tagged(["a", "b", "c"], ["NOUN", "NOUN", "VERB"])]
    assert UPOS.majority(train, [make_tagged(["a", "b", "c", "d"], ["NOUN", "VERB", "VERB", "ADJ"])]) == 0.25
    tags = ["B-PER", "I-PER", "O", "O", "O"]
    assert NER.majority([make_tagged("abcde", tags)], [make_tagged("abcde", tags)]) == 0.0


def test_upos_reports_accuracy_first_and_what_xtreme_calls_f1_beside_it():
    gold = [("NOUN", "NOUN", "NOUN", "NOUN", "VERB")]
    predicted_texts = [("NOUN", "NOUN", "ADJ", "NOUN", "VERB")]
    assert list(all_measures(UPOS, gold, predicted_texts).items()) == [
        ("accuracy", 0.8),
        ("seqeval_f1", pytest.approx(1 / 3)),
        ("macro_f1", pytest.approx((6 / 7 + 1 + 0) / 3)),
        ("weighted_f1", pytest.approx((4 * 6 / 7 + 1) / 5)),
        ("mcc", pytest.approx((5 * 4 - 13) / ((25 - 17) * (25 - 11)) ** 0.5)),
    ]
