"""Layouts of the field are read as what they are, which is reported, or refused with their line."""

import pytest

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import NO_SCHEME, TagCounts
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus
from odd_layouts import LAYOUTS, REAL, lines_of


@pytest.mark.parametrize("odd", LAYOUTS, ids=lambda odd: odd.name)
def test_a_layout_is_read_as_it_is_and_reported_or_refused_with_its_line(own_corpus, put_files, odd):
    put_files({"test.txt": odd.content})
    try:
        (split,) = inspect_splits(
            own_corpus(f'{odd.body}files = {{ test = "test.txt" }}\nlanguages = ["xx"]\n')
        )
    except DataError as error:  # An error of the whole file.
        assert f"test.txt{odd.error}" in str(error)
        assert odd.sentences == 0
        return
    assert (split.examples, split.labels) == (odd.sentences, odd.labels)
    assert [remark.partition(": ")[2] for remark in split.remarks] == [f"{odd.remark}."] * bool(odd.remark)
    assert len(split.errors) == bool(odd.error)
    assert [error for error in split.errors if f"test.txt{odd.error}" not in error] == []


@pytest.mark.nightly
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("case", REAL, ids=lambda case: case.path)
def test_a_real_file_has_the_sentences_and_labels_that_a_count_apart_from_the_readers_has(
    case, real_data, tmp_path
):
    folder = real_data.path / "layouts"
    split = "train" if case.path.endswith(("train.tsv", "4000.tsv")) else "test"
    body = f'{case.body}files = {{ {split} = "{case.path}" }}\nlanguages = ["{case.language}"]\n'
    (tmp_path / "own.toml").write_text(f'{body}bad_rows = "skip"\n', encoding="utf-8")
    (inspection,) = inspect_splits(describe_corpus(tmp_path / "own.toml", str(folder)), str(folder))
    count, labels = case.count(lines_of(folder, case.path))
    assert (inspection.examples, inspection.labels, len(inspection.errors)) == (
        count,
        dict(labels),
        case.left_out,
    )


@pytest.mark.parametrize("tags", [["NOUN", "VERB"], ["S-----1", "N-----2", "V-1"], ["lang1", "O", "other"]])
def test_labels_of_words_are_no_spans(tags):
    counts = TagCounts()
    counts.add(tags)
    assert counts.decide() == NO_SCHEME
