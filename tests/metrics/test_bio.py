import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from isogloss.metrics.bio import Span, repair, spans

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-X-Y", "I-X-Y")
sentences = st.lists(st.sampled_from(TAGS), max_size=12)


def is_valid(tags):
    return all(
        tag[0] != "I" or (last != "O" and last[2:] == tag[2:])
        for last, tag in zip(["O", *tags], tags, strict=False)
    )


@pytest.mark.parametrize(
    ("tags", "repaired"),
    [
        (["I-PER", "I-PER", "O"], ("B-PER", "I-PER", "O")),
        (["O", "I-LOC"], ("O", "B-LOC")),
        (["B-PER", "I-LOC", "I-LOC"], ("B-PER", "B-LOC", "I-LOC")),
        (["B-PER", "I-PER", "B-PER"], ("B-PER", "I-PER", "B-PER")),
        (["I-PER", "I-LOC", "I-PER"], ("B-PER", "B-LOC", "B-PER")),
        ([], ()),
    ],
)
def test_repair_begins_a_span_where_nothing_is_continued(tags, repaired):
    assert repair(tags) == repaired


@given(sentences)
def test_repair_makes_tags_valid_and_leaves_valid_tags_alone(tags):
    assert is_valid(repair(tags))
    assert repair(repair(tags)) == repair(tags)
    if is_valid(tags):
        assert repair(tags) == tuple(tags)


@given(sentences)
def test_repair_changes_no_type_and_no_span(tags):
    assert [tag[1:] for tag in repair(tags)] == [tag[1:] for tag in tags]
    assert spans(repair(tags)) == spans(tags)


@given(sentences)
def test_spans_are_those_of_seqeval(tags):
    theirs = [Span(kind, start, last + 1) for kind, start, last in get_entities(tags)]
    assert spans(tags) == theirs


@given(sentences)
def test_spans_written_as_tags_again_are_the_repaired_tags(tags):
    written = ["O"] * len(tags)
    for span in spans(tags):
        written[span.start : span.stop] = [f"B-{span.type}"] + [f"I-{span.type}"] * (
            span.stop - span.start - 1
        )
    assert tuple(written) == repair(tags)


@pytest.mark.parametrize("tag", ["PER", "E-PER", "B-", "B", "", "o"])
def test_other_tags_are_refused(tag):
    for read in (spans, repair):
        with pytest.raises(ValueError, match=f"'{tag}' is no BIO tag: use O, B-TYPE and I-TYPE"):
            read(["O", tag])
