"""Layouts of the field are read as what they are, which is reported, or refused with their line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_layouts import LAYOUTS, REAL, lines_of

from isogloss.core.errors import DataError
from isogloss.data.formats.conll import BIO, IOB1, TagCounts, as_bio, entities, misfit
from isogloss.recipes.described_contents import inspect_splits
from isogloss.recipes.descriptions import described


@pytest.mark.parametrize("odd", LAYOUTS, ids=lambda odd: odd.name)
def test_a_layout_is_read_as_it_is_and_reported_or_refused_with_its_line(own, put, odd):
    put({"test.txt": odd.content})
    try:
        (split,) = inspect_splits(own(f'{odd.body}files = {{ test = "test.txt" }}\nlanguages = ["xx"]\n'))
    except DataError as error:  # Of the whole file.
        assert f"test.txt{odd.error}" in str(error)
        assert odd.sentences == 0
        return
    assert (split.examples, split.labels) == (odd.sentences, odd.labels)
    assert [remark.partition(": ")[2] for remark in split.remarks] == [f"{odd.remark}."] * bool(odd.remark)
    assert len(split.errors) == bool(odd.error)
    assert [error for error in split.errors if f"test.txt{odd.error}" not in error] == []


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("real", REAL, ids=lambda real: real.path)
def test_a_real_file_has_the_sentences_and_labels_that_a_count_apart_from_the_readers_has(
    real, real_data, tmp_path
):
    folder = real_data.path / "layouts"
    split = "train" if real.path.endswith(("train.tsv", "4000.tsv")) else "test"
    body = f'{real.body}files = {{ {split} = "{real.path}" }}\nlanguages = ["{real.language}"]\n'
    (tmp_path / "own.toml").write_text(f'{body}bad_rows = "skip"\n', encoding="utf-8")
    (found,) = inspect_splits(described(tmp_path / "own.toml", str(folder)), str(folder))
    count, labels = real.count(lines_of(folder, real.path))
    assert (found.examples, found.labels, len(found.errors)) == (count, dict(labels), real.left_out)


SPANS = st.lists(
    st.tuples(st.sampled_from(["PER", "LOC", "a-b"]), st.integers(1, 4), st.integers(0, 2)), max_size=6
)


def written(spans, scheme):
    """Write spans (type, words, words after it) in a scheme."""
    tags = list[str]()
    for kind, length, gap in spans:
        begins, inside, ends, alone = {
            "BIO": "BIIB", IOB1: "IIII", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEWO": "BMEW",
        }[scheme]  # fmt: skip
        marks = alone if length == 1 else begins + inside * (length - 2) + ends
        if scheme == IOB1 and tags and tags[-1][2:] == kind:
            marks = "B" + marks[1:]
        tags += [f"{mark}-{kind}" for mark in marks] + ["O"] * gap
    return tags


@given(SPANS, st.sampled_from(["BIO", "IOB1", "IOBES", "BILOU", "BMES", "BMEWO"]))
def test_spans_written_in_any_scheme_are_the_same_as_bio(spans, scheme):
    tags = written(spans, scheme)
    assert misfit(tags, scheme) is None
    assert list(as_bio(tags, scheme)) == written(spans, BIO)
    assert [(span.type, span.stop - span.start) for span in entities(as_bio(tags, scheme))] == [
        (kind, length) for kind, length, _ in spans
    ]


@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "IOBES", "BILOU", "BMES", "BMEWO"])
def test_the_scheme_of_a_file_is_told_from_its_tags_though_a_few_are_misspelled(scheme):
    counts = TagCounts()
    counts.add([*written([("PER", 3, 1), ("LOC", 1, 0), ("LOC", 2, 1)], scheme), "0"])
    assert counts.scheme == scheme
    assert counts.begun_inside == (2 if scheme == IOB1 else 0) or scheme not in (BIO, IOB1)


@pytest.mark.parametrize("tags", [["NOUN", "VERB"], ["S-----1", "N-----2", "V-1"], ["lang1", "O", "other"]])
def test_labels_of_words_are_no_spans(tags):
    counts = TagCounts()
    counts.add(tags)
    assert counts.scheme == "words"
