"""Spans in every scheme and notation are found, or the file is not taken for one of spans."""

import warnings
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from isogloss.core.tag_schemes import (
    BIO,
    IOB1,
    NO_SCHEME,
    PLAIN_BIO,
    TagCounts,
    TagScheme,
    as_bio,
    decide_scheme,
    find_misfit,
    find_spans,
    normalize_tags,
)
from tagged_files import LETTERS, TYPED, UNTYPED, Notation, small_spans

SPANS = st.lists(
    st.tuples(st.sampled_from(["PER", "LOC", "a-b"]), st.integers(1, 4), st.integers(0, 2)), max_size=6
)


def run_decision(*sentences, name=""):
    counts = TagCounts()
    for tags in sentences:
        counts.add(tags)
    return counts.decide(name)


def spans_of(tags, scheme):
    return [(span.type, span.stop - span.start) for span in find_spans(tags, scheme)]


@given(SPANS, st.sampled_from(list(LETTERS)))
def test_spans_are_the_same_in_every_scheme(spans, name):
    tags = Notation(name).tags(spans)
    scheme = TagScheme(name=name)
    assert find_misfit(tags, scheme) is None
    assert list(as_bio(tags, scheme)) == Notation(BIO).tags(spans)
    assert spans_of(tags, scheme) == [(type_name, length) for type_name, length, _ in spans]


@pytest.mark.parametrize("notation", [*TYPED[::23], *UNTYPED[::5]], ids=str)
@pytest.mark.parametrize("filler", [0, 40])
def test_the_notation_of_a_file_is_decided_from_its_tags(notation, filler):
    check_notation(notation, filler)


@pytest.mark.slow
@pytest.mark.parametrize("filler", [0, 1, 40, 10_000])
def test_every_notation_of_a_file_is_decided_from_its_tags(filler):
    for notation in (*TYPED, *UNTYPED):
        check_notation(notation, filler)


def check_notation(notation, filler):
    """Check that spans are found in a file of seven words and others outside of spans."""
    spans = small_spans(notation)
    tags = [*notation.tags(spans), *[notation.outside] * filler]
    scheme = run_decision(tags)
    assert scheme.marks_spans, notation
    assert find_misfit(tags, scheme) is None, notation
    assert spans_of(tags, scheme) == [(type_name, length) for type_name, length, _ in spans], notation


@pytest.mark.parametrize("name", LETTERS)
def test_a_second_outside_symbol_does_not_fit(name):
    tags = [*Notation(name).tags([("PER", 3, 1), ("LOC", 1, 0), ("LOC", 2, 1)]), "0"]
    scheme = run_decision(tags)
    assert scheme.name == name
    assert find_misfit(tags, scheme) == len(tags) - 1


@pytest.mark.parametrize(
    "tags",
    [
        ["NOUN", "VERB"],
        ["S-----1", "N-----2", "V-1"],
        ["lang1", "O", "other"],
        ["n", "v", "b", "i", "l", "m"],
        ["O", "V", "#", "^", "P"],
        ["SUBST", "B-NN", "VERB", "ADJ", "ADV", "PRON"],
        ["O", "O", "O"],
    ],
)
def test_labels_of_words_are_no_spans(tags):
    assert run_decision(tags) == NO_SCHEME


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("S-LOC I-LOC O", [("LOC", 1), ("LOC", 1)]),
        ("S-PER E-PER", [("PER", 1), ("PER", 1)]),
        ("B-LOC E-LOC E-LOC", [("LOC", 2), ("LOC", 1)]),
    ],
)
def test_an_end_closes_a_span_and_odd_tags_are_counted(tags, spans):
    counts = TagCounts()
    counts.add(tags.split())
    scheme = TagScheme(name="IOBES")
    assert spans_of(tags.split(), scheme) == spans
    assert counts.count_odd(scheme) == 1


@pytest.mark.nightly
@pytest.mark.slow
def test_all_short_sequences_have_the_spans_of_seqeval():
    letters = {"IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}
    for name, marks in letters.items():
        tags = ["O", *(f"{mark}-{type_name}" for mark in marks for type_name in ("A", "B"))]
        table = str.maketrans("LUM", "ESI")
        for length in range(1, 5):
            for sentence in product(tags, repeat=length):
                check_against_seqeval(sentence, TagScheme(name=name), table)


def check_against_seqeval(sentence, scheme, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = get_entities([tag[:1].translate(table) + tag[1:] for tag in sentence])
    assert [tuple(span) for span in find_spans(sentence, scheme)] == [
        (type_name, start, end + 1) for type_name, start, end in expected
    ]
    bio = as_bio(sentence, scheme)
    assert find_spans(bio) == find_spans(sentence, scheme)


@pytest.mark.parametrize(
    "tags",
    [
        "B-PER,B-ORG", "B-PER;B-ORG", "B-PER|B-ORG", "B-PER/B-ORG", "B-PER+B-ORG", "B-PER&B-ORG",
        "B-PER^B-ORG", "B-PER#B-ORG", "B-PER__B-ORG", "B-PER:B-ORG", "B-PER.", "B--PER",
    ],
)  # fmt: skip
def test_two_tags_in_a_cell_do_not_fit(tags):
    file = [tags, "I-PER", "O", "B-LOC", "B-PER", "I-PER"]
    scheme = run_decision(file)
    assert scheme == PLAIN_BIO
    assert find_misfit(file, scheme) == 0


@pytest.mark.parametrize("name", ["BIO", "IOBES"])
def test_a_stated_scheme_keeps_the_notation_of_the_file(name):
    assert run_decision(["B_PER", "I_PER", "0"], name=name) == TagScheme(
        name=name, separator="_", outside="0"
    )


def test_a_file_without_spans_has_the_outside_symbol_of_its_corpus():
    counts = TagCounts()
    counts.add(["0", "0"])
    scheme = counts.decide(labels=("O", "B-PER", "I-PER"))
    assert as_bio(["0", "0"], scheme) == ("O", "O")
    assert counts.decide() == NO_SCHEME


@pytest.mark.parametrize(
    ("labels", "plain_texts"),
    [
        (["O", "B-PER", "I-PER", "E-PER", "S-PER"], ["O", "B-PER", "I-PER", "E-PER", "S-PER"]),
        (["O", "B-PER", "I-PER", "L-PER", "U-PER"], ["O", "B-PER", "I-PER", "E-PER", "S-PER"]),
        (["O", "PER-B", "PER-I"], ["O", "B-PER", "I-PER"]),
        (["O", "B_PER", "I_PER"], ["O", "B-PER", "I-PER"]),
        (["O", "B", "I"], ["O", "B-SPAN", "I-SPAN"]),
        (["LABEL_0", "LABEL_1"], ["LABEL_0", "LABEL_1"]),
    ],
)
def test_inventories_are_written_in_one_notation(labels, plain_texts):
    assert list(normalize_tags(labels)) == plain_texts


def test_remarks_name_what_was_decided():
    assert list(decide_scheme(["B_PER", "E_PER", "S_PER", "I_PER", "0"]).remarks()) == [
        "IOBES read as BIO",
        "'0' read as O",
        "'B_TYPE' read as 'B-TYPE'",
    ]
    assert list(PLAIN_BIO.remarks()) == []


def test_iob1_is_told_from_bio_by_its_beginnings():
    assert run_decision(["I-PER", "I-PER", "B-PER", "O"]).name == IOB1
    assert run_decision(["B-PER", "I-PER", "I-LOC", "O"]).name == BIO
    assert Counter(spans_of(["I-PER", "B-PER"], TagScheme(name=IOB1))) == {("PER", 1): 2}
