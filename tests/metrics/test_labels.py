"""Scores of labels and tags are scikit-learn's and seqeval's, on valid and invalid tags."""

import warnings

import pytest
import seqeval.metrics
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import accuracy_score, f1_score

from isogloss.core.rows.models import total
from isogloss.metrics.labels import (
    Span,
    chunk_contributions,
    chunks,
    label_contributions,
    repair,
    span_contributions,
    spans,
    word_contributions,
)

BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
HYPHENED = (*BIO, "B-X-Y", "I-X-Y")
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
    "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
ANYTHING = (*UPOS, *BIO, "E-LOC", "S-LOC", "B", "I", "E", "S", ".", "_", "B-A-B")


def measure(contributions):
    return lambda gold, predictions: total(contributions(gold, predictions))


accuracy, span_f1, word_f1, seqeval_f1 = (
    measure(value)
    for value in (label_contributions, span_contributions, word_contributions, chunk_contributions)
)
F1S = {"span": span_f1, "word": word_f1, "seqeval": seqeval_f1}
MEASURES = {"accuracy": accuracy, **F1S}


def sentences(tags):
    return st.lists(st.lists(st.sampled_from(tags), max_size=8), min_size=1, max_size=5)


def corpora(tags):
    """Gold and predicted tags of the same sentences."""
    pair = st.tuples(st.sampled_from(tags), st.sampled_from(tags))
    drawn_lists = st.lists(st.lists(pair, max_size=8), min_size=1, max_size=5)
    return drawn_lists.map(
        lambda both_parts: tuple(
            [[pair[position] for pair in item] for item in both_parts] for position in (0, 1)
        )
    )


def quiet(function, *inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*inputs)


@given(corpora("abc").filter(lambda pair: any(len(value) for value in pair[0])))
def test_accuracy_is_that_of_scikit_learn(corpus):
    gold, predicted_tags = ([tag for tags in side for tag in tags] for side in corpus)
    assert accuracy(*corpus) == accuracy_score(gold, predicted_tags)


@pytest.mark.parametrize(("f1", "tags"), [(span_f1, BIO), (seqeval_f1, UPOS), (seqeval_f1, ANYTHING)])
@given(data=st.data())
def test_f1_is_that_of_seqeval(f1, tags, data):
    corpus = data.draw(corpora(tags))
    assert f1(*corpus) == pytest.approx(quiet(seqeval.metrics.f1_score, *corpus), abs=1e-12)


@given(corpora(BIO).filter(lambda pair: any(len(value) for value in pair[0])))
def test_word_f1_is_micro_f1_over_types(corpus):
    types = [[tag.partition("-")[2] for tags in side for tag in tags] for side in corpus]
    expected = f1_score(*types, labels=["PER", "LOC"], average="micro", zero_division=0)
    assert word_f1(*corpus) == pytest.approx(expected)


@pytest.mark.parametrize("f1", F1S.values(), ids=F1S)
@given(corpus=corpora(BIO))
def test_f1_is_symmetric(f1, corpus):
    assert f1(*corpus) == f1(*corpus[::-1])


@given(corpora(BIO))
def test_span_f1_does_not_change_with_repair(corpus):
    gold, predicted_corpus = corpus
    assert span_f1(gold, [repair(tags) for tags in predicted_corpus]) == span_f1(gold, predicted_corpus)


@pytest.mark.parametrize(
    ("f1", "gold", "predicted_texts", "expected"),
    [
        (span_f1, ["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "O"], 1),
        (span_f1, ["B-PER", "I-PER", "O"], ["B-PER", "O", "O"], 0),
        (span_f1, ["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC", "O"], 0),
        (word_f1, ["B-PER", "I-PER", "O"], ["B-PER", "O", "O"], 2 / 3),
        (word_f1, ["B-PER", "I-PER", "O"], ["I-PER", "B-PER", "O"], 1),
        (word_f1, ["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC", "O"], 0),
        (seqeval_f1, ["NOUN"] * 4 + ["VERB"], ["NOUN", "NOUN", "ADJ", "NOUN", "VERB"], 1 / 3),
    ],
)
def test_f1_has_known_answers(f1, gold, predicted_texts, expected):
    assert f1([gold], [predicted_texts]) == pytest.approx(expected)


@pytest.mark.parametrize("f1", F1S.values(), ids=F1S)
@pytest.mark.parametrize(("gold", "predictions"), [([], []), ([[]], [[]]), ([["O"]], [["O"]])])
def test_without_spans_f1_is_zero(f1, gold, predictions):
    assert f1(gold, predictions) == 0.0
    assert accuracy([], []) == 0.0


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("predicted_texts", [[["O"]], [["O", "O"], ["O"]], [["O"], ["O"]]])
def test_other_sentences_are_refused(measure, predicted_texts):
    with pytest.raises(ValueError, match="length"):
        measure([["O", "O"]], predicted_texts)


@given(sentences(ANYTHING))
def test_chunks_are_those_of_seqeval(tags):
    expected = [
        Span(kind, first_item, last_value + 1) for kind, first_item, last_value in quiet(get_entities, tags)
    ]
    assert chunks(tags) == expected


@given(corpora(ANYTHING))
def test_each_chunk_counts_in_the_sentence_that_it_ends_in(corpus):
    contributions = chunk_contributions(*corpus)
    gold, guessed = (set(chunks(side)) for side in corpus)
    stop = 0
    for index, tags in enumerate(corpus[0]):
        start, stop = stop, stop + len(tags) + 1
        right, of_gold, of_guessed = (
            len([chunk for chunk in group if start < chunk.stop <= stop])
            for group in (gold & guessed, gold, guessed)
        )
        assert contributions.part[index] == 2 * right
        assert contributions.whole[index] == of_gold + of_guessed


@given(sentences(HYPHENED))
def test_spans_are_those_of_seqeval(samples):
    (tags, *_) = samples
    assert spans(tags) == [
        Span(kind, start, last_entity + 1) for kind, start, last_entity in get_entities(tags)
    ]


def is_valid(tags):
    return all(
        tag[0] != "I" or (last_name != "O" and last_name[2:] == tag[2:])
        for last_name, tag in zip(["O", *tags], tags, strict=False)
    )


@pytest.mark.parametrize(
    ("tags", "repaired_texts"),
    [
        (["I-PER", "I-PER", "O"], ("B-PER", "I-PER", "O")),
        (["B-PER", "I-LOC", "I-LOC"], ("B-PER", "B-LOC", "I-LOC")),
        (["B-PER", "I-PER", "B-PER"], ("B-PER", "I-PER", "B-PER")),
        (["I-PER", "I-LOC", "I-PER"], ("B-PER", "B-LOC", "B-PER")),
        ([], ()),
    ],
)
def test_repair_begins_a_span_where_nothing_is_continued(tags, repaired_texts):
    assert repair(tags) == repaired_texts


@given(sentences(HYPHENED))
def test_repair_makes_tags_valid_and_changes_no_span(samples):
    (tags, *_) = samples
    repaired_values = repair(tags)
    assert is_valid(repaired_values)
    assert repair(repaired_values) == repaired_values
    assert [tag[1:] for tag in repaired_values] == [tag[1:] for tag in tags]
    assert spans(repaired_values) == spans(tags)
    if is_valid(tags):
        assert repaired_values == tuple(tags)


@given(sentences(HYPHENED))
def test_spans_written_as_tags_again_are_the_repaired_tags(samples):
    (tags, *_) = samples
    texts = ["O"] * len(tags)
    for kind, start, stop in spans(tags):
        texts[start:stop] = [f"B-{kind}", *[f"I-{kind}"] * (stop - start - 1)]
    assert tuple(texts) == repair(tags)


@pytest.mark.parametrize("tag", ["PER", "E-PER", "B-", "B", "", "o"])
@pytest.mark.parametrize("read", [spans, repair])
def test_tags_that_are_not_bio_are_refused(tag, read):
    with pytest.raises(ValueError, match=f"'{tag}'.*B-TYPE.*I-TYPE"):
        read(["O", tag])
